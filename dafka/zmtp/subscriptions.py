"""The subscriptions of a publisher's subscribers: prefixes of a message's first frame.

A message's subscribers are found by looking up each length that any prefix has, so the cost of a message
does not depend on how many prefixes there are, and prefixes have limits.PREFIX_OCTETS at most.

Subscriptions add up (23/ZMTP): a prefix subscribed to twice is to be cancelled twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from dafka.zmtp import limits
from dafka.zmtp.errors import TooLargeError

Peer = TypeVar("Peer", bound=Hashable)


class Subscriptions(Generic[Peer]):
    """The subscriptions of all peers of one publisher."""

    def __init__(self) -> None:
        self.octets = 0
        self._peers: dict[bytes, dict[Peer, None]] = {}  # by prefix, in the order of subscribing
        self._counts: dict[Peer, Counter[bytes]] = {}
        self._octets: Counter[Peer] = Counter()
        self._lengths: Counter[int] = Counter()  # of distinct prefixes

    def __len__(self) -> int:
        """How many there are, the same prefix of a peer counted once."""
        return sum(map(len, self._counts.values()))

    def add(self, peer: Peer, prefix: bytes) -> None:
        """A peer subscribes; raises TooLargeError beyond a limit, and nothing has changed then."""
        own = self._counts.setdefault(peer, Counter())
        if prefix not in own:
            self._check(peer, prefix, len(own))
            cost = len(prefix) + limits.SUBSCRIPTION_OCTETS
            self.octets += cost
            self._octets[peer] += cost
            peers = self._peers.get(prefix)
            if peers is None:
                peers = self._peers[prefix] = {}
                self._lengths[len(prefix)] += 1
            peers[peer] = None
        own[prefix] += 1

    def cancel(self, peer: Peer, prefix: bytes) -> None:
        """A peer takes one subscription back. What it has not subscribed to is ignored."""
        own = self._counts.get(peer)
        if own is None or prefix not in own:
            return
        own[prefix] -= 1
        if not own[prefix]:
            del own[prefix]
            self._drop(peer, prefix)

    def forget(self, peer: Peer) -> None:
        """A peer has left."""
        for prefix in self._counts.pop(peer, ()):
            self._drop(peer, prefix)
        self._octets.pop(peer, None)

    def matching(self, frame: bytes) -> list[Peer]:
        """The peers that get a message with this first frame, each once."""
        found: dict[Peer, None] = {}
        size = len(frame)
        for length in self._lengths:
            if length <= size:
                peers = self._peers.get(frame[:length])
                if peers:
                    found.update(peers)
        return list(found)

    def _check(self, peer: Peer, prefix: bytes, count: int) -> None:
        cost = len(prefix) + limits.SUBSCRIPTION_OCTETS
        if len(prefix) > limits.PREFIX_OCTETS:
            detail = f"a prefix of {len(prefix)} octets; {limits.PREFIX_OCTETS} are the most"
        elif count >= limits.SUBSCRIPTIONS:
            detail = f"more than {limits.SUBSCRIPTIONS} prefixes of one subscriber"
        elif self._octets[peer] + cost > limits.SUBSCRIPTIONS_OCTETS:
            detail = f"more than {limits.SUBSCRIPTIONS_OCTETS} octets of one subscriber"
        elif self.octets + cost > limits.ALL_SUBSCRIPTIONS_OCTETS:
            detail = f"more than {limits.ALL_SUBSCRIPTIONS_OCTETS} octets of all subscribers"
        else:
            return
        raise TooLargeError("subscriptions", detail)

    def _drop(self, peer: Peer, prefix: bytes) -> None:
        cost = len(prefix) + limits.SUBSCRIPTION_OCTETS
        self.octets -= cost
        self._octets[peer] -= cost
        peers = self._peers[prefix]
        del peers[peer]
        if not peers:
            del self._peers[prefix]
            self._lengths[len(prefix)] -= 1
            if not self._lengths[len(prefix)]:
                del self._lengths[len(prefix)]
