"""Broker: a Kafka broker inside this process, with its data in a folder.

This is the thread side: it starts and stops the :class:`~dafka.broker.embedded.broker.EmbeddedBroker` in the
hub, with what that needs around it (:mod:`dafka.broker.resources`: a temporary folder, a tower of its own, a
port of its own). The port makes ``bootstrap_servers`` a name that no other process can have, and clients of
this process find the broker by it. Without ``listen`` the port is only bound; with it Kafka's clients connect
to it.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from dafka.broker import running
from dafka.broker.embedded.broker import EmbeddedBroker
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.front_end import FrontEndOptions
from dafka.broker.limits import OFFSETS_RETENTION
from dafka.broker.options import BrokerOptions
from dafka.broker.quotas.settings import check_quota_settings
from dafka.broker.resources import Resources
from dafka.broker.topics.group_configs import check_started_with
from dafka.commit.retention import CHECK_INTERVAL
from dafka.hub.dropped import when_dropped
from dafka.hub.hub import get_hub
from dafka.log import Durability, OnDamage
from dafka.log.layout import folder_name
from dafka.mesh import metrics_port
from dafka.mesh.address import TowerLike
from dafka.security.acls.options import ServerAcls
from dafka.security.keys import KeyFolder
from dafka.security.sasl.options import ServerSasl
from dafka.security.tls import ServerTls
from dafka.sockets.hosts import host_and_port

log = logging.getLogger(__name__)

_Self = TypeVar("_Self", bound="Broker")  # typing.Self came with Python 3.11


class Broker:
    """A broker in this process. ``with Broker() as broker:`` starts and stops it.

    ``path``: its folder, created if missing, one process at a time; None is a temporary folder that goes
    with the broker. ``tower``: the mesh to join, as for :class:`dafka.Producer`; None is a tower of its own,
    which is there from when :attr:`tower` is first asked for.
    ``default_partitions``: partitions of a topic that is created without saying how many.
    ``auto_create_topics``: whether clients create a topic by using it. ``durability``: what an acknowledged
    record survives, ``"process"`` (the death of this process) or ``"power"`` (a power cut).

    ``retention_ms`` and ``retention_bytes``: how long records are kept, and how many bytes of them in each
    partition, in topics that are not configured otherwise (Kafka's ``log.retention.ms`` and ``.bytes``).
    None, the default, keeps everything, where Kafka has a week: a log inside a program does not forget
    by itself. ``retention_check_interval``: seconds between two looks at what is to go; a change of
    configuration is followed at once. ``offsets_retention``: seconds for which the offsets of a group without
    members are kept, a week by default as in Kafka (``offsets.retention.minutes``); None or -1: for ever.
    ``on_damage``: what reading does about a stored value that is damaged:
    ``"raise"`` answers with an error (CorruptRecordError), ``"skip"`` logs the place and goes on behind it.

    ``listen``: ``"HOST:PORT"`` (PORT 0: any) where Kafka's clients of other processes connect; None: do
    not listen. Several have a protocol each: ``"PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9093"``; ``tls`` is
    the certificate of those with TLS (:class:`dafka.security.ServerTls`), and ``sasl`` how clients of
    ``SASL_SSL://`` and ``SASL_PLAINTEXT://`` say who they are (:class:`dafka.security.ServerSasl`; None: by
    SCRAM). ``advertised``: ``"HOST"``,
    ``"HOST:PORT"`` or ``"SSL://HOST:PORT,..."``, the addresses that clients are told, needed for a HOST that
    is every interface (``0.0.0.0``).

    ``acls``: :class:`dafka.security.ServerAcls`, with which clients of the listeners may do what access
    control lists allow; None: everything. Clients of this process may do everything in any case.

    ``zper``: :class:`dafka.zper.ZperOptions`, with which ZeroMQ programs write and read as well; :attr:`zper`
    then tells the addresses. None: none of that.

    ``console``: :class:`dafka.console.ConsoleOptions`, with which a browser shows the broker;
    :attr:`console` then tells where. None: no console.

    ``keys``: a folder of keys (:class:`dafka.security.KeyFolder`), by which the broker, other nodes of its
    mesh and ZPER's clients know each other; None: everybody is believed. Kafka's clients do not need any.

    ``group_settings``: settings of groups by Kafka's names, for all groups that have none of their own, and
    their bounds: ``{"group.consumer.session.timeout.ms": "10000"}``. Raises ValueError for one that does not
    exist, or is out of its bounds. ``group.consumer.migration.policy`` is whether a group may change its
    protocol while it has members. ``quota_settings``: those of quotas, the windows in which use is counted:
    ``{"quota.window.num": "11", "quota.window.size.seconds": "1"}``.

    The broker runs until :meth:`stop`. One that neither the program nor a client in it has any more is
    stopped, with a ResourceWarning.

    :meth:`start` raises the log's errors: :class:`dafka.log.LogLockedError`,
    :class:`dafka.log.LogVersionError`, :class:`dafka.log.NotALogError`, :class:`dafka.log.LogOpenError`; and
    OSError if it cannot listen on the address.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        tower: TowerLike = None,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        durability: Durability = "process",
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        retention_check_interval: float = CHECK_INTERVAL,
        offsets_retention: float | None = OFFSETS_RETENTION,
        on_damage: OnDamage = "raise",
        listen: str | None = None,
        advertised: str | None = None,
        tls: ServerTls | None = None,
        sasl: ServerSasl | None = None,
        acls: ServerAcls | None = None,
        zper: FrontEndOptions | None = None,
        console: FrontEndOptions | None = None,
        keys: KeyFolder | None = None,
        group_settings: Mapping[str, str] | None = None,
        quota_settings: Mapping[str, str] | None = None,
    ) -> None:
        self._options = BrokerOptions(
            tower=tower,
            default_partitions=default_partitions,
            auto_create_topics=auto_create_topics,
            durability=durability,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            retention_check_interval=retention_check_interval,
            offsets_retention=offsets_retention,
            on_damage=on_damage,
            listen=listen,
            advertised=advertised,
            tls=tls,
            sasl=sasl,
            acls=acls,
            zper=zper,
            console=console,
            keys=keys,
            group_settings=group_settings,
            quota_settings=quota_settings,
        )
        check_started_with(group_settings or {})
        check_quota_settings(quota_settings or {})
        self._path = None if path is None else os.path.abspath(folder_name(path))
        self._hub = get_hub()
        self._running: Resources | None = None
        self._not_dropped: Callable[[], object] = lambda: None
        self._last_ports: list[int] = []
        self._last_addresses: Mapping[str, str] = {}

    def start(self: _Self) -> _Self:
        """Open the folder and join the mesh; does nothing if it runs already. Returns the broker."""
        self._hub.run(self._start)
        return self

    def stop(self) -> None:
        """Commit what has been accepted, leave the mesh and close the folder.

        Waiting calls of clients end with :class:`~dafka.broker.interface.errors.BrokerStoppedError`. Stopping
        twice is allowed, and so is starting again.
        """
        self._hub.run(self._stop)

    @property
    def running(self) -> bool:
        """Whether the broker is started."""
        state = self._running
        return state is not None and not state.stopped

    @property
    def write_failure(self) -> Exception | None:
        """Why this broker can write nothing any more until it is started again; None while it can."""
        return self._state().core.write_failure

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` for clients: those of this process, and with ``listen`` all others."""
        return self._state().address

    @property
    def listeners(self) -> dict[str, str]:
        """``host:port`` of each listener, as clients are told, by its protocol."""
        told = [door.told for door in self._state().doors]
        return {one.protocol: host_and_port(one.host, one.port) for one in told}

    @property
    def path(self) -> str:
        """The folder of the data."""
        return self._path if self._path is not None else self._state().path

    @property
    def tower(self) -> TowerLike:
        """The tower that other nodes take to join the broker's mesh."""
        if self._options.tower is not None:
            return self._options.tower
        state = self._state()
        _ = state.core.node  # has it join the mesh
        return state.tower

    @property
    def zper(self) -> Any:
        """The :class:`dafka.zper.front_end.Zper` that serves ZeroMQ programs; None without the option."""
        return self._state().zper

    @property
    def console(self) -> str | None:
        """The address that a browser shows the broker at; None without the option."""
        console = self._state().console
        return None if console is None else console.url

    def renew(self) -> None:
        """Read certificates and keys again if they have changed, without waiting for a connection."""
        for tls in {door.tls for door in self._state().doors if door.tls is not None}:
            tls.renew()

    def metrics(self) -> dict[str, Any]:
        """The broker's metrics, as names and numbers: its node on the mesh, its listener, and its servers for
        ZeroMQ programs. See :mod:`dafka.mesh.metrics`."""
        state = self._state()
        _ = state.core.node  # has it join the mesh, and load what that takes in this thread
        listener = {} if state.listener is None else state.listener.metrics()
        zper = {} if state.zper is None else state.zper.metrics()

        def read() -> dict[str, Any]:
            node = dict(state.core.node.metrics())
            node["mesh_lag"] = node.pop("lag")  # not what a broker's user takes for its lag: that of a group
            return {**node, **listener, **zper, "discarded": self.discarded}

        return self._hub.run(read)

    def announce_metrics(self, port: int) -> None:
        """Tell who looks at the mesh that these are served at this port of the broker's host, by HTTP. A
        broker that has not joined a mesh has nobody to tell."""
        core = self._state().core
        metrics_port.check_port(port)
        if core.joined is not None:
            self._hub.run(metrics_port.announce, core.joined, port)

    @property
    def discarded(self) -> dict[str, int]:
        """How many messages from the mesh were malformed or not for this broker to take, how many
        connections of the listener were closed for what came on them, and what ZeroMQ programs sent in vain,
        by cause."""
        state = self._state()
        node = state.core.node
        discarded = node.endpoint.discarded + node.discarded
        if state.listener is not None:
            discarded += state.listener.discarded
        if state.zper is not None:
            discarded += Counter(state.zper.discarded)
        return dict(discarded)

    def __enter__(self: _Self) -> _Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = self._running
        return state.name if state and not state.stopped else f"<Broker {self._path!r}, stopped>"

    # -- in the hub -----------------------------------------------------------------------------

    def _state(self) -> Resources:
        self._hub.check()
        state = self._running
        if state is None or state.stopped:
            folder = self._path or "a temporary folder"
            raise BrokerStoppedError(f"the broker on {folder} is not running; start() it")
        return state

    def _start(self) -> None:
        with running.changing:
            if self.running:
                return
            state = self._open()
            try:
                state.start_listening(self._hub, self._options, self._last_addresses)
            except BaseException:
                state.stop()
                raise
            self._running = state
            self._last_ports = state.bound_ports
            self._last_addresses = {
                name: address for one in state.front_ends for name, address in one.addresses.items()
            }
            running.add(self, state.core, state.path, state.stop)
            log.info("%s is started", state.name)
            self._not_dropped = when_dropped(self, self._hub, state.name, "stop()", state.stop)

    def _open(self) -> Resources:
        state = Resources(self._last_ports, self._options)
        try:
            state.path = self._path or state.make_folder()
            state.core = EmbeddedBroker(
                self._hub, state.path, self._options, state.mesh, state.host, state.port
            )
        except BaseException:
            state.release()
            raise
        return state

    def _stop(self) -> None:
        with running.changing:
            self._not_dropped()
            state, self._running = self._running, None
            if state is not None:
                state.stop()
