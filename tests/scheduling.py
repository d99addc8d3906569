"""Which worker of pytest-xdist runs which tests next: groups first, then long tests one by one, then others.

The scheduler of ``--dist loadgroup`` hands out tests without a group one by one, and looks at all that a
worker has ever had whenever a test ends: of 12 000 tests that do nothing, 31 s of processor time, it takes
12 s. Here they are handed out in runs, and what has ended is forgotten. The first ones, among which are those
that take long (``conftest.py`` sorts them), are still handed out one by one, so that no worker has several.
Runs that stand side by side are handed out far from each other: where one file's tests all wait, all workers
came to it at once and the processor had nothing to do for seconds.
"""

from __future__ import annotations

from math import ceil, gcd
from typing import TYPE_CHECKING, Any

from xdist.scheduler.loadgroup import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ALONE = 0.01  # of the tests without a group, from the front
RUN = 8  # of the others are handed out together
RUNS = 16  # for each worker, or more; where tests are few, runs are shorter


class RunScheduling(LoadGroupScheduling):
    """``--dist loadgroup`` for very many tests."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        self._places: dict[str, int] = {}  # of each test in what the workers have collected
        self._units: dict[str, str] = {}  # by test: the name of what it is handed out with

    def schedule(self) -> None:
        """Hand out the first tests."""
        if self.collection is not None:
            for node in self.nodes:
                self._reschedule(node)
            return
        if not self._check_nodes_have_same_collection():
            return
        self.collection = list(next(iter(self.registered_collections.values())))
        self._places = {test: place for place, test in enumerate(self.collection)}
        for name, tests in self.units(self.collection):
            self._units.update(dict.fromkeys(tests, name))
            self.workqueue[name] = dict.fromkeys(tests, False)
        for node in 2 * self.nodes:  # a worker needs to know of the test behind the one that it runs
            if self.workqueue:
                self._assign_work_unit(node)
        if not self.workqueue:
            for node in self.nodes:
                node.shutdown()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """A worker has done a test, and gets more to do if it has not much left."""
        test = self.registered_collections[node][item_index]
        name = self._units[test]
        assigned = self.assigned_work[node]
        assigned[name][test] = True
        if all(assigned[name].values()):
            del assigned[name]
        self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        name, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][name] = unit
        node.send_runtest_some([self._places[test] for test, done in unit.items() if not done])

    def units(self, tests: list[str]) -> list[tuple[str, list[str]]]:
        """What is handed out together, with a name for each, in the order in which it is handed out."""
        groups: dict[str, list[str]] = {}
        others = []
        for test in tests:
            group = self._split_scope(test)  # behind the name of the test, which is its own scope without one
            if group == test:
                others.append(test)
            else:
                groups.setdefault(group, []).append(test)
        alone = ceil(ALONE * len(others))
        length = max(1, min(RUN, len(others) // (RUNS * len(self.nodes))))
        runs = [others[first : first + length] for first in range(alone, len(others), length)]
        runs = [[test] for test in others[:alone]] + spread(runs)
        in_order = sorted(groups.items(), key=lambda group: len(group[1]), reverse=True)
        return in_order + [(f"run {number}", run) for number, run in enumerate(runs)]


def spread(units: list[Any]) -> list[Any]:
    """The same in another order, in which neighbours are far from each other.

    Tests of one file often wait, or compute, all alike: at any time the workers should have some of each.
    """
    step = ceil(0.618 * len(units))
    while gcd(step, len(units)) > 1:
        step += 1
    return [units[place * step % len(units)] for place in range(len(units))]
