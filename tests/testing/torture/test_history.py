"""What was done: a bounded list of calls, and a table of them."""

from __future__ import annotations

from dafka.testing import Fault
from dafka.testing.torture.history import History, around, table

EVICT = Fault("commit g", 1, "evict")


def history(kept: int = 100) -> History:
    times = iter(range(1000))
    return History(kept, lambda: next(times) / 1000)


def test_the_oldest_calls_are_forgotten_and_that_is_known():
    log = history(3)
    for number in range(1, 4):
        log.add("a", "commit g", number, "ok", True)
    assert log.complete
    log.add("a", "commit g", 4, "ok", True)
    assert not log.complete and [call.number for call in log.calls()] == [2, 3, 4]


def test_the_table_has_a_row_for_each_call_and_a_column_for_each_client():
    log = history()
    log.add("reader", "fetch t-0", 1, "ok", True, {("t", 0): (0, 3)})
    log.add(
        "writer",
        "produce out-1",
        1,
        "nothing",
        True,
        {("out", 1): (7, 8)},
        Fault("produce out-1", 1, "lost_answer"),
    )
    log.add("reader", "commit g", 1, "UnknownMemberIdError", False, {("t", 0): (1, 1)}, EVICT, "g")
    log.add("reader", "leave g", 0, "ok", True)
    lines = table(log.calls()).splitlines()
    column = lines[0].index("writer")
    assert [line[:column].rstrip() for line in lines] == [
        "ms  reader",
        "1   fetch t-0 #1 [0..2]",
        "2",
        "3   commit g #1 t-0@1 told UnknownMemberIdError <evict>"[:column].rstrip(),
        "4   leave g",
    ]
    assert lines[2][column:] == "produce out-1 #1 [7] told nothing <lost_answer>"


def test_around_are_the_calls_near_a_place_or_the_last_ones():
    log = history()
    for number in range(100):
        log.add("a", "commit g", number, "ok", True)
    calls = log.calls()
    assert [call.number for call in around(calls, 50)] == list(range(38, 55))
    assert [call.number for call in around(calls, 2)] == list(range(7))
    assert [call.number for call in around(calls, None)] == list(range(84, 100))


def test_faults_are_noted_when_they_happen():
    log = history()
    log.happens(EVICT)
    assert log.faults() == [EVICT]
