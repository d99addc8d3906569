"""Tests are handed out to the workers once each, those of a group to one of them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from scheduling import ALONE, RUN, RunScheduling, spread

TESTS = [f"tests/test_{number % 7}.py::test_{number}[a@b]" for number in range(700)]
GROUPED = [f"{test}@{'apache' if place % 3 else 'spark'}" for place, test in enumerate(TESTS[100:130])]
COLLECTED = TESTS[:100] + GROUPED + TESTS[130:]


class Worker:
    """A worker that runs tests in the order in which it gets them, the last one when it is told to end."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.config = SimpleNamespace(rootpath="/")
        self.queued: list[int] = []
        self.ran: list[str] = []
        self.shutting_down = False

    def send_runtest_some(self, places: list[int]) -> None:
        assert not self.shutting_down
        self.queued += places

    def shutdown(self) -> None:
        self.shutting_down = True

    def step(self) -> int | None:
        """The test that it has run, if it could run one."""
        if len(self.queued) > 1 or (self.queued and self.shutting_down):
            place = self.queued.pop(0)
            self.ran.append(COLLECTED[place])
            return place
        return None


@pytest.fixture
def workers() -> list[Any]:
    return [Worker(number) for number in range(4)]


@pytest.fixture
def scheduling(workers: list[Any]) -> RunScheduling:
    return scheduled(workers, COLLECTED)


def scheduled(workers: list[Any], tests: list[str]) -> RunScheduling:
    """With all these workers, which have collected these tests."""
    found = RunScheduling(SimpleNamespace(getvalue=lambda _: ["4*popen"]))
    for one in workers:
        found.add_node(one)
    for one in workers:
        found.add_node_collection(one, tests)
    found.schedule()
    return found


def run(scheduling: RunScheduling, workers: list[Any], seed: int) -> None:
    """Run all there is, workers in any order."""
    dice = random.Random(seed)
    while busy := [one for one in workers if one.queued]:
        for one in dice.sample(busy, len(busy)):
            place = one.step()
            if place is not None:
                scheduling.mark_test_complete(one, place)


@pytest.mark.parametrize("seed", range(5))
def test_each_test_is_run_once_and_each_group_by_one_worker(scheduling, workers, seed):
    run(scheduling, workers, seed)
    assert scheduling.tests_finished
    assert not scheduling.has_pending
    assert all(one.shutting_down for one in workers)
    assert Counter(test for one in workers for test in one.ran) == Counter(COLLECTED)
    for group in ("apache", "spark"):
        assert sum(any(test.endswith(f"@{group}") for test in one.ran) for one in workers) == 1


def test_groups_begin_first_and_the_front_is_handed_out_one_by_one(scheduling):
    units = [tests for _, tests in scheduling.units(COLLECTED)]
    assert [len(tests) for tests in units[:2]] == [20, 10]
    others = TESTS[:100] + TESTS[130:]
    alone = int(ALONE * len(others)) + 1
    assert units[2 : 2 + alone] == [[test] for test in others[:alone]]
    runs = sorted(units[2 + alone :], key=lambda tests: TESTS.index(tests[0]))
    assert {len(tests) for tests in runs[:-1]} == {RUN}
    assert [test for tests in runs for test in tests] == others[alone:]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 10, 97, 100, 600, 1000])
def test_neighbours_are_spread_and_none_is_left_out(count):
    places = spread(list(range(count)))
    assert sorted(places) == list(range(count))
    if count > 10:
        assert min(abs(one - other) for one, other in pairwise(places)) > count / 4


def test_the_tests_of_a_worker_that_dies_are_run_by_the_others(scheduling, workers):
    dead = workers[1]
    for _ in range(3):
        place = dead.step()
        if place is not None:
            scheduling.mark_test_complete(dead, place)
    crashed = scheduling.remove_node(dead)
    assert crashed == COLLECTED[dead.queued[0]]
    others = [one for one in workers if one is not dead]
    run(scheduling, others, 0)
    assert Counter(test for one in workers for test in one.ran) == Counter(COLLECTED)


def test_ended_tests_are_forgotten(scheduling, workers):
    run(scheduling, workers, 0)
    assert all(units == {} for units in scheduling.assigned_work.values())


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_few_tests_are_handed_out_one_by_one_and_workers_without_any_end(workers, count):
    scheduling = scheduled(workers, COLLECTED[:count])
    assert all(len(one.queued) <= 2 for one in workers)
    run(scheduling, workers, 0)
    assert all(one.shutting_down for one in workers)
    assert sorted(test for one in workers for test in one.ran) == sorted(COLLECTED[:count])
