"""The resources of a running broker: its ports, its folder, its tower, its listener and its front ends.

The ports are bound first, because a port is the broker's name: ``bootstrap_servers``. Then the log is opened,
and clients are let in last. :meth:`Resources.stop` lets go of everything in the opposite order.
"""

from __future__ import annotations

import logging
import shutil
import socket as sockets
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from gevent import monkey

from dafka.broker import running
from dafka.broker.embedded.broker import EmbeddedBroker
from dafka.broker.interface.front_end import Beside, FrontEnd
from dafka.broker.listening import LOOPBACK, PLAINTEXT, Listen, client_host, warn_if_open
from dafka.broker.options import BrokerOptions
from dafka.broker.quotas.settings import windows
from dafka.broker.quotas.throttles import Throttles
from dafka.broker.server.context import Told
from dafka.broker.server.listener import Door, Listener, with_sasl
from dafka.hub.hub import Hub
from dafka.mesh.address import tower_addresses
from dafka.mesh.options import EndpointOptions
from dafka.security.renewing import Renewed
from dafka.sockets.hosts import host_and_port
from dafka.sockets.listening import bind as bind_listener
from dafka.sockets.listening import close as close_listener

if TYPE_CHECKING:
    from socket import socket

    from dafka.mesh.tower import Tower

log = logging.getLogger(__name__)

_socket = monkey.get_original("socket", "socket")


class Resources:
    """The resources of one run. Nothing here refers to the ``Broker``, which the program may drop."""

    core: EmbeddedBroker
    listener_class = Listener

    def __init__(self, wanted_ports: list[int], options: BrokerOptions) -> None:
        self.path = ""
        self.stopped = False
        self._given_tower = options.tower
        self._keys = options.keys
        self.tower: Tower | None = None
        self.folder: str | None = None
        self.listener: Listener | None = None
        self.zper: FrontEnd | None = None
        self.console: FrontEnd | None = None
        self.doors: list[Door] = []
        self._port: socket | None = None  # without a listener
        try:
            self._bind(wanted_ports, options)
        except BaseException:
            self._close_ports()
            raise
        bound = self.doors[0].told if self._port is None else Told(PLAINTEXT, *self._port.getsockname()[:2])
        self.host, self.port = bound.host, bound.port
        self.address = host_and_port(self.host, self.port)

    @property
    def name(self) -> str:
        return f"<Broker {self.address} on {self.path!r}>"

    @property
    def front_ends(self) -> list[FrontEnd]:
        """The front ends that serve."""
        return [one for one in (self.zper, self.console) if one is not None]

    @property
    def bound_ports(self) -> list[int]:
        """The ports, as the system has them."""
        bound = [door.socket for door in self.doors] if self._port is None else [self._port]
        return [one.getsockname()[1] for one in bound]

    def _bind(self, wanted_ports: list[int], options: BrokerOptions) -> None:
        if not options.listeners:
            self._port = _bind(wanted_ports[0] if wanted_ports else 0)
            return
        tls = None if options.tls is None else Renewed(options.tls)
        for position, listen in enumerate(options.listeners):
            socket = _bind_listener(listen, wanted_ports[position] if wanted_ports else 0)
            host, port = socket.getsockname()[:2]
            told = Told(listen.protocol, client_host(listen, host), listen.advertised_port or port)
            self.doors.append(Door(socket, told, tls if listen.is_secure else None))

    def _close_ports(self) -> None:
        for door in self.doors:
            close_listener(door.socket)
        if self._port is not None:
            self._port.close()

    def make_folder(self) -> str:
        """A temporary folder, which :meth:`release` removes."""
        self.folder = tempfile.mkdtemp(prefix="dafka-")
        return self.folder

    def mesh(self) -> EndpointOptions:
        """Where the broker joins the mesh: at the tower it was given, or at one of its own from now on."""
        tower = self._given_tower
        if self._keys is not None:
            self._keys.check_store()
        if tower is None:
            from dafka.mesh.tower import Tower  # brings ZeroMQ along

            if self.tower is None:
                self.tower = Tower(keys=self._keys)
            tower = self.tower
        return EndpointOptions(tower_addresses(tower), keys=self._keys)

    def start_listening(self, hub: Hub, options: BrokerOptions, before: Mapping[str, str]) -> None:
        """Let the clients of Kafka's and ZPER's protocols in, as far as there are addresses for them."""
        self.doors = with_sasl(self.doors, options.listeners, options.sasl, self.core.accounts)
        for listen, door in zip(options.listeners, self.doors, strict=True):
            warn_if_open(listen, door.told.host, door.told.port, options.acls is not None)
        if self.doors:
            given = options.quota_settings or {}
            counted = windows(given), windows(given, "controller.")
            throttles = Throttles(self.core.quotas, options.clock.monotonic, *counted)
            self.listener = self.listener_class(hub, self.core, self.doors, throttles, self.core.acls)
        if options.zper is not None:
            keys = None if options.keys is None else options.keys.load_server()
            self.zper = options.zper.open(hub, self.core, before, keys)
        if options.console is not None:
            listener = None if self.listener is None else self.listener.metrics
            where = {door.told.protocol: _bound(door) for door in self.doors}
            self.console = options.console.open(
                hub, self.core, before, beside=Beside(listener, where, self.zper)
            )

    def stop(self) -> None:
        """Disconnect clients, commit what has been accepted and release everything."""
        with running.changing:
            if self.stopped:
                return
            self.stopped = True
            log.info("%s stops: clients are disconnected, accepted records are committed", self.name)
            with ExitStack() as rest:  # each of them, whatever becomes of those before; the last one first
                rest.callback(self.release)
                rest.callback(running.remove, self.core)
                rest.callback(self.core.close)
                for front_end in self.front_ends:
                    rest.callback(front_end.close)
                if self.listener is not None:
                    rest.callback(self.listener.close)

    def release(self) -> None:
        """Release everything; the core is closed, or was never made."""
        if self.tower is not None:
            self.tower.close()
        self._close_ports()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _bind(wanted_port: int) -> socket:
    """Bind a port: the one a broker had before it was stopped, if it is still free, or any."""
    for port in (wanted_port, 0):
        bound: socket = _socket(sockets.AF_INET, sockets.SOCK_STREAM)
        try:
            bound.bind((LOOPBACK, port))
            return bound
        except OSError:
            bound.close()
            if not port:
                raise
    raise AssertionError("unreachable")


def _bind_listener(listen: Listen, wanted_port: int) -> Any:
    """Bind the port that users want, or the one that was found before the broker was stopped, or any."""
    host = "" if listen.host == "*" else listen.host
    if not listen.port and wanted_port:
        with suppress(OSError):
            return bind_listener(host, wanted_port)
    return bind_listener(host, listen.port)


def _bound(door: Door) -> str:
    """``host:port`` at which a door is reached within this machine, whatever clients are told."""
    host, port = door.socket.getsockname()[:2]
    return host_and_port({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)
