"""Random sequences of what members of groups send, odd things among them: heartbeats of the newer protocols,
classic members in their groups, offsets with member epochs, share sessions and acknowledgements.

A :class:`Step` says what a member does by what it knows ("its epoch", "half of what it has");
:class:`clients.raw.members.Members` makes the request of it for one broker, and learns from the answers of
this broker. The same seed makes the same steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MEMBERS = ("a", "b", "c")
TOPICS = 2
PARTITIONS = 6
KINDS = ("consumer", "expressions", "share", "streams", "mixed")
_EPOCHS = (0, -1, -2, -3, 1, 5, 99)
EXPRESSIONS = ("all", "first", "some", "nothing", "invalid", "")
"""Regular expressions of members of the kind "expressions"; the last one is none."""

SETTINGS = (
    ("streams.num.standby.replicas", ("0", "1", "2", "3", "-1", "many")),
    ("streams.initial.rebalance.delay.ms", ("0", "-1", "")),
    ("streams.assignment.interval.ms", ("0", "-1", "x")),
    ("consumer.assignment.interval.ms", ("0", "-1", "99999999")),
    ("consumer.session.timeout.ms", ("45000", "0", "-1", "99999999")),
    (
        "share.auto.offset.reset",
        ("earliest", "none", "by_duration:PT1H", "by_duration:-PT1H", "by_duration:1"),
    ),
    ("share.isolation.level", ("read_committed", "READ_COMMITTED", "")),
    ("share.delivery.count.limit", ("5", "0", "99")),
    ("nothing.of.the.kind", ("1",)),
)
"""Settings of a group, and values of which some mean nothing."""

_OWNED = ("none", "empty", "half", "foreign", "unknown")


class Step(NamedTuple):
    """What a member of a group does: the name of a method of :class:`Members`, and what is odd about it."""

    name: str
    group: str
    member: str
    odd: dict[str, Any]


def names(seed: int, kind: str) -> list[str]:
    """The topics of a sequence."""
    return [f"m{seed}-{kind}-{number}" for number in range(TOPICS)]


def group_of(seed: int, kind: str) -> str:
    """The group of a sequence."""
    return f"m{seed}-{kind}"


class ShareLog(NamedTuple):
    """What the share group of a sequence reads: the records of each batch, and the group's settings."""

    batches: list[int]
    settings: dict[str, str]


def share_log(seed: int) -> ShareLog:
    """Batches of many sizes, of which not all records may be in flight at once."""
    chance = random.Random(f"log {seed}")
    return ShareLog(
        chance.choices((1, 2, 3, 5, 12, 40, 90), k=chance.randrange(2, 12)),
        {
            "share.auto.offset.reset": "earliest",
            "share.partition.max.record.locks": chance.choice(("100", "130", "2000")),
            "share.delivery.count.limit": chance.choice(("2", "3", "5", "5")),
        },
    )


def internal_topics(seed: int) -> dict[str, int]:
    """Internal topics of the topologies of a sequence, and their partitions.

    They exist from the beginning: Apache Kafka makes them later than this broker.
    """
    return {f"m{seed}-log": PARTITIONS, f"m{seed}-repartition": 3}


def sequence(seed: int, length: int, kind: str) -> Iterator[Step]:
    """The steps of a seed in a group of one kind.

    Either there is one member, or all subscribe to the same: which partitions somebody has otherwise is up to
    each broker.
    """
    chance = random.Random(f"{kind} {seed}")
    group, topics = group_of(seed, kind), names(seed, kind)
    chosen = _CHOICES[kind]
    members = members_of(seed, kind)
    for _ in range(length):
        oddity = chance.choice((0.0, 0.0, 0.1, 0.3))
        make = chance.choices([one for one, _ in chosen], [weight for _, weight in chosen])[0]
        yield make(_Odd(chance, oddity, topics, len(members) == 1), group, chance.choice(members))


def members_of(seed: int, kind: str) -> tuple[str, ...]:
    return MEMBERS[:1] if seed % 2 and kind != "mixed" else MEMBERS


class _Odd:
    """Chances of one step."""

    def __init__(self, chance: random.Random, oddity: float, topics: list[str], alone: bool) -> None:
        self.chance, self.oddity, self.topics, self.alone = chance, oddity, topics, alone

    def some(self, name: str, *values: Any) -> dict[str, Any]:
        """Mostly nothing, otherwise one of these values."""
        return {name: self.chance.choice(values)} if self.chance.random() < self.oddity else {}

    def expression(self) -> str | None:
        """A regular expression to subscribe by, mostly no other one than before."""
        return None if self.chance.random() < 0.85 else self.chance.choice(EXPRESSIONS)

    def subscribed(self) -> list[str] | None:
        """Topics to subscribe to, mostly none others than before."""
        if self.chance.random() < 0.8:
            return None
        if not self.alone:
            return list(self.topics)
        return self.chance.choice(([self.topics[0]], self.topics, [self.topics[1]], [], ["missing"]))


