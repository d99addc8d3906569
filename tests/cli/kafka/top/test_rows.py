"""What a look is shown as."""

from __future__ import annotations

import pytest

from dafka.broker.looking.watching import Answers, GroupRow, Look, TopicRow
from dafka.cli.kafka.top.rows import (
    answered,
    as_object,
    group_cells,
    headline,
    left_out,
    rate,
    seconds,
    size,
    topic_cells,
)

LOOK = Look(
    "it",
    1,
    [TopicRow("orders", 3, 12345, 0.25, 99_000, 2500.1234)],
    [GroupRow("billing\x1b[2J", "classic", "Stable", 7, 1234.5, 0.0123456)],
    [Answers("Metadata", 1.0, 0.5, 2.25)],
    {"partitions": 0, "groups": 3},
)


def test_lines_for_people_have_no_control_characters() -> None:
    assert headline(LOOK) == "cluster it: 1 broker, 1 topic, 1 group; 0.2 written/s, 1,234 read/s, lag 7"
    assert answered(LOOK) == "answers, p50 / p99 in ms: Metadata 0.5 / 2.2"
    assert topic_cells(LOOK.topics[0]) == ("orders", "3", "12,345", "0.2", "2.5 k")
    assert group_cells(LOOK.groups[0]) == ("billing\\x1b[2J", "classic", "Stable", "7", "1,234", "12 ms")


def test_groups_left_out_are_told_with_what_to_do() -> None:
    assert left_out(LOOK) == "3 groups are looked at in turns: --group PATTERN chooses"
    assert left_out(LOOK._replace(left_out={"partitions": 0, "groups": 0})) == ""


def test_objects_have_numbers_that_are_not_rounded_to_nothing() -> None:
    found = as_object(LOOK)
    assert found["groups"][0] == {
        "group": "billing\x1b[2J",
        "type": "classic",
        "state": "Stable",
        "lag": 7,
        "read": 1234.5,
        "delay": 0.012,
    }
    (topic,) = found["topics"]
    assert (topic["topic"], topic["partitions"], topic["records"], topic["written"]) == (
        "orders",
        3,
        12345,
        0.25,
    )
    assert (topic["octets"], topic["growth"]) == (99_000, 2500.123)
    assert found["answers"] == [{"request": "Metadata", "last": 1.0, "p50": 0.5, "p99": 2.25}]


LENGTHS = {None: "-", 0.0: "0 ms", 0.9994: "999 ms", 0.9999: "1.0 s", 119.0: "119.0 s", 150: "2.5 min"}
RATES = {None: "-", 0.0: "0", 0.04: "0.0", 9.94: "9.9", 1e6: "1,000,000"}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.0, "0"), (999.4, "999"), (1000, "1.0 k"), (2.5e6, "2.5 M"), (3.1e12, "3,100.0 G")],
)
def test_octets(value: float | None, shown: str) -> None:
    assert size(value) == shown


@pytest.mark.parametrize("value", LENGTHS)
def test_lengths_of_time(value: float | None) -> None:
    assert seconds(value) == LENGTHS[value]


@pytest.mark.parametrize("value", RATES)
def test_rates(value: float | None) -> None:
    assert rate(value) == RATES[value]
