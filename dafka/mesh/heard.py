"""The subscriptions of remote peers: they tell whether a topic has any subscriber, without asking ZeroMQ.

Encoding a run is most of the work of publishing it, and is wasted without a subscriber. So the endpoint
keeps the prefixes it is told of by its XPUB socket. ZeroMQ filters by itself; this table only saves work,
and may therefore say yes too often. When it is full it says yes to everything.
"""

from __future__ import annotations

from collections import Counter

from dafka.mesh import limits


class HeardPrefixes:
    """A bounded set of subscription prefixes."""

    def __init__(self) -> None:
        self._prefixes: set[bytes] = set()
        self._lengths: Counter[int] = Counter()
        self._ends: tuple[int, ...] = ()  # the lengths that occur; asking costs a look-up for each
        self._hellos: dict[bytes, dict[bytes, None]] = {}  # copied in a tenth of a set's time
        self.overflown = False

    def __contains__(self, prefix: bytes) -> bool:
        return prefix in self._prefixes

    def __len__(self) -> int:
        return len(self._prefixes)

    def add(self, prefix: bytes) -> None:
        """A peer subscribed to ``prefix``."""
        if prefix in self._prefixes or len(prefix) > limits.PREFIX_OCTETS:
            return  # a longer one matches no topic there can be
        if len(self._prefixes) >= limits.HEARD_PREFIXES:
            self.overflown = True
            return
        self._prefixes.add(prefix)
        self._hellos.setdefault(prefix[:1], {})[prefix] = None
        self._lengths[len(prefix)] += 1
        if self._lengths[len(prefix)] == 1:
            self._ends = tuple(sorted(self._lengths))

    def discard(self, prefix: bytes) -> None:
        """The last peer that was subscribed to ``prefix`` is not any more."""
        if prefix not in self._prefixes:
            return
        self._prefixes.discard(prefix)
        same_id = self._hellos[prefix[:1]]
        same_id.pop(prefix, None)
        if not same_id:
            del self._hellos[prefix[:1]]
        length = len(prefix)
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]
            self._ends = tuple(sorted(self._lengths))

    def hears(self, topic: bytes) -> bool:
        """Whether a peer may be subscribed to ``topic``."""
        prefixes = self._prefixes
        for end in self._ends:
            if topic[:end] in prefixes:
                return True
        return self.overflown

    def with_ids(self, ids: bytes) -> list[bytes]:
        """The prefixes that begin with one of these ID octets."""
        found: list[bytes] = []
        for octet in ids:
            found += self._hellos.get(bytes((octet,)), ())
        return found
