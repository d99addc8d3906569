"""The regular expressions that members of a consumer group subscribe by, and the topics that these match.

Topics are looked for aside, as in Apache Kafka: a heartbeat with a new expression is answered before it is
known what that matches, and its member has nothing by it until a later one. One resolution serves all
expressions of the group, and all members that have them; it finds what the member whose heartbeat began it
may see. There is another one when topics were created, and now and then without a reason (*interval*).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from dafka.broker.groups.modern.topics import Topics

NEVER = -1
"""No version of the topics."""

NO_TOPICS: frozenset[str] = frozenset()


class Resolution(NamedTuple):
    """Expressions whose topics are looked for: those of ``version`` of the topics, at a time."""

    expressions: frozenset[str]
    version: int
    at: float


class Expressions:
    """The expressions of one group. ``resolved`` are the topics of those for which they are known."""

    def __init__(self) -> None:
        self.resolved: dict[str, frozenset[str]] = {}
        self.under_way: Resolution | None = None
        self._members: Counter[str] = Counter()  # by expression
        self._version = NEVER
        self._at = -inf

    def is_used(self, expression: str) -> bool:
        """Whether a member has it."""
        return expression in self._members

    def topics(self, expression: str | None) -> frozenset[str]:
        """The topics that an expression is known to match."""
        return NO_TOPICS if expression is None else self.resolved.get(expression, NO_TOPICS)

    def lacks(self, expression: str | None) -> bool:
        """Whether it is not known what an expression matches."""
        return expression is not None and expression not in self.resolved

    def replace(self, had: str | None, has: str | None) -> None:
        """Note that a member has another expression, or none; one that nobody has any more is forgotten."""
        if had == has:
            return
        if has is not None:
            self._members[has] += 1
        if had is not None:
            self._members[had] -= 1
            if not self._members[had]:
                del self._members[had]
                self.resolved.pop(had, None)

    def restore(self, resolved: Mapping[str, frozenset[str]]) -> None:
        """Take over what was known before a restart, until it is looked for again."""
        self.resolved = dict(resolved)

    def begin(self, now: float, topics: Topics, interval: float) -> Resolution | None:
        """What is to be looked for now, if something is."""
        if self.under_way is not None or not self._members or not self._is_due(now, topics, interval):
            return None
        self.under_way = Resolution(frozenset(self._members), topics.version, now)
        return self.under_way

    def end(self, found: Mapping[str, frozenset[str]]) -> bool:
        """Take over what was found for the resolution under way; whether something is not as it was.

        Expressions that nobody has any more are passed over.
        """
        assert self.under_way is not None
        resolution, self.under_way = self.under_way, None
        used = {one: topics for one, topics in found.items() if one in self._members}
        changed = any(self.topics(one) != topics for one, topics in used.items())
        kept = {one: topics for one, topics in self.resolved.items() if one in self._members}
        self.resolved = {**kept, **used}
        self._version, self._at = resolution.version, resolution.at
        return changed

    def fail(self) -> None:
        """Nothing was found: the next heartbeat has it tried again."""
        self.under_way = None

    def _is_due(self, now: float, topics: Topics, interval: float) -> bool:
        if self._members.keys() != self.resolved.keys() or now > self._at + interval:
            return True
        changed = None if self._version == NEVER else topics.changed_since(self._version)
        if changed is None or topics.find_all(changed):
            return True
        self._version = topics.version  # some were deleted: their names are left until the next time
        return False