def _heartbeat(name: str, by_expression: bool = False) -> Callable[[_Odd, str, str], Step]:
    def made(odd: _Odd, group: str, member: str) -> Step:
        more: dict[str, Any] = {
            **odd.some("epoch", *_EPOCHS, "next", "before"),
            **odd.some("owned", *_OWNED),
            **odd.some("group", "", "other"),
            **odd.some("member", "", "nobody", "x" * 40),
            **odd.some("rack_id", "", "rack"),
        }
        if name == "consumer_beat":
            more |= odd.some("server_assignor", "uniform", "range", "", "other")
            more |= odd.some("rebalance_timeout_ms", 0, -1, 5000)
        if name != "share_beat":
            more |= odd.some("instance_id", "", "one", "two")
        if name == "streams_beat":
            more |= odd.some(
                "topology",
                None,
                "epoch",
                "other",
                "copartition",
                "repartition",
                "bad",
                "empty",
                "fixed",
                "negative",
            )
            more |= odd.some("shutdown", True)
            more |= odd.some("endpoint", "one", "two")
            more |= odd.some("process_id", None, "", "shared")
            more |= odd.some("standby", "foreign", "empty")
            more |= odd.some("rebalance_timeout_ms", 0, -1, 5000)
        subscribed = odd.subscribed()
        if subscribed is not None:
            more["topics"] = subscribed
        if by_expression and (expression := odd.expression()) is not None:
            more["regex"] = expression
        if odd.chance.random() < 0.1:
            more["epoch"] = -1
        return Step(name, group, member, more)

    return made


def _topic(name: str) -> Callable[[_Odd, str, str], Step]:
    def made(odd: _Odd, group: str, member: str) -> Step:
        return Step(name, group, member, {"topic": "another"})

    return made


def _about_group(name: str) -> Callable[[_Odd, str, str], Step]:
    def made(odd: _Odd, group: str, member: str) -> Step:
        return Step(name, group, member, odd.some("group", "", "other"))

    return made


def _offsets(name: str) -> Callable[[_Odd, str, str], Step]:
    def made(odd: _Odd, group: str, member: str) -> Step:
        more = {
            **odd.some("epoch", *_EPOCHS, "next", "before"),
            **odd.some("member", "", "nobody"),
            **odd.some("topic", "missing", ""),
            **odd.some("partition", 99, -1),
            **odd.some("offset", 0, -1, -2, 3, 100),
            **odd.some("instance_id", "one"),
        }
        more["version"] = odd.chance.choice((9, 10))
        if name == "commit" and odd.chance.random() < odd.oddity:
            more["version"] = odd.chance.choice((2, 5, 7, 8))  # before groups of the newer protocols
        more["number"] = odd.chance.randrange(PARTITIONS)
        return Step(name, group, member, more)

    return made


def _setting(odd: _Odd, group: str, member: str) -> Step:
    name, values = odd.chance.choice(SETTINGS)
    return Step("setting", group, member, {"setting": name, "value": odd.chance.choice(values)})


def _share(name: str) -> Callable[[_Odd, str, str], Step]:
    def made(odd: _Odd, group: str, member: str) -> Step:
        ack = odd.chance.choice((1, 1, 1, 2, 2, 3, 4))
        return Step(
            name,
            group,
            member,
            {
                **odd.some("epoch", *_EPOCHS, "next", "before"),
                **odd.some("member", "", "nobody", "Ajc6Rlt8SJ2ZpD1hv1Jqdw"),
                **odd.some("topic", "unknown"),
                **odd.some("partition", 99, -1),
                **odd.some("max_records", 0, -1, 1, 2),
                **odd.some("max_bytes", 0, 1),
                **odd.some("acquire_mode", 1, 2, -1),
                **odd.some("ack_shape", "gap", "twice", "reversed", "types", "beyond", "none", "overlap"),
                **odd.some("renew", "alone", "with records"),
                "number": odd.chance.randrange(2),
                "type": ack if odd.chance.random() > odd.oddity else odd.chance.choice((0, 5, -1, 4)),
                "count": odd.chance.choice((0, 1, 2, 10, 100)),
                "ack": odd.chance.random() < 0.6,
                "most": odd.chance.choice((1, 4, 4, 15, 60, 500)),
                "strict": odd.chance.random() < 0.4,
                "batch_size": odd.chance.choice((3, 10, 500)),
                "version": odd.chance.choice((1, 2)),
            },
        )

    return made


_CHOICES: dict[str, list[tuple[Callable[[_Odd, str, str], Step], int]]] = {
    "consumer": [
        (_heartbeat("consumer_beat"), 12),
        (_offsets("commit"), 2),
        (_offsets("fetched"), 2),
        (_about_group("consumer_describe"), 2),
        (_about_group("listed"), 1),
        (_offsets("deleted_offsets"), 1),
        (_about_group("deleted"), 1),
    ],
    "expressions": [
        (_heartbeat("consumer_beat", by_expression=True), 20),
        (_topic("created"), 1),
        (_topic("removed"), 1),
        (_about_group("consumer_describe"), 4),
        (_offsets("fetched"), 1),
        (_about_group("listed"), 1),
        (_about_group("deleted"), 1),
    ],
    "mixed": [
        (_heartbeat("consumer_beat"), 8),
        (_offsets("join"), 4),
        (_offsets("sync"), 4),
        (_offsets("classic_beat"), 2),
        (_offsets("leave"), 1),
        (_offsets("commit"), 2),
        (_about_group("consumer_describe"), 2),
        (_about_group("listed"), 1),
        (_offsets("deleted_offsets"), 1),
        (_about_group("deleted"), 1),
    ],
    "share": [
        (_heartbeat("share_beat"), 6),
        (_share("share_fetch"), 10),
        (_share("acknowledge"), 6),
        (_about_group("share_describe"), 1),
        (_about_group("share_offsets"), 2),
        (_offsets("alter_share_offsets"), 1),
        (_offsets("delete_share_offsets"), 1),
        (_about_group("listed"), 1),
        (_offsets("deleted_offsets"), 1),
        (_about_group("deleted"), 1),
    ],
    "streams": [
        (_heartbeat("streams_beat"), 14),
        (_offsets("commit"), 2),
        (_offsets("fetched"), 1),
        (_about_group("streams_describe"), 2),
        (_about_group("listed"), 1),
        (_offsets("deleted_offsets"), 1),
        (_setting, 2),
        (_about_group("deleted"), 1),
    ],
}
