"""One connection for each pair of nodes.

Two nodes that connect to each other at the same moment have two connections. The originator, which is the
same for both, lets the first through; the second waits for its end, and is then refused as redundant, or let
through when the first came to nothing.
"""

from __future__ import annotations

from enum import Enum, auto


class Decision(Enum):
    PASS = auto()
    WAIT = auto()
    REDUNDANT = auto()


class Gate:
    """Connections are numbers."""

    def __init__(self) -> None:
        self._holders: dict[bytes, int] = {}
        self._waiting: dict[bytes, list[int]] = {}
        self._peers: set[bytes] = set()

    def ask(self, connection: int, peer: bytes) -> Decision:
        """May this connection go on? After WAIT, :meth:`left` says when to ask again."""
        if self._holders.setdefault(peer, connection) == connection:
            return Decision.PASS
        if peer in self._peers:
            return Decision.REDUNDANT
        waiting = self._waiting.setdefault(peer, [])
        if connection not in waiting:
            waiting.append(connection)
        return Decision.WAIT

    def established(self, peer: bytes) -> list[int]:
        """The handshake is over. Those that waited for its end are to ask again, in this order."""
        self._peers.add(peer)
        return self._waiting.pop(peer, [])

    def left(self, connection: int, peer: bytes) -> list[int]:
        """The connection is gone. Those that waited for its end are to ask again, in this order."""
        waiting = self._waiting.get(peer, [])
        if connection in waiting:
            waiting.remove(connection)
            return []
        if self._holders.get(peer) != connection:
            return []
        del self._holders[peer]
        self._peers.discard(peer)
        return self._waiting.pop(peer, [])
