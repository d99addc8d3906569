"""What a node says in the log about partitions that nobody sends, or that it has no place for."""

from __future__ import annotations

import logging

import pytest

from dafka.mesh import limits
from dafka.mesh.watch import Watch


class Role:
    """One whose partitions are unanswered since these times."""

    refused = 0
    longest_unanswered = (b"hello", b"A" * 32, 3, 8)

    def __init__(self) -> None:
        self.since: list[float] = []

    @property
    def unanswered(self) -> int:
        return len(self.since)

    def unanswered_since(self, time: float) -> int:
        return sum(since <= time for since in self.since)


@pytest.fixture
def role() -> Role:
    return Role()


@pytest.fixture
def said(role, caplog):
    """Let a time come; returns the lines of the log."""
    watch = Watch("the store", role)

    def at(now: float) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            watch.tick(now)
        return caplog.messages

    return at


LATER = limits.UNANSWERED_SECONDS


def test_a_partition_nobody_sends_is_logged_after_a_while_and_once(role, said):
    assert said(0.0) == []
    role.since = [1.0]
    assert said(1.0) == []
    assert said(LATER) == []
    (line,) = said(1.0 + LATER)
    assert line.startswith("the store: 1 partition is known to have records that nobody sends")
    assert "topic 'hello', partition " + "A" * 32 + ", sequences 3 to 7" in line
    assert said(100 * LATER) == []


def test_it_is_said_again_when_there_are_twice_as_many(role, said):
    role.since = [0.0, 0.0]
    assert said(0.0) == []
    assert "the store: 2 partitions are known to have records" in said(LATER)[0]
    role.since = [0.0, 0.0, LATER]
    assert said(2 * LATER) == []
    role.since = [0.0, 0.0, LATER, 2 * LATER]
    assert said(2 * LATER) == []
    assert "the store: 4 partitions are known to have records" in said(3 * LATER)[0]


def test_it_is_said_anew_when_all_had_been_answered(role, said):
    role.since = [0.0]
    assert [len(said(now)) for now in (0.0, LATER)] == [0, 1]
    role.since = []
    assert said(2 * LATER) == []
    role.since = [3 * LATER]
    assert [len(said(now)) for now in (3 * LATER, 3.5 * LATER, 4 * LATER)] == [0, 0, 1]


def test_partitions_of_which_each_is_sent_after_a_while_are_not_logged(role, said):
    """A store that catches up with very many from a busy node: some are always late, never the same."""
    for step in range(100):
        role.since = [step * LATER / 4 - late for late in (LATER / 2, LATER / 3, 0.0)]
        assert said(step * LATER / 4) == []
    role.since[0] -= LATER
    (line,) = said(step * LATER / 4)
    assert line.startswith("the store: 1 partition is known")


def test_a_full_table_is_logged_once(role, said):
    role.refused = 1
    assert said(0.0) == ["the store: its table of partitions is full; further partitions are not followed"]
    role.refused = 100
    assert said(1000.0) == []
