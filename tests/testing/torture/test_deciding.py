"""Calls are counted at their points, and clients named by the order of their arrival."""

from __future__ import annotations

from dafka.testing import Fault
from dafka.testing.torture.deciding import Calls, Chaos
from dafka.testing.torture.history import History
from dafka.testing.torture.plan import Plan

FULL, LOST = Fault("produce t-0", 2, "full_disk"), Fault("produce t-1", 1, "lost_answer")


def test_each_point_counts_for_itself():
    chaos = Chaos(Plan([FULL, LOST]), History())
    decided = [chaos.decide(point) for point in ("produce t-0", "produce t-1", "produce t-0", "produce t-0")]
    assert decided == [(1, None), (1, LOST), (2, FULL), (3, None)]


def test_calm_counts_on_without_faults():
    chaos = Chaos(Plan([FULL]), History())
    chaos.calm = True
    assert [chaos.decide("produce t-0") for _ in range(2)] == [(1, None), (2, None)]


def test_clients_are_numbered_as_they_come():
    chaos = Chaos(Plan([]), History())
    names = [
        chaos.name(given) for given in ("kafka-python-producer-17", "kafka-python-producer-18", "billing", "")
    ]
    assert names == ["kafka-python-producer-1", "kafka-python-producer-2", "billing-1", "client-1"]


def test_a_fault_of_the_whole_request_is_the_only_one():
    history = History()
    chaos = Chaos(Plan([Fault("produce t-0", 1, "full_disk"), LOST]), history)
    calls = Calls(chaos, "a", "produce", [("t", 0), ("t", 1)])
    assert calls.whole() == LOST
    calls.ranges = {("t", 0): (5, 6), ("t", 1): (0, 2)}
    calls.note()
    assert history.faults() == [LOST]
    assert [(call.point, call.told, call.done, call.fault) for call in history.calls()] == [
        ("produce t-0", "nothing", True, None),
        ("produce t-1", "nothing", True, LOST),
    ]


def test_faults_that_make_no_sense_do_not_happen():
    history = History()
    calls = Calls(Chaos(Plan([FULL, LOST]), history), "a", "produce", [("t", 1)])
    calls.drop(lambda kind: kind == "lost_answer")
    assert calls.whole() is None
    calls.note({("t", 1): None})
    assert (history.faults(), history.calls()[0].told) == ([], "ok")
