"""Which addresses to connect to, and when again; and what of it subscribers are told.

An address whose connection fails or is refused is tried again after its interval. When an established peering
is lost it is tried at once, then after the interval; after the interval too when the peer has said goodbye. A
peer that was left by this side is not tried again, and an interval of 0 means one attempt only. Several
addresses may lead to one peer: those whose connection is redundant rest as long as it is one.

Everything is told twice, as libbroker does it: that an endpoint is reachable (or not any more), and that it
is a direct peer, with its address; and at the end, the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.overlay.core import Output as CoreOutput
from dafka.overlay.peering.outputs import PeerDown, PeerUp, Refused
from dafka.overlay.peering.statuses import EndpointInfo, Error, NetworkInfo, Status
from dafka.overlay.routing.outputs import Discovered, Unreachable
from dafka.overlay.wire.codes import ErrorCode, StatusCode


class Open(NamedTuple):
    """Connect to this address; say then :meth:`Connector.opened` or :meth:`Connector.failed`."""

    address: NetworkInfo


Output = Open | Status | Error

_NEVER = float("inf")


class _Target:
    """An address to be connected to. ``due`` is when to try it, ``peer`` who was found there."""

    __slots__ = ("address", "connection", "due", "peer")

    def __init__(self, address: NetworkInfo) -> None:
        self.address = address
        self.due = _NEVER
        self.connection: int | None = None
        self.peer: bytes | None = None


class Connector:
    """The addresses of one endpoint."""

    def __init__(self) -> None:
        self._targets: dict[tuple[str, int], _Target] = {}
        self._places: dict[int, NetworkInfo] = {}  # of connections
        self._peers: set[bytes] = set()
        self._unreachable: set[bytes] = set()  # of the peers: told when their connection has ended

    @property
    def addresses(self) -> list[NetworkInfo]:
        """The addresses that are connected to, or tried again and again."""
        return [target.address for target in self._targets.values()]

    def peer(self, address: NetworkInfo) -> list[Output]:
        """Connect to an address, and stay connected. A known one takes over the new interval."""
        key = address.address, address.port
        known = self._targets.get(key)
        if known is not None:
            known.address = address
            return []
        self._targets[key] = _Target(address)
        return [Open(address)]

    def unpeer(self, address: str, port: int) -> tuple[bytes | None, list[Output]]:
        """Do not connect to an address any more. The peer there, if there is one: it is to be left."""
        target = self._targets.pop((address, port), None)
        if target is None:
            where = EndpointInfo(None, NetworkInfo(address, port))
            return None, [Error(ErrorCode.PEER_INVALID, where, "no such peer when unpeering")]
        return target.peer, []

    def opened(self, address: NetworkInfo, connection: int) -> None:
        """There is a connection, and its handshake begins."""
        self._places[connection] = address
        target = self._targets.get((address.address, address.port))
        if target is not None:
            target.connection = connection

    def is_wanted(self, connection: int) -> bool:
        """Whether its address is still one to connect to; if not, the connection is forgotten."""
        if self._target_of(connection) is not None:
            return True
        self._places.pop(connection, None)
        return False

    def accepted(self, connection: int, address: str, port: int) -> None:
        """Somebody else has connected to this endpoint."""
        self._places[connection] = NetworkInfo(address, port)

    def failed(self, now: float, address: NetworkInfo) -> list[Output]:
        """No connection could be made."""
        target = self._targets.get((address.address, address.port))
        if target is not None:
            self._again(target, now + address.retry)
        where = EndpointInfo(None, address)
        return [Error(ErrorCode.PEER_UNAVAILABLE, where, "unable to connect to remote peer")]

    def hear(self, now: float, output: CoreOutput) -> list[Output]:
        """Any output of the core. Returns the events for subscribers."""
        match output:
            case PeerUp(connection, peer):
                self._peers.add(peer)
                target = self._target_of(connection)
                if target is not None:
                    target.peer = peer
                return [self._status(StatusCode.PEER_ADDED, peer, connection, "handshake successful")]
            case PeerDown():
                return self._lose(now, output)
            case Refused(connection, peer, code, description, redundant):
                return self._refuse(now, connection, peer, code, description, redundant)
            case Discovered(peer) if peer in self._unreachable:
                self._unreachable.discard(peer)
            case Unreachable(peer) if peer in self._peers:
                self._unreachable.add(peer)
            case Discovered(peer):
                info = EndpointInfo(peer)
                return [Status(StatusCode.ENDPOINT_DISCOVERED, info, "found a new peer in the network")]
            case Unreachable(peer):
                return [_unreachable(peer)]
        return []

    def tick(self, now: float) -> list[Output]:
        """The addresses that are due. To be called a few times a second."""
        outputs: list[Output] = []
        for target in self._targets.values():
            if target.due <= now:
                target.due = _NEVER
                outputs.append(Open(target.address))
        return outputs

    def _lose(self, now: float, down: PeerDown) -> list[Output]:
        connection, peer, removed, said_goodbye, reason = down
        self._peers.discard(peer)
        code = StatusCode.PEER_REMOVED if removed else StatusCode.PEER_LOST
        text = "removed peering" if removed else "lost connection to remote peer"
        text = f"{text}: {reason}" if reason else text
        status = self._status(code, peer, connection, text)
        self._places.pop(connection, None)
        for target in [one for one in self._targets.values() if one.peer == peer]:
            target.connection = target.peer = None
            if removed:
                del self._targets[target.address.address, target.address.port]
            else:
                self._again(target, now + target.address.retry if said_goodbye else now)
        if peer not in self._unreachable:
            return [status]
        self._unreachable.discard(peer)
        return [status, _unreachable(peer)]

    def _refuse(
        self, now: float, connection: int, peer: bytes | None, code: int, text: str, redundant: bool
    ) -> list[Output]:
        target = self._target_of(connection)
        where = self._places.pop(connection, None)
        if target is None:
            return []
        target.connection = None
        if redundant and peer is not None:
            target.peer = peer  # it rests, unless the other connection has ended meanwhile
            if peer not in self._peers:
                target.due = now + target.address.retry
            return []
        self._again(target, now + target.address.retry)
        known = code if code in list(ErrorCode) else ErrorCode.UNSPECIFIED
        return [Error(ErrorCode(known), EndpointInfo(peer, where), text)]

    def _again(self, target: _Target, due: float) -> None:
        if target.address.retry > 0:
            target.due = due
        else:
            self._targets.pop((target.address.address, target.address.port), None)

    def _target_of(self, connection: int) -> _Target | None:
        return next((one for one in self._targets.values() if one.connection == connection), None)

    def _status(self, code: StatusCode, peer: bytes, connection: int, text: str) -> Status:
        return Status(code, EndpointInfo(peer, self._places.get(connection)), text)


def _unreachable(peer: bytes) -> Status:
    return Status(StatusCode.ENDPOINT_UNREACHABLE, EndpointInfo(peer), "lost the last path")
