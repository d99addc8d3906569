"""Deadlines: which calls they lead to, by a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from timing import until

from dafka.hub import limits, turns
from dafka.hub.deadlines import Deadlines
from dafka.hub.hub import get_hub
from dafka.hub.turns import in_later_turn, next_turn


class Table:
    """Deadlines with a clock to set, and the keys whose deadlines have come."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[str] = []
        self.hub = get_hub()
        self.deadlines = self.hub.run(Deadlines, self.hub, self.note, lambda: self.now)

    def note(self, key: str) -> None:
        self.due.append(key)
        if key == "broken":
            raise ValueError(key)

    def set(self, key: str, at: float) -> None:
        self.hub.run(self.deadlines.set, key, at)

    def pass_time(self, now: float) -> None:
        self.now = now
        self.hub.run(self.deadlines.check)


@pytest.fixture
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.hub.run(made.deadlines.close)


def test_keys_are_due_in_the_order_of_their_deadlines(table: Table):
    for key, at in (("c", 30.0), ("a", 10.0), ("b", 20.0)):
        table.set(key, at)
    table.pass_time(20.0)
    until(lambda: table.due == ["a", "b"])
    table.pass_time(30.0)
    until(lambda: table.due == ["a", "b", "c"])


def test_due_calls_have_a_turn_with_room(table: Table, monkeypatch: pytest.MonkeyPatch):
    pauses = [0]

    def pause(go_on: Callable[[None], object]) -> None:
        pauses[0] += 1
        in_later_turn(go_on)

    called_after = list[int]()
    monkeypatch.setattr(table, "note", lambda key: called_after.append(pauses[0]))
    deadlines = table.hub.run(Deadlines, table.hub, lambda key: table.note(key), lambda: table.now)
    table.hub.run(deadlines.set, "a", 10.0)
    table.hub.run(next_turn)  # it waits
    monkeypatch.setattr(limits, "PACE_SECONDS", 0.0)  # each turn has been long
    monkeypatch.setattr(turns, "in_later_turn", pause)
    table.now = 10.0
    table.hub.run(deadlines.check)
    until(lambda: called_after)
    table.hub.run(deadlines.close)
    assert called_after[0] >= 1


def test_an_earlier_deadline_replaces_a_later_one(table: Table):
    table.set("a", 20.0)
    table.set("a", 10.0)
    table.pass_time(10.0)
    until(lambda: table.due == ["a"])
    table.set("b", 20.0)
    table.pass_time(20.0)
    until(lambda: table.due == ["a", "b"])  # the replaced deadline leads to no call


def test_a_later_deadline_is_ignored_and_takes_no_memory(table: Table):
    for at in range(10, 1000):
        table.set("a", float(at))
    assert len(table.deadlines._heap) == 1
    table.pass_time(2000.0)
    until(lambda: table.due == ["a"])


def test_a_key_may_have_another_deadline_after_its_first(table: Table):
    table.set("a", 10.0)
    table.pass_time(10.0)
    until(lambda: table.due == ["a"])
    table.set("a", 20.0)
    table.pass_time(20.0)
    until(lambda: table.due == ["a", "a"])


def test_a_failure_is_logged_and_other_deadlines_continue(table: Table, caplog: pytest.LogCaptureFixture):
    table.set("broken", 10.0)
    table.set("a", 20.0)
    table.pass_time(20.0)
    until(lambda: table.due == ["broken", "a"])
    assert "the deadline of 'broken' failed unexpectedly" in caplog.text


def test_after_closing_nothing_is_due(table: Table):
    table.set("a", 10.0)
    table.hub.run(table.deadlines.close)
    table.set("b", 0.0)
    assert len(table.deadlines._heap) == 1
    assert table.due == []


def test_others_have_their_turns_while_a_deadline_comes_again_and_again(table: Table, monkeypatch):
    monkeypatch.setattr("dafka.hub.limits.PACE_SECONDS", 0.0)
    turns: list[int] = []

    def again(key: str) -> None:
        table.due.append(key)
        if len(table.due) < 50:
            deadlines.set(key, 0.0)

    def others() -> None:
        while len(table.due) < 50:
            next_turn()
            turns.append(len(table.due))

    deadlines = table.hub.run(Deadlines, table.hub, again, lambda: 1.0)
    table.hub.post(table.hub.spawn, others)
    table.hub.run(deadlines.set, "a", 0.0)
    until(lambda: len(table.due) == 50)
    table.hub.run(deadlines.close)
    assert len({one for one in turns if 0 < one < 50}) > 10


def test_nan_is_no_deadline(table):
    with pytest.raises(ValueError, match="the deadline of 'a' is a time, not nan"):
        table.set("a", float("nan"))
    table.set("b", 1)
    table.pass_time(1)
    until(lambda: table.due == ["b"])
