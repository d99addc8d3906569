"""What the members of a consumer group subscribe to, by name and by regular expression.

What an expression matches comes later than the member that has it
(:mod:`dafka.broker.groups.consumer.expressions`). The epoch is raised when that is known, and not before: so
one target is enough. Topics that a member no longer subscribes to are gone from what it reads at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from math import inf
from uuid import UUID

from kafka.errors import InvalidRequestError

from dafka.broker.groups.consumer.expressions import Expressions
from dafka.broker.groups.consumer.member import Member
from dafka.broker.groups.modern.assignment import Assignment
from dafka.broker.groups.modern.partitions import Draft, PartitionGroup
from dafka.broker.groups.modern.topics import Topics
from dafka.broker.groups.patterns import InvalidRegularExpressionError, check_pattern
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat


class SubscribedGroup(PartitionGroup[Member]):
    """A group of which some members subscribe by regular ``expressions``."""

    def __init__(self, now: float, topics: Topics, epoch: int = 0, name: str = "") -> None:
        super().__init__(now, topics, epoch, name)
        self.expressions = Expressions()
        self._has_lost = False  # whether a member has lost topics without another epoch because of that

    def _check_expression(self, request: ConsumerHeartbeat) -> None:
        """Raise InvalidRegularExpressionError for an expression that no member has and that is not one."""
        if request.regex and not self.expressions.is_used(request.regex):
            try:
                check_pattern(request.regex)
            except InvalidRegularExpressionError as error:
                why = error.args[0]
                said = f"SubscribedTopicRegex `{request.regex}` is not a valid regular expression: {why}."
                raise InvalidRegularExpressionError(said) from None

    def _resubscribe(self, member: Member, request: ConsumerHeartbeat) -> bool:
        """Take over what a member says that it subscribes to; whether the group needs another target."""
        self._check_expression(request)
        names = member.names if request.topics is None else frozenset(request.topics)
        regex = member.regex if request.regex is None else request.regex or None
        if (names, regex) == (member.names, member.regex):
            return False
        changed = names != member.names or not self.expressions.lacks(regex)
        had = member.topics
        self.subscribe(member, self._topics_of(names, regex))
        self.expressions.replace(member.regex, regex)
        self._has_lost = self._has_lost or not member.topics.issuperset(had)
        member.names, member.regex = names, regex
        return changed

    def _topics_of(self, names: frozenset[str], regex: str | None) -> frozenset[str]:
        """The topics that a subscription by names and by an expression comes to."""
        matched = self.expressions.topics(regex)
        return names | matched if names and matched else names or matched

    def _ids_of(self, names: Collection[str]) -> set[UUID]:
        return {found.topic_id for name in names if (found := self._known.get(name)) is not None}

    def resolve(self, found: Mapping[str, frozenset[str]]) -> None:
        """Take over what was found for the expressions whose resolution is under way."""
        for _ in self.resolving(found):
            pass

    def resolving(self, found: Mapping[str, frozenset[str]]) -> Iterator[None]:
        """The same, member after member: the caller may pause, and the group may change meanwhile."""
        prepared: list[frozenset[str]] = []
        try:
            for topics in set(found.values()):
                pieces = self.preparing(topics)
                if next(pieces, False):
                    yield
                    for _ in pieces:
                        yield
                    prepared.append(topics)
            changed = self.expressions.end(found)
            for member in list(self.members.values()):
                if member.regex in found and self.members.get(member.member_id) is member:
                    with suppress(InvalidRequestError):  # too many for the group: it goes on with what it has
                        self.subscribe(member, self._topics_of(member.names, member.regex))
                    self.mark(member)  # for the group's sake: resolved expressions are kept
                    yield
        finally:
            for topics in prepared:
                self.prepared(topics)
        if self.members and (self.topics_changed() or changed or self._has_lost):
            self.raise_epoch()

    def raise_epoch(self) -> None:
        self._has_lost = False
        super().raise_epoch()

    def draft(self) -> Draft:
        for member in self.members.values():
            member.drafted = member.topics
        return super().draft()

    def install(self, epoch: int, target: Mapping[str, Assignment], now: float = -inf) -> None:
        if epoch > self.assignment_epoch:
            for member in self.members.values():
                member.served = member.drafted
        super().install(epoch, target, now)
