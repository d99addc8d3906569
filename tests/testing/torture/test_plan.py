"""Faults as values: readable, comparable, and refused where they make no sense."""

from __future__ import annotations

import copy
import pickle

import pytest

from dafka.testing import Fault
from dafka.testing.torture.plan import Plan, written

LOST = Fault("produce my-orders-0", 3, "lost_answer")


def test_a_printed_plan_can_be_pasted():
    plan = [LOST, Fault("commit billing", 1, "evict"), Fault("transaction tx 1", 2, "loading")]
    assert eval(written(plan)) == plan
    assert repr(LOST) == "Fault('produce my-orders-0', 3, 'lost_answer')"
    assert (written([]), repr(Plan([LOST]))) == ("[]", f"chaos.plan([\n    {LOST!r},\n])")


def test_faults_are_values():
    same = Fault("produce my-orders-0", 3, "lost_answer")
    assert same == LOST and hash(same) == hash(LOST) and {same} == {LOST}
    assert Fault("produce my-orders-0", 4, "lost_answer") not in (LOST, "fault")
    assert sorted([LOST, Fault("commit g", 9, "evict")])[0].point == "commit g"
    assert pickle.loads(pickle.dumps(LOST)) == copy.deepcopy(LOST) == LOST
    with pytest.raises(AttributeError):
        LOST.call = 4


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("heartbeat g", 1, "evict"), "not a point"),
        (("commit", 1, "evict"), "not a point"),
        (("produce orders", 1, "lost_answer"), "no partition"),
        (("produce orders-x", 1, "lost_answer"), "no partition"),
        (("produce -1", 1, "lost_answer"), "no partition"),
        (("commit g", 0, "evict"), "from 1 on"),
        (("commit g", "1", "evict"), "from 1 on"),
        (("commit g", 1, "fire"), "no fault 'fire'"),
        (("commit g", 1, "full_disk"), "not a fault of commit"),
    ],
)
def test_faults_that_make_no_sense_are_refused(fault, words):
    with pytest.raises(ValueError, match=words):
        Fault(*fault)


def test_a_plan_has_one_fault_for_a_call():
    plan = Plan([LOST, Fault("produce my-orders-0", 4, "full_disk")])
    kinds = [plan.kind("produce my-orders-0", call) for call in range(1, 6)]
    assert kinds == [None, None, "lost_answer", "full_disk", None]
    assert plan.kind("produce my-orders-1", 3) is None
    with pytest.raises(ValueError, match="two faults"):
        Plan([LOST, Fault("produce my-orders-0", 3, "full_disk")])
    with pytest.raises(TypeError, match="'evict'"):
        Plan(["evict"])
