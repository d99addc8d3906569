"""The stores that a node is connected to, told from what they subscribe to.

A store subscribes to the CONSUMER-HELLO for itself (``W`` and its address), and nobody else does. Stores of
ours also subscribe to the TRIMMED for themselves (``T``): they fetch under the address that they are known
by, and they say when records are gone. A C store fetches under another address, and says nothing.
"""

from __future__ import annotations


class KnownStores:
    """The stores that are connected now. The node that hears subscriptions keeps it up to date."""

    def __init__(self) -> None:
        self.present: set[bytes] = set()
        """The addresses of all stores."""
        self.ours: set[bytes] = set()
        """The addresses of those that speak TRIMMED."""
        self._trimmed: set[bytes] = set()  # addresses of nodes that hear TRIMMED

    def subscribed(self, prefix: bytes) -> None:
        """A node is subscribed to ``prefix`` now."""
        address = prefix[1:]
        if not 0 < len(address) <= 255:
            return
        if prefix[:1] == b"W":
            self.present.add(address)
        elif prefix[:1] == b"T":
            self._trimmed.add(address)
        if address in self.present and address in self._trimmed:
            self.ours.add(address)

    def unsubscribed(self, prefix: bytes) -> None:
        """Nobody is subscribed to ``prefix`` any more."""
        address = prefix[1:]
        if prefix[:1] == b"W":
            self.present.discard(address)
        elif prefix[:1] == b"T":
            self._trimmed.discard(address)
        else:
            return
        self.ours.discard(address)
