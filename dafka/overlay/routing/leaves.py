"""Peers of version 1 as the overlay sees them: leaves behind the nodes that they are connected to.

Each node lists those behind it. Of several nodes that list the same one, the node with the smallest id speaks
for it: messages for the leaf go over that node alone, and only that node passes on what the leaf publishes.
Everybody decides so by the same lists, so nothing needs to be agreed on.

Leaves may be connected with each other, which nobody sees before a message has gone round. From then on they
are listed as being beside each other, and form an island. libbroker's nodes pass on what their peers want, so
a topic needs one way into an island and one out of it: the leaf with the smallest id that wants it covers the
others.
"""

from __future__ import annotations

from collections.abc import Iterator

from dafka.overlay.filters import Filter
from dafka.overlay.routing.demand import Demand
from dafka.overlay.routing.outputs import Discovered, Output, Unreachable
from dafka.overlay.wire.leaves import Leaf


class Leaves:
    """Which node lists which leaf, for the node ``me``. The ``demand`` includes that of leaves."""

    def __init__(self, me: bytes, demand: Demand) -> None:
        self._me = me
        self._demand = demand
        self._listed: dict[bytes, dict[bytes, Leaf]] = {}  # by leaf, then by the node that lists it
        self._of: dict[bytes, tuple[Leaf, ...]] = {}  # by the node that lists them
        self._islands: dict[bytes, tuple[bytes, ...]] | None = {}
        self.listed = 0
        """Leaves in all lists."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._listed)

    def __contains__(self, leaf: bytes) -> bool:
        return leaf in self._listed

    def put(self, node: bytes, leaves: tuple[Leaf, ...]) -> list[Output]:
        """The leaves behind a node, instead of those before."""
        before = {leaf.id: leaf for leaf in self._of.pop(node, ())}
        self.listed -= len(before)
        after = {leaf.id: leaf for leaf in leaves if leaf.id not in (node, self._me)}
        if after:
            self._of[node] = tuple(after.values())
            self.listed += len(after)
        outputs: list[Output] = []
        for leaf in after.values():
            known = before.pop(leaf.id, None)
            self._demand.replace(() if known is None else known.filter, leaf.filter)
            if leaf.id not in self._listed:
                outputs.append(Discovered(leaf.id))
            self._listed.setdefault(leaf.id, {})[node] = leaf
        for leaf in before.values():
            self._demand.replace(leaf.filter, ())
            del self._listed[leaf.id][node]
            if not self._listed[leaf.id]:
                del self._listed[leaf.id]
                outputs.append(Unreachable(leaf.id))
        self._islands = None
        return outputs

    def listed_by(self, node: bytes) -> int:
        """The number of leaves in the list of a node."""
        return len(self._of.get(node, ()))

    def octets_of(self, node: bytes) -> int:
        """The memory of the list of a node."""
        return sum(leaf.octets for leaf in self._of.get(node, ()))

    def speaker(self, leaf: bytes) -> bytes | None:
        """The node that speaks for a leaf."""
        return min(self._listed.get(leaf, ()), default=None)

    def filter(self, leaf: bytes) -> Filter:
        """The filter of a leaf, by its speaker."""
        return self._listed[leaf][min(self._listed[leaf])].filter

    def others(self, leaf: bytes) -> Filter:
        """The demand of all but this leaf."""
        return self._demand.without([one.filter for one in self._listed.get(leaf, {}).values()])

    def wanting(self, topic: bytes, publisher: bytes, is_passed_on: bool) -> list[bytes]:
        """The leaves that are to get a message, without those of the publisher's island, which have it
        already.

        ``is_passed_on``: by one leaf of an island to the others.
        """
        origin = self.island(publisher)
        wanting = [
            leaf for leaf in self._listed if leaf not in origin and topic.startswith(self.filter(leaf))
        ]
        return [leaf for leaf in wanting if not (is_passed_on and self.is_covered(leaf, topic))]

    def is_covered(self, leaf: bytes, topic: bytes) -> bool:
        """Whether another leaf of the island stands for this one in messages on a topic."""
        island = self.island(leaf)
        if len(island) < 2:
            return False
        wanting = [one for one in island if topic.startswith(self.filter(one))]
        return bool(wanting) and wanting[0] != leaf

    @property
    def islands(self) -> dict[bytes, tuple[bytes, ...]]:
        """The island of each leaf that is connected with another one."""
        if self._islands is None:
            self._islands = self._find_islands()
        return self._islands

    def island(self, leaf: bytes) -> tuple[bytes, ...]:
        """The leaves that are connected with each other, this one among them, in the order of their ids."""
        return self.islands.get(leaf, (leaf,))

    def _find_islands(self) -> dict[bytes, tuple[bytes, ...]]:
        beside: dict[bytes, dict[bytes, None]] = {}
        for one, listings in self._listed.items():
            for listed in listings.values():
                for other in listed.beside:
                    if other in self._listed:
                        beside.setdefault(one, {})[other] = None
                        beside.setdefault(other, {})[one] = None
        islands: dict[bytes, tuple[bytes, ...]] = {}
        for leaf in beside:
            if leaf not in islands:
                found = {leaf: None}
                left = [leaf]
                while left:
                    for other in beside[left.pop()]:
                        if other not in found:
                            found[other] = None
                            left.append(other)
                island = tuple(sorted(found))
                islands.update(dict.fromkeys(island, island))
        return islands
