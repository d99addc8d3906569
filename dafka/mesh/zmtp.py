"""The transport of our own: ZMTP on the hub's sockets, read and written in runs (:mod:`dafka.sockets`).

The work that libzmq does for each message is done here for each run: records are recognised in the received
octets (:mod:`dafka.protocol.stretches`) and published as one buffer (:mod:`dafka.mesh.run_octets`). Every
queue has a bound in octets. Peers cannot tell which transport a node has.
"""

from __future__ import annotations

import socket as sockets
import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

from dafka.hub.hub import Hub
from dafka.mesh import limits
from dafka.mesh.curve import Mechanisms
from dafka.mesh.options import EndpointOptions
from dafka.mesh.run_octets import octets_of
from dafka.mesh.speakers import CAUSE, Speakers
from dafka.mesh.transport import Deliver, EndpointBindError, Lend, Note, Sink
from dafka.mesh.zmtp_lane import ZmtpLane
from dafka.protocol.commands import Command
from dafka.protocol.runs import Run, RunReader
from dafka.protocol.stretches import Stretches
from dafka.security.keys import Keys
from dafka.sockets import listening
from dafka.sockets.endpoints import to_bind
from dafka.sockets.leases import Lease
from dafka.sockets.peer import Peer
from dafka.sockets.publisher import Publisher
from dafka.sockets.shared import Bounds
from dafka.sockets.subscriber import Subscriber
from dafka.sockets.tcp import KeepAlive
from dafka.zmtp.cutting import Frames
from dafka.zmtp.subscriptions import Most

_SIOCGIFADDR = 0x8915  # Linux: the IPv4 address of an interface

KEEP_ALIVE = KeepAlive(limits.KEEPALIVE_SECONDS, limits.KEEPALIVE_INTERVAL, limits.KEEPALIVE_PROBES)
HEARING = Bounds(
    read=limits.READ_OCTETS,
    told=limits.TOLD_OCTETS,
    keep_alive=KEEP_ALIVE,
)


class ZmtpTransport:
    """Everything that arrives is told by itself. ``keys``: how peers know each other; None: not at all."""

    tells_reached = True

    def __init__(self, hub: Hub, options: EndpointOptions, sink: Sink, keys: Keys | None = None) -> None:
        self._hub = hub
        self._speakers = None if keys is None else Speakers(keys.server.allows)
        mechanisms = None if keys is None or self._speakers is None else Mechanisms(keys, self._speakers)
        self._client = None if mechanisms is None else mechanisms.client
        self._framing = options.framing
        self._expect = sink.expect
        most = Most(
            prefix_octets=limits.SUBSCRIPTION_OCTETS,
            prefixes=limits.PEER_PREFIXES,
            octets=limits.PEER_PREFIXES_OCTETS,
            all_octets=limits.ALL_PREFIXES_OCTETS,
        )

        def exceeded(cause: str) -> None:
            sink.refused(f"connection-{cause}")

        self._hearing = HEARING._replace(exceeded=exceeded)
        bounds = Bounds(
            queued=limits.QUEUED_OCTETS,
            all_queued=limits.ALL_QUEUED_OCTETS,
            # A peer that is stopped, or whose link is cut, would have its queue filled until TCP gives up.
            keep_alive=KEEP_ALIVE._replace(unread=options.beacon_timeout),
            exceeded=exceeded,
        )
        socket = _bind(options.bind)
        server = None if mechanisms is None else mechanisms.server
        watcher = _Watcher(sink, self._speakers)
        self._publisher = Publisher(hub, socket, watcher=watcher, most=most, bounds=bounds, mechanism=server)
        self.port = to_bind(self._publisher.endpoint).port
        self.subscriber = self._subscriber(_Handler(sink, self._speakers, sink.reached))
        self.answers = self._subscriber(_Handler(sink, self._speakers))

    def lane(self, peers: list[str], note: Note, deliver: Deliver, lend: Lend | None) -> ZmtpLane:
        return ZmtpLane(
            self._hub,
            peers,
            note,
            deliver,
            self._hearing,
            lend=lend,
            mechanism=self._client,
            speakers=self._speakers,
            expect=self._expect,
        )

    def send(self, item: Run | Command) -> None:
        self._publisher.send_encoded(*octets_of(item, self._framing))

    def lease(self, first: bytes) -> Lease | None:
        return self._publisher.lease(first)

    def revoke(self) -> None:
        self._publisher.revoke()

    def count_flight(self, peers: int, octets: int) -> None:
        self._publisher.count_flight(peers, octets)

    def look(self) -> None:
        pass

    def read(self) -> bool:
        return False

    def metrics(self) -> dict[str, Any]:
        metrics = self._publisher.metrics()
        return {f"endpoint_{name}": metrics[name] for name in ("dropped", "queued_octets")}

    def close(self) -> None:
        self.subscriber.close()
        self.answers.close()
        self._publisher.close()

    def _subscriber(self, handler: _Handler) -> Subscriber:
        reader = RunReader()
        return Subscriber(
            self._hub,
            handler=handler,
            max_message=limits.MESSAGE_OCTETS,
            make_taker=lambda: Stretches(reader),
            bounds=self._hearing,
            mechanism=self._client,
            expect=self._expect,
        )


class _Handler:
    """A handler of messages that always have room."""

    def __init__(
        self, sink: Sink, speakers: Speakers | None, reached: Callable[[str], object] = lambda peer: None
    ) -> None:
        self._sink = sink
        self._speakers = speakers
        self._reached = reached

    def joined(self, peer: Peer) -> None:
        self._reached(peer.dialled)

    def messages(self, peer: Peer, messages: list[Frames]) -> None:
        assert isinstance(peer.taker, Stretches)
        inbound = peer.taker.read(messages)
        if self._speakers is not None:
            inbound = self._speakers.heard(peer.key, inbound)
        self._sink.received(inbound, peer.address)

    def left(self, peer: Peer) -> None:
        pass


class _Watcher:
    """Tells of subscriptions, except those of stores from nodes that may not be stores."""

    def __init__(self, sink: Sink, speakers: Speakers | None) -> None:
        self._sink = sink
        self._speakers = speakers
        self.cancelled = sink.cancelled

    def allows(self, peer: Peer, prefix: bytes) -> bool:
        if self._speakers is None or self._speakers.may_subscribe(peer.key, prefix):
            return True
        self._sink.refused(CAUSE)
        return False

    def subscribed(self, peer: Peer, prefix: bytes) -> None:
        self._sink.subscribed(prefix)


def _bind(interface: str) -> Any:
    host = "" if interface == "*" else interface.removeprefix("[").removesuffix("]")
    try:
        return listening.bind(_address_of(host) or host, 0)
    except OSError as error:
        raise EndpointBindError(f"a node cannot bind a port of {interface!r}: {error}") from error


def _address_of(name: str) -> str:
    """The address of an interface by its name, as libzmq takes it; empty if no interface has that name."""
    try:
        sockets.if_nametoindex(name)
        from fcntl import ioctl  # not everywhere
    except (OSError, ImportError, ValueError):
        return ""
    with closing(sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)) as probe:
        answer = ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()))
    return sockets.inet_ntoa(answer[20:24])
