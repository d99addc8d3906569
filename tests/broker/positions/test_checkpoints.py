"""Checkpoints in rows of bounded size, next to a list of all that was measured."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dafka.broker.positions import checkpoints as module
from dafka.broker.positions.checkpoints import (
    OFFSET,
    POSITION,
    POSITIONS,
    Checkpoint,
    Checkpoints,
    first_rows,
    has_positions,
    places_of,
    rows_before,
)
from dafka.log import Log

NAME = "a" * 32 + "/0"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log(tmp_path) as opened:
        yield opened


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_BLOCK", 4)
    monkeypatch.setattr(module, "CHECKPOINT_OCTETS", 100)


def store(log: Log, checkpoints: Checkpoints) -> None:
    end, rows = checkpoints.end, checkpoints.rows()
    log.write([], rows)
    checkpoints.written(rows, end)


def begun(log: Log, offset: int = 0, position: int = 0) -> Checkpoints:
    log.write([], first_rows(NAME, Checkpoint(offset, position)))
    return Checkpoints(log, NAME)


def grown(log: Log, seed: int, count: int = 300) -> tuple[Checkpoints, list[Checkpoint]]:
    """Checkpoints of a random partition, stored now and then, and every place that was measured."""
    chance, checkpoints = random.Random(seed), begun(log)
    measured = [checkpoints.end]
    for _ in range(count):
        octets = chance.choice((0, 0, 1, 20, 60, 150))
        checkpoints.grow(measured[-1].offset + chance.randint(1, 5), octets, 1)
        measured.append(checkpoints.end)
        if chance.random() < 0.05:
            store(log, checkpoints)
    return checkpoints, measured


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("again", [False, True], ids=["as it grew", "opened again"])
def test_a_checkpoint_found_is_true_and_near(log: Log, seed: int, again: bool) -> None:
    checkpoints, measured = grown(log, seed)
    if again:
        store(log, checkpoints)
        checkpoints = Checkpoints(log, NAME)
    assert checkpoints.end == measured[-1]
    for column in (OFFSET, POSITION):
        for value in range(measured[-1][column] + 1):
            before = checkpoints.at_or_before(column, value)
            after = checkpoints.at_or_after(column, value)
            assert before is not None
            assert after is not None
            assert {before, after} <= set(measured)
            assert before[column] <= value <= after[column]
            assert after.position - before.position <= 100 + 150  # the bound, and one batch
        assert checkpoints.at_or_after(column, measured[-1][column] + 1) is None
    assert checkpoints.at_or_before(OFFSET, -1) is None


def test_there_are_none_without_rows(log: Log) -> None:
    with pytest.raises(LookupError):
        Checkpoints(log, NAME)


def test_only_full_rows_and_the_tail_are_written(log: Log) -> None:
    checkpoints = begun(log)
    for offset in range(1, 10):
        checkpoints.grow(offset, 100, 1)
    assert checkpoints.full_rows == 2
    store(log, checkpoints)
    assert checkpoints.full_rows == 0
    assert [len(value) for _, value in log.table(POSITIONS).items()] == [64, 64, 32]
    checkpoints.grow(10, 7, 1)
    assert len(checkpoints.rows()) == 1
    assert checkpoints.stored == 9
    store(log, checkpoints)
    assert Checkpoints(log, NAME).end == Checkpoint(10, 907)


def test_batches_without_octets_get_checkpoints_by_their_bytes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECKPOINT_BYTES", 1000)
    checkpoints = begun(log)
    for offset in range(1, 100):
        checkpoints.grow(offset, 0, 300)
    assert checkpoints.full_rows == 6


@pytest.mark.parametrize("end", range(0, 60, 7))
def test_a_partition_that_was_cut_keeps_the_checkpoints_before_its_end(log: Log, end: int) -> None:
    checkpoints = begun(log)
    for offset in range(1, 61):
        checkpoints.grow(offset, 100, 1)
    store(log, checkpoints)
    log.write([], rows_before(log, NAME, end))
    cut = Checkpoints(log, NAME)
    assert cut.end == Checkpoint(end, 100 * end)
    assert cut.begin == Checkpoint(0, 0)
    cut.grow(end + 1, 5, 1)
    assert cut.end == Checkpoint(end + 1, 100 * end + 5)


def test_one_that_was_cut_before_its_first_checkpoint_begins_at_its_end(log: Log) -> None:
    checkpoints = begun(log, 50, 1000)
    checkpoints.grow(60, 100, 1)
    store(log, checkpoints)
    log.write([], rows_before(log, NAME, 40))
    assert Checkpoints(log, NAME).end == Checkpoint(40, 1000)
    assert len(log.table(POSITIONS)) == 1


@pytest.mark.parametrize("start", range(0, 61, 6))
def test_rows_that_nobody_needs_go_and_the_first_one_stays(log: Log, start: int) -> None:
    checkpoints = begun(log, 0, 7)
    for offset in range(1, 61):
        checkpoints.grow(offset, 100, 1)
    store(log, checkpoints)
    gone = checkpoints.rows_below(start)
    log.write([], gone)
    checkpoints.drop(gone)
    assert len(gone) == max(0, start // 4 - 1)
    for found in (checkpoints, Checkpoints(log, NAME)):
        assert found.begin == Checkpoint(0, 7)
        assert found.rows_below(start) == {}
        for offset in range(start, 61):
            assert found.at_or_after(OFFSET, offset) == Checkpoint(offset, 7 + 100 * offset)
            assert found.at_or_before(POSITION, 7 + 100 * offset) == Checkpoint(offset, 7 + 100 * offset)


def test_rows_are_found_by_partition_and_by_topic(log: Log) -> None:
    for name in ("a" * 32 + "/1", "a" * 32 + "/10", "b" * 32 + "/0"):
        log.write([], first_rows(name, Checkpoint(0, 0)))
    assert has_positions(log, "a" * 32 + "/1")
    assert not has_positions(log, NAME)
    assert has_positions(log, "a" * 32)
    assert not has_positions(log, "c" * 32)
    assert len(list(places_of(log, "a" * 32 + "/"))) == 2
