"""Broker: a Kafka broker inside this process, with its data in a folder.

This is the thread side: it owns what a broker needs around it (a temporary folder, a tower of its own, a
port that nobody else has) and starts and stops the :class:`~dafka.broker.core.EmbeddedBroker` in the hub.
The port is bound and not listened on: it makes ``bootstrap_servers`` a name that no other process can have,
and clients of this process find the broker by it.
"""

from __future__ import annotations

import os
import shutil
import socket as sockets
import tempfile
from types import TracebackType
from typing import TYPE_CHECKING

from gevent import monkey

from dafka.broker import registry
from dafka.broker.core import EmbeddedBroker
from dafka.broker.errors import BrokerStoppedError
from dafka.broker.limits import PARTITIONS_PER_TOPIC
from dafka.log import Durability
from dafka.mesh.address import TowerLike, tower_addresses
from dafka.mesh.endpoint import EndpointOptions
from dafka.mesh.hub import get_hub
from dafka.mesh.tower import Tower

if TYPE_CHECKING:
    from socket import socket

HOST = "127.0.0.1"

_socket = monkey.get_original("socket", "socket")


class Broker:
    """A broker in this process. ``with Broker() as broker:`` starts and stops it.

    ``path``: its folder, created if missing, one process at a time; None is a temporary folder that goes
    with the broker. ``tower``: the mesh to join, as for :class:`dafka.Producer`; None is a tower of its own.
    ``default_partitions``: partitions of a topic that is created without saying how many.
    ``auto_create_topics``: whether clients create a topic by using it. ``durability``: what an acknowledged
    record survives, ``"process"`` (the death of this process) or ``"power"`` (a power cut).

    :meth:`start` raises the log's errors: :class:`dafka.log.LogLockedError`,
    :class:`dafka.log.LogVersionError`, :class:`dafka.log.NotALogError`, :class:`dafka.log.LogOpenError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        tower: TowerLike = None,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        durability: Durability = "process",
    ) -> None:
        if type(default_partitions) is not int or not 0 < default_partitions <= PARTITIONS_PER_TOPIC:
            raise ValueError(
                f"default_partitions is a number from 1 to {PARTITIONS_PER_TOPIC}, not {default_partitions!r}"
            )
        if durability not in ("process", "power"):
            raise ValueError(f"durability is 'process' or 'power', not {durability!r}")
        if tower is not None:
            tower_addresses(tower)  # raises for what is none
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        self._tower = tower
        self._default_partitions = default_partitions
        self._auto_create_topics = auto_create_topics
        self._durability: Durability = durability
        self._hub = get_hub()
        self._running: _Running | None = None
        self._last_port = 0

    def start(self) -> Broker:
        """Open the folder and join the mesh; does nothing if it runs already. Returns the broker."""
        self._hub.run(self._start)
        return self

    def stop(self) -> None:
        """Commit what has been accepted, leave the mesh and close the folder.

        Waiting calls of clients end with :class:`~dafka.broker.errors.BrokerStoppedError`. Stopping twice is
        allowed, and so is starting again.
        """
        self._hub.run(self._stop)

    @property
    def running(self) -> bool:
        """Whether the broker is started."""
        return self._running is not None

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, what clients of this process take as their ``bootstrap_servers``."""
        return self._state().address

    @property
    def path(self) -> str:
        """The folder of the data."""
        return self._path if self._path is not None else self._state().path

    @property
    def tower(self) -> TowerLike:
        """The tower that other nodes take to join the broker's mesh."""
        return self._tower if self._tower is not None else self._state().tower

    @property
    def discarded(self) -> dict[str, int]:
        """How many messages from the mesh were malformed or not for this broker to take, by cause."""
        node = self._state().core.node
        return dict(node.endpoint.discarded + node.discarded)

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = self._running
        return f"<Broker {state.address} on {state.path!r}>" if state else f"<Broker {self._path!r}, stopped>"

    # -- in the hub -----------------------------------------------------------------------------

    def _state(self) -> _Running:
        self._hub.check()
        state = self._running
        if state is None:
            folder = self._path or "a temporary folder"
            raise BrokerStoppedError(f"the broker on {folder} is not running; start() it")
        return state

    def _start(self) -> None:
        with registry.changing:
            if self._running is None:
                self._running = self._open()
                self._last_port = self._running.port
                registry.add(self, self._running.core, self._running.path)

    def _open(self) -> _Running:
        state = _Running(self._last_port)
        try:
            state.path = self._path or state.make_folder()
            if self._tower is None:
                state.tower = Tower()
            state.core = EmbeddedBroker(
                self._hub,
                state.path,
                EndpointOptions(tower_addresses(self._tower or state.tower)),
                HOST,
                state.port,
                default_partitions=self._default_partitions,
                auto_create_topics=self._auto_create_topics,
                durability=self._durability,
            )
        except BaseException:
            state.release()
            raise
        return state

    def _stop(self) -> None:
        with registry.changing:
            state = self._running
            if state is None:
                return
            try:
                state.core.stop()
            finally:
                self._running = None
                registry.remove(self)
                state.release()


class _Running:
    """What a broker has while it runs."""

    core: EmbeddedBroker

    def __init__(self, wanted_port: int) -> None:
        self.path = ""
        self.tower: Tower | None = None
        self._folder: str | None = None
        self._port = _bind(wanted_port)
        self.port: int = self._port.getsockname()[1]
        self.address = f"{HOST}:{self.port}"

    def make_folder(self) -> str:
        """A temporary folder, which :meth:`release` removes."""
        self._folder = tempfile.mkdtemp(prefix="dafka-")
        return self._folder

    def release(self) -> None:
        """Give everything back; the core is stopped, or was never there."""
        if self.tower is not None:
            self.tower.close()
        self._port.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _bind(wanted_port: int) -> socket:
    """Bind a port: the one a broker had before it was stopped, if it is still free, or any."""
    for port in (wanted_port, 0):
        bound: socket = _socket(sockets.AF_INET, sockets.SOCK_STREAM)
        try:
            bound.bind((HOST, port))
            return bound
        except OSError:
            bound.close()
            if not port:
                raise
    raise AssertionError("unreachable")
