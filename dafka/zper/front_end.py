"""Zper: ZPER's servers, as the front end of a broker.

Each server is a socket of its own (:mod:`dafka.sockets`). The modules beside this one have its behaviour
towards clients.
"""

from __future__ import annotations

import socket as sockets
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain, islice
from typing import Any

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.front_end import FrontEnd
from dafka.hub.hub import Hub
from dafka.security.keys import ServerKeys
from dafka.sockets import endpoints, listening
from dafka.sockets.publisher import Publisher
from dafka.sockets.router import Handler, Router
from dafka.zmtp.mechanisms import MakeMechanism
from dafka.zper import limits
from dafka.zper.acks import Acks
from dafka.zper.cluster.controller import Controller
from dafka.zper.connected import Connected
from dafka.zper.discarded import Discarded
from dafka.zper.places import Places
from dafka.zper.reader import Reader
from dafka.zper.relay import Relay
from dafka.zper.replicas import Replicas
from dafka.zper.settings import Settings
from dafka.zper.singles import SinglesTaker
from dafka.zper.streams import Streams
from dafka.zper.writer import Writer


class Zper(FrontEnd):
    """The servers that the settings name, on a broker. Hub side; raises OSError if an address is taken."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        settings: Settings,
        before: Mapping[str, str],
        keys: ServerKeys | None = None,
    ) -> None:
        self._discarded = Discarded()
        mechanism = None if keys is None else _mechanism(keys)
        bound = _bind_all(settings, before)
        self._publisher = Publisher(hub, bound.pop("ack"), mechanism=mechanism) if "ack" in bound else None
        self._acks = Acks(self._publisher)
        self._replicas = Replicas(hub, broker, settings.writer_replica, settings.writer_replica_sync)
        self._writer = Writer(hub, broker, settings, self._discarded, self._acks.written, self._replicas)
        places = Places(broker, settings.segment_size)
        poll = min(settings.relay_poll / 1000, limits.POLL_SECONDS)
        self._streams = Streams(hub, poll, follows=False)
        self._relayed = Streams(hub, poll, follows=True)
        self._reader = Reader(places, self._streams, self._discarded)
        self._relay = relay = Relay(places, self._relayed, self._discarded)
        self._controller = Controller(hub, broker, settings.controller_quorum, self._health, self._discarded)
        handlers: dict[str, Handler] = {
            "writer": self._writer,
            "reader": self._reader,
            "relay": relay,
            "controller": self._controller,
        }
        largest = {"controller": limits.CONTROLLER_REQUEST_OCTETS}
        self._routers = {
            name: Router(
                hub,
                socket,
                handler=handlers[name],
                max_message=largest.get(name, settings.max_message),
                mechanism=mechanism,
                make_taker=partial(SinglesTaker, settings.max_message) if name == "writer" else None,
            )
            for name, socket in bound.items()
        }
        self._addresses = {name: router.endpoint for name, router in self._routers.items()}
        if self._publisher is not None:
            self._addresses["ack"] = self._publisher.endpoint
        self._controller.start(self._addresses)

    @property
    def addresses(self) -> Mapping[str, str]:
        """``tcp://host:port`` of each server: ``writer``, ``reader``, ``ack``, ``relay``, ``controller``.

        Those that are not served are not in it; asked for by itself, such an address is a LookupError.
        """
        return self._addresses

    def _address(self, name: str) -> str:
        if name not in self._addresses:
            raise LookupError(f"there is no such server: the option {name}_bind gives it no address")
        return self._addresses[name]

    @property
    def writer_address(self) -> str:
        """Where clients write."""
        return self._address("writer")

    @property
    def reader_address(self) -> str:
        """Where clients fetch and stream."""
        return self._address("reader")

    @property
    def ack_address(self) -> str:
        """Where clients subscribe to acks."""
        return self._address("ack")

    @property
    def relay_address(self) -> str:
        """Where clients get what is written while they are connected."""
        return self._address("relay")

    @property
    def controller_address(self) -> str:
        """Where clients ask for the nodes of the cluster."""
        return self._address("controller")

    def metrics(self) -> dict[str, Any]:
        """Figures since the start, by the names of :mod:`dafka.mesh.metrics`."""
        sums: Counter[str] = Counter()
        for server in self._servers:
            sums.update(server.metrics())
        return {
            "zper_connections": sums["connections"],
            "zper_accepted": sums["accepted"],
            "zper_queued_bytes": sums["queued_octets"],
            **self._writer.metrics(),
            **self._reader.metrics(),
            "zper_streams": self._streams.running + self._relayed.running,
            "zper_messages_streamed": self._streams.messages + self._relayed.messages,
            "zper_bytes_streamed": self._streams.octets + self._relayed.octets,
            "zper_acks": self._acks.told,
            "zper_acks_dropped": sums["dropped"],
            "zper_replica_lag": self._replicas.lag(),
        }

    def clients(self, most: int) -> list[Connected]:
        """The clients that are connected, so many at most."""
        servers = (self._writer, self._reader, self._relay)
        return list(islice(chain.from_iterable(one.clients() for one in servers), most))

    def cluster(self) -> list[dict[str, Any]]:
        """All nodes that the ZPController knows, this one first."""
        return self._controller.nodes()

    def _health(self) -> dict[str, int]:
        """The figures of this node's health that other nodes are told."""
        figures = self.metrics()
        lag = figures.pop("zper_replica_lag")
        figures["zper_replica_lag"] = max(lag.values(), default=0)
        return {name.removeprefix("zper_"): value for name, value in figures.items()}

    @property
    def _servers(self) -> list[Router | Publisher]:
        publishers = [] if self._publisher is None else [self._publisher]
        return [*self._routers.values(), *publishers]

    @property
    def discarded(self) -> Mapping[str, int]:
        """Discarded messages of clients, and connections that were closed for malformed input."""
        counted = Counter({f"zper-{cause}": count for cause, count in self._discarded.counted.items()})
        for server in self._servers:
            counted.update({f"zper-{cause}": count for cause, count in server.discarded.items()})
        return counted

    def close(self) -> None:
        """Flush what was taken, answer it, and disconnect all clients."""
        with ExitStack() as rest:  # each of them, whatever becomes of those before; the last one first
            for server in self._servers:
                rest.callback(server.close)
            rest.callback(self._replicas.close)
            rest.callback(self._writer.close)
            rest.callback(self._controller.close)


