"""The topics that the members of a group subscribe to.

Mostly they subscribe to the same ones, and there may be a hundred thousand: a subscription that another
member has already takes no longer than one of a single topic. A large one can be prepared some names at a
time, and its names go some at a time when nobody has it any more; until then they count as subscribed to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from dafka.broker import limits


class _Subscription:
    """The names of topics that ``members`` members subscribe to, those who prepare it included."""

    __slots__ = ("members", "names")

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.members = 0


class Subscriptions:
    """The different subscriptions of a group's members; ``names`` are those of the topics in any of them,
    with the number of subscriptions that they are in."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._different: dict[frozenset[str], _Subscription] = {}
        self._preparing = 0
        self._ended: deque[Iterator[str]] = deque()

    def new(self, wanted: frozenset[str]) -> Collection[str]:
        """The names of topics that no member subscribes to yet."""
        if not wanted or wanted in self._different:
            return ()
        return wanted.difference(self.names) if self.names else wanted

    def begin(self, wanted: frozenset[str], new: Collection[str]) -> frozenset[str]:
        """A member subscribes to these; ``new`` are the new ones. Equal subscriptions are one object, so that
        they are compared quickly: that one is returned."""
        if not wanted:
            return wanted
        found = self._different.get(wanted)
        if found is None:
            found = self._different[wanted] = _Subscription(wanted)
            names = self.names
            for name in wanted.difference(new) if len(new) < len(wanted) else ():
                names[name] += 1
            names.update(dict.fromkeys(new, 1))
        found.members += 1
        return found.names

    def end(self, had: frozenset[str]) -> Collection[str]:
        """A member subscribes to these no longer; the names to which no other one does."""
        if not had:
            return ()
        found = self._different[had]
        found.members -= 1
        if found.members:
            return ()
        del self._different[had]
        names = self.names
        if not self._different and not self._preparing:
            self.names = {}
            self._ended.clear()
            return names
        if len(had) > limits.TOPICS_AT_ONCE:
            self._ended.append(iter(had))
            return ()
        return self._without(had)

    @property
    def is_ending(self) -> bool:
        """Whether there are names of ended subscriptions, for :meth:`end_some`."""
        return bool(self._ended)

    def end_some(self) -> Collection[str]:
        """Some names of ended subscriptions go; those of them to which no member subscribes."""
        if not self._ended:
            return ()
        some = list(islice(self._ended[0], limits.TOPICS_AT_ONCE))
        if len(some) < limits.TOPICS_AT_ONCE:
            self._ended.popleft()
        return self._without(some)

    def prepare(self, wanted: frozenset[str], found: Callable[[Collection[str]], object]) -> Iterator[bool]:
        """Have the names of a large subscription counted some at a time, for members that are to have it.

        ``found`` is called with those of each piece that are new. When this has ended it counts as one of a
        member, until :meth:`end`.
        """
        self._preparing += 1
        counted: list[str] = []
        is_whole = False
        try:
            names, left = self.names, iter(wanted)
            while some := list(islice(left, limits.TOPICS_AT_ONCE)):
                new = [name for name in some if name not in names]
                for name in some if len(new) < len(some) else ():
                    if name in names:
                        names[name] += 1
                names.update(dict.fromkeys(new, 1))
                counted += some
                found(new)
                yield True
            is_whole = True
        finally:
            self._preparing -= 1
            if is_whole and wanted not in self._different:
                self._different[wanted] = _Subscription(wanted)
            elif counted:  # somebody else was as fast, or the caller has given up
                self._ended.append(iter(counted))
            if is_whole:
                self._different[wanted].members += 1

    def _without(self, had: Collection[str]) -> Collection[str]:
        names = self.names
        gone: list[str] = []
        for name in had:
            count = names[name] - 1
            if count:
                names[name] = count
            else:
                del names[name]
                gone.append(name)
        return gone
