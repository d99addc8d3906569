"""The subscriptions of a publisher's subscribers: prefixes of a message's first frame.

A message's subscribers are found by looking up each length that any prefix has, so the cost of a message
does not depend on how many prefixes there are, and prefixes have limits.PREFIX_OCTETS at most.

Subscriptions add up (23/ZMTP): a prefix subscribed to twice is to be cancelled twice. The SUB sockets of
libzmq and JeroMQ tell of each subscription, and of the last cancellation alone: one that has subscribed to a
prefix twice and cancelled it twice stays subscribed until it connects anew, and drops what it gets of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from dafka.zmtp import limits
from dafka.zmtp.errors import TooLargeError

Peer = TypeVar("Peer", bound=Hashable)


class Most(NamedTuple):
    """The bounds of a publisher's subscriptions; None: as :mod:`dafka.zmtp.limits` has it."""

    prefix_octets: int | None = None
    prefixes: int | None = None  # of one peer
    octets: int | None = None  # of one peer, with limits.SUBSCRIPTION_OCTETS for each
    all_octets: int | None = None


USUAL = Most()


class Subscriptions(Generic[Peer]):
    """The subscriptions of all peers of one publisher."""

    def __init__(self, most: Most = USUAL) -> None:
        self.octets = 0
        self._most = most
        # By prefix, in the order of subscribing: how often each peer has. To grow takes a large table some
        # milliseconds, so the other one is a set: sets grow at other sizes than dictionaries.
        self._peers: dict[bytes, dict[Peer, int]] = {}
        self._own: dict[Peer, set[bytes]] = {}
        self._octets: Counter[Peer] = Counter()
        self._lengths: Counter[int] = Counter()  # of distinct prefixes
        self._leaving: set[Peer] = set()  # that have left, and of which not every prefix is dropped yet

    def __len__(self) -> int:
        """How many there are, the same prefix of a peer counted once."""
        return sum(map(len, self._own.values()))

    def add(self, peer: Peer, prefix: bytes) -> None:
        """A peer subscribes; raises TooLargeError beyond a limit, and nothing has changed then."""
        own = self._own.setdefault(peer, set())
        if prefix in own:
            self._peers[prefix][peer] += 1
            return
        self._check(peer, prefix, len(own))
        cost = len(prefix) + limits.SUBSCRIPTION_OCTETS
        self.octets += cost
        self._octets[peer] += cost
        peers = self._peers.get(prefix)
        if peers is None:
            peers = self._peers[prefix] = {}
            self._lengths[len(prefix)] += 1
        peers[peer] = 1
        own.add(prefix)

    def cancel(self, peer: Peer, prefix: bytes) -> bool:
        """A peer takes one subscription back. Others than those that it has are ignored.

        Whether nobody is subscribed to it any more.
        """
        own = self._own.get(peer)
        if own is None or prefix not in own:
            return False
        peers = self._peers[prefix]
        if peers[peer] > 1:
            peers[peer] -= 1
            return False
        own.discard(prefix)
        self._drop(peer, prefix)
        return prefix not in self._peers

    def forget(self, peer: Peer) -> Iterator[bytes]:
        """A peer has left, and is among the receivers of nothing from now on.

        Returns its prefixes. Each is dropped when it is taken, so that others may go on between two of them:
        there may be very many.
        """
        own = self._own.pop(peer, None)
        if own:
            self._leaving.add(peer)
        return self._drop_each(peer, own or set())

    def _drop_each(self, peer: Peer, own: set[bytes]) -> Iterator[bytes]:
        while own:  # what is taken out is freed now, and not all at once in the end
            prefix = own.pop()
            self._drop(peer, prefix)
            yield prefix
        self._leaving.discard(peer)
        self._octets.pop(peer, None)

    def has(self, prefix: bytes) -> bool:
        """Whether anybody is subscribed to exactly this prefix."""
        return prefix in self._peers

    def matching(self, frame: bytes) -> list[Peer]:
        """The peers that get a message with this first frame, each once."""
        found: dict[Peer, int] = {}
        size = len(frame)
        for length in self._lengths:
            if length <= size:
                peers = self._peers.get(frame[:length])
                if peers:
                    found.update(peers)
        if self._leaving:
            return [peer for peer in found if peer not in self._leaving]
        return list(found)

    def _check(self, peer: Peer, prefix: bytes, count: int) -> None:
        cost = len(prefix) + limits.SUBSCRIPTION_OCTETS
        most = self._most
        longest = most.prefix_octets or limits.PREFIX_OCTETS
        prefixes = most.prefixes or limits.SUBSCRIPTIONS
        octets = most.octets or limits.SUBSCRIPTIONS_OCTETS
        of_all = most.all_octets or limits.ALL_SUBSCRIPTIONS_OCTETS
        if len(prefix) > longest:
            detail = f"a prefix of {len(prefix)} octets; {longest} are the most"
        elif count >= prefixes:
            detail = f"more than {prefixes} prefixes of one subscriber"
        elif self._octets[peer] + cost > octets:
            detail = f"more than {octets} octets of one subscriber"
        elif self.octets + cost > of_all:
            detail = f"more than {of_all} octets of all subscribers"
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