def _mechanism(keys: ServerKeys) -> MakeMechanism:
    from dafka.zmtp.curve import CurveServer  # its cryptography is not always installed

    return lambda check: CurveServer(check, *keys)


def _bind_all(settings: Settings, before: Mapping[str, str]) -> dict[str, Any]:
    """A bound socket for each server that is wanted."""
    wanted = {
        "writer": settings.writer_bind,
        "reader": settings.reader_bind,
        "ack": settings.ack_bind,
        "relay": settings.relay_bind,
        "controller": settings.controller_bind,
    }
    bound = {}
    with ExitStack() as undo:
        for name, address in wanted.items():
            if address:
                bound[name] = socket = _bind(address, before.get(name), settings)
                undo.callback(listening.close, socket)
        undo.pop_all()
    return bound


def _bind(address: str, known: str | None, settings: Settings) -> Any:
    """A socket bound to an address: where any port will do, to the one that is known if it is free."""
    endpoint = endpoints.to_bind(address)
    socket = None
    if not endpoint.port and known is not None:
        with suppress(OSError):
            socket = listening.bind(endpoint.host, endpoints.to_bind(known).port)
    if socket is None:
        socket = listening.bind(endpoint.host, endpoint.port)
    # Before it listens: connections have what their port has.
    for option, octets in (
        (sockets.SO_SNDBUF, settings.send_buffer),
        (sockets.SO_RCVBUF, settings.receive_buffer),
    ):
        with suppress(OSError, OverflowError):  # more than the system allows does no harm
            socket.setsockopt(sockets.SOL_SOCKET, option, min(octets, 2**31 - 1))
    return socket
