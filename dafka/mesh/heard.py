"""The subscriptions of remote peers: they tell whether a topic has any subscriber, without asking ZeroMQ.

Encoding a run is most of the work of publishing it, and is wasted without a subscriber. So the endpoint
keeps the prefixes it is told of by its XPUB socket. ZeroMQ filters by itself; this table only saves work,
and may therefore say yes too often. When it is full it says yes to everything.
"""

from __future__ import annotations

from collections import Counter

from dafka.mesh import limits

_NOTHING: dict[bytes, None] = {}


class HeardPrefixes:
    """A bounded set of subscription prefixes."""

    def __init__(self) -> None:
        self._count = 0
        self._lengths: Counter[int] = Counter()
        self._ends: tuple[int, ...] = ()  # the lengths that occur; asking costs a look-up for each
        # By the first octet, which is the ID of a command. They are copied in a tenth of a set's time.
        self._prefixes: dict[bytes, dict[bytes, None]] = {}
        self.overflown = False

    def __contains__(self, prefix: bytes) -> bool:
        return prefix in self._prefixes.get(prefix[:1], _NOTHING)

    def __len__(self) -> int:
        return self._count

    def add(self, prefix: bytes) -> None:
        """A peer subscribed to ``prefix``."""
        if prefix in self or len(prefix) > limits.PREFIX_OCTETS:
            return  # a longer one matches no topic there can be
        if self._count >= limits.HEARD_PREFIXES:
            self.overflown = True
            return
        self._count += 1
        self._prefixes.setdefault(prefix[:1], {})[prefix] = None
        self._lengths[len(prefix)] += 1
        if self._lengths[len(prefix)] == 1:
            self._ends = tuple(sorted(self._lengths))

    def discard(self, prefix: bytes) -> None:
        """The last peer that was subscribed to ``prefix`` is not any more."""
        if prefix not in self:
            return
        self._count -= 1
        same_id = self._prefixes[prefix[:1]]
        del same_id[prefix]
        if not same_id:
            del self._prefixes[prefix[:1]]
        length = len(prefix)
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]
            self._ends = tuple(sorted(self._lengths))

    def hears(self, topic: bytes) -> bool:
        """Whether a peer may be subscribed to ``topic``."""
        same_id = self._prefixes.get(topic[:1], _NOTHING)
        for end in self._ends:
            if topic[:end] in same_id:
                return True
        return b"" in self._prefixes or self.overflown

    def with_ids(self, ids: bytes) -> list[bytes]:
        """The prefixes that begin with one of these ID octets."""
        found: list[bytes] = []
        for octet in ids:
            found += self._prefixes.get(bytes((octet,)), ())
        return found
