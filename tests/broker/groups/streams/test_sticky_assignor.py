"""Which member of a Streams group gets which task."""

from __future__ import annotations

import time

from dafka.broker.groups.streams.sticky_assignor import Runner, Spec, Target, assign_sticky
from dafka.broker.groups.streams.tasks import NOTHING, Roles, each


def spec(target: Target, processes: dict[str, str], tasks: dict[str, int], standbys: int = 0) -> Spec:
    members = [Runner(name, process, target.get(name, NOTHING)) for name, process in processes.items()]
    return Spec(1, members, tasks, frozenset({"s"}), standbys)


def counts(target: Target) -> list[int]:
    return sorted(len(list(each(one.active))) for one in target.values())


def test_nobody_gets_nothing():
    assert assign_sticky(spec({}, {}, {"s": 3})) == {}


def test_tasks_are_shared_evenly_and_each_is_run_once():
    target = assign_sticky(spec({}, {"m": "p", "n": "q", "o": "q"}, {"s": 4, "t": 3}))
    assert counts(target) == [2, 2, 3]
    assert len({task for one in target.values() for task in each(one.active)}) == 7


def test_each_subtopology_is_shared_and_tasks_of_one_number_are_together():
    """So that state is on all disks, and topics with the same keys are read in one place."""
    tasks = {"s": 4, "t": 4}

    def are_together(target: Target) -> bool:
        shares = [one.active for one in target.values()]
        return all(share["s"] == share["t"] and len(share["s"]) == 2 for share in shares)

    assert are_together(assign_sticky(spec({}, {"m": "p", "n": "q"}, tasks)))
    alone = assign_sticky(spec({}, {"m": "p"}, tasks))
    assert are_together(assign_sticky(spec(alone, {"m": "p", "n": "q"}, tasks)))
    copies = assign_sticky(spec({}, {"m": "p", "n": "q"}, tasks, 1))
    assert are_together(copies) and copies["m"].standby == {"s": copies["n"].active["s"]}


def test_members_that_stay_keep_their_tasks():
    before = assign_sticky(spec({}, {"m": "p", "n": "q"}, {"s": 6}))
    after = assign_sticky(spec(before, {"m": "p", "n": "q", "o": "r"}, {"s": 6}))
    assert counts(after) == [2, 2, 2]
    for name in ("m", "n"):
        assert set(each(after[name].active)) <= set(each(before[name].active))


def test_a_copy_is_in_another_process_and_takes_over():
    before = assign_sticky(spec({}, {"m": "p", "n": "q"}, {"s": 2}, 1))
    assert before["m"].active == before["n"].standby and before["n"].active == before["m"].standby
    after = assign_sticky(spec(before, {"n": "q", "o": "r", "x": "x"}, {"s": 2}, 1))
    assert set(each(after["n"].active)) == set(each(before["n"].active))
    alone = assign_sticky(spec(before, {"n": "q"}, {"s": 2}, 1))
    assert alone["n"] == Roles({"s": frozenset({0, 1})})


def test_a_task_becomes_active_where_its_standby_was():
    before = {"n": Roles({}, {"s": frozenset({0})}), "m": NOTHING}
    after = assign_sticky(spec(before, {"m": "p", "n": "q"}, {"s": 1}))
    assert after["n"] == Roles({"s": frozenset({0})})


def test_subtopologies_without_state_have_no_copies_and_more_copies_than_processes_are_left_out():
    target = assign_sticky(spec({}, {"m": "p", "n": "q"}, {"s": 1, "t": 2}, 5))
    copies = [task for one in target.values() for task in each(one.standby)]
    assert copies == [("s", 0)]


def test_large_groups_take_little_time():
    processes = {f"m{number}": f"p{number % 50}" for number in range(200)}
    began = time.process_time()
    target = assign_sticky(spec({}, processes, {"s": 5000, "t": 5000}, 1))
    assign_sticky(spec(target, dict(list(processes.items())[1:]), {"s": 5000, "t": 5000}, 1))
    assert time.process_time() - began < 10
