"""Items handed to a writer: their numbers, their weight, their callbacks, and how they split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dafka.commit.items import (
    CHUNK_BYTES,
    CHUNK_MESSAGES,
    Growth,
    Numbered,
    Numbering,
    Other,
    OutOfSequenceError,
    Run,
)
from dafka.log import Log, LogPartition


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[LogPartition]:
    log = Log(tmp_path / "log")
    yield log.partition(b"hello", b"A" * 32)
    log.close()


@pytest.fixture
def told() -> list[Any]:
    return []


def run(partition: LogPartition, told: list[Any], first: int, *contents: bytes, skip: bool = False) -> Run:
    return Run(partition, first, list(contents), sum(map(len, contents)), told.append, skip)


def joined(partition: LogPartition, told: list[Any]) -> Run:
    """Two calls in one item: messages 5 and 6, and message 7."""
    one = run(partition, told, 5, b"five", b"six")
    one.parts.append([b"seven"])
    one.dones.append(told.append)
    one.next = 8
    return one


def test_messages_that_have_their_numbers_continue_the_partition(partition, told):
    assert joined(partition, told).number(5, 40) == Numbered(5, [b"five", b"six", b"seven"], 40)


@pytest.mark.parametrize("stands_at", [4, 6])
def test_messages_that_do_not_continue_it_are_refused(partition, told, stands_at):
    with pytest.raises(OutOfSequenceError, match=f"from 5 on .* stands at {stands_at}"):
        joined(partition, told).number(stands_at, 0)


def test_those_that_may_leave_a_hole_do_so_upwards_only(partition, told):
    one = run(partition, told, 5, b"x", skip=True)
    assert one.number(2, 0) == Numbered(5, [b"x"], 0)
    with pytest.raises(OutOfSequenceError):
        one.number(6, 0)


def test_calls_that_share_an_item_come_apart_as_they_were(partition, told):
    first, second = joined(partition, told).split()
    assert first.number(5, 0) == Numbered(5, [b"five", b"six"], 0)
    assert second.number(7, 0) == Numbered(7, [b"seven"], 0)
    assert (first.size, second.size) == (7, 5)
    assert first.split() == ()
    second.tell(None)
    assert told == [None]


def test_everybody_who_shares_an_item_is_told(partition, told):
    error = ValueError()
    joined(partition, told).tell(error)
    assert told == [error, error]


def test_a_callback_that_fails_keeps_nobody_from_being_told(partition, told, caplog):
    one = joined(partition, told)
    one.dones.insert(0, lambda error: 1 / 0)
    one.tell(None)
    assert told == [None, None]
    assert "a callback after a commit failed" in caplog.text


def test_an_item_weighs_what_it_has_and_what_it_costs(partition, told):
    light, heavy = run(partition, told, 0, b"x"), run(partition, told, 0, b"x" * 10_000)
    assert heavy.weight - light.weight == 9_999
    rows = Other(told.append, values={("table", str(number)): number for number in range(10)})
    assert rows.weight > Other(told.append).weight


def test_an_item_fails_with_its_own_partition_or_one_that_it_depends_on(partition, told):
    error, other = ValueError("own"), ValueError("rest")
    one = run(partition, told, 0, b"x")
    assert one.failure({}) is None
    assert one.failure({partition: error, None: other}) is error
    rest = Other(told.append)
    assert rest.failure({partition: error}) is None
    assert rest.failure({partition: error, None: other}) is other
    assert Other(told.append, behind=[partition]).failure({partition: error}) is error


def test_deletions_and_rewrites_stand_alone_in_their_round(partition, told):
    assert not Other(told.append, values={("table", "key"): 1}).stands_alone
    assert Other(told.append, drops=[partition]).stands_alone


def test_messages_that_a_round_numbers_get_what_the_partition_has_reached(partition, told):
    def number(sequence: int, offset: int) -> Numbered:
        return Numbered(sequence, [b"x", b"y"], offset + 2)

    growth = Growth(3, 30)
    growth.add(Numbering(partition, number, 2, told.append, {}).number)
    growth.add(run(partition, told, 5, b"z").number)
    assert growth.segments == [(3, [b"x", b"y", b"z"])]
    assert (growth.sequence, growth.offset) == (6, 32)


def test_a_round_is_checked_if_all_of_its_messages_are(partition, told):
    batches = Numbering(partition, lambda sequence, offset: Numbered(sequence, [b"x"], 0), 1, told.append, {})
    growth = Growth(0, 0)
    for item, checked in ((batches, True), (run(partition, told, 1, b"y"), False), (batches, False)):
        growth.add(item.number, item.checked)
        assert growth.checked is checked


def test_a_hole_begins_a_segment_of_its_own(partition, told):
    growth = Growth(0, 0)
    growth.add(run(partition, told, 0, b"x").number)
    growth.add(run(partition, told, 9, b"y", skip=True).number)
    assert growth.chunks(partition) == [(partition, [b"x"], 0), (partition, [b"y"], 9)]


def test_values_are_of_about_a_megabyte_but_for_single_messages(partition):
    contents = [b"x" * (CHUNK_BYTES // 2)] * 3 + [b"y" * (2 * CHUNK_BYTES)] + [b"z"]
    growth = Growth(10, 0)
    growth.add(lambda sequence, offset: Numbered(sequence, contents, offset))
    cut = [(first, len(some)) for _, some, first in growth.chunks(partition)]
    assert cut == [(10, 2), (12, 1), (13, 1), (14, 1)]


def test_values_have_so_many_messages_at_most(partition):
    growth = Growth(0, 0)
    growth.add(lambda sequence, offset: Numbered(sequence, [b""] * (CHUNK_MESSAGES + 1), offset))
    assert [(first, len(some)) for _, some, first in growth.chunks(partition)] == [
        (0, CHUNK_MESSAGES),
        (CHUNK_MESSAGES, 1),
    ]
