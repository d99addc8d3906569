"""The gauge of the hub's turns, and work that is cut into short ones."""

from __future__ import annotations

import time

import gevent
from timing import each_time, no_long_turn

from dafka import Broker
from dafka.hub import limits
from dafka.hub.hub import get_hub
from dafka.hub.pool import BATCHES
from dafka.hub.turns import Pace, TurnGauge, let_go, next_turn, out_of


def burn(seconds: float) -> None:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


def gauged(function, *args) -> tuple[float, float]:
    """The longest turn of the hub, by the clock and in processor time, while ``function`` runs there."""
    hub = get_hub()
    hub.run(gevent.sleep, 0.01)  # turns under way are over
    hub.turns.reset()
    hub.run(function, *args)
    hub.run(gevent.sleep, 0.01)
    return hub.turns.longest, hub.turns.longest_cpu


def test_a_turn_that_computes_is_seen_by_both_clocks():
    longest, cpu = gauged(burn, 0.08)  # the system slews one of the clocks
    assert cpu >= 0.07
    assert longest >= 0.07


@each_time
def test_a_turn_that_blocks_is_seen_by_the_clock_alone():
    longest, cpu = gauged(time.sleep, 0.08)
    assert longest >= 0.08
    no_long_turn(cpu, 0.04)


@each_time
def test_waiting_as_a_green_thread_is_not_a_turn():
    _, cpu = gauged(gevent.sleep, 0.1)
    no_long_turn(cpu, 0.04)


@each_time
def test_work_in_a_pool_is_not_a_turn():
    _, cpu = gauged(BATCHES.run, burn, 0.1)
    no_long_turn(cpu, 0.04)


@each_time
def test_paced_work_lets_others_have_their_turn():
    seen: list[int] = []

    def work() -> None:
        other = gevent.spawn(lambda: [(seen.append(len(done)), next_turn()) for _ in range(1000)])
        done: list[int] = []
        for number in Pace().over(range(200), every=1):
            burn(0.001)
            done.append(number)
        other.kill()

    _, cpu = gauged(work)
    no_long_turn(cpu, 0.05)
    assert len(set(seen)) > 10


@each_time
def test_much_paced_work_at_once_makes_no_longer_turns_than_one():
    finished: list[int] = []

    def work(name: int) -> None:
        for _ in Pace().over(range(40), every=1):
            burn(0.001)
        finished.append(name)

    def work_together() -> None:
        def begin(name: int) -> None:
            next_turn()
            work(name)

        greens = [gevent.spawn_later(0.005 * name, begin, name) for name in range(10)]
        gevent.joinall(greens, raise_error=True)

    _, cpu = gauged(work_together)
    no_long_turn(cpu, 0.02)
    assert sorted(finished) == list(range(10))


def test_very_many_objects_are_let_go_in_pieces(monkeypatch):
    monkeypatch.setattr(limits, "PACE_SECONDS", 0.0)
    turn, freed = [0], [0]
    most = [0]

    class Freed:
        def __del__(self) -> None:
            freed[0] += 1

    def others() -> None:
        while turn[0] >= 0:
            most[0] = max(most[0], freed[0])
            freed[0] = 0
            turn[0] += 1
            next_turn()

    def go() -> None:
        other = gevent.spawn(others)
        listed, named = [Freed() for _ in range(1000)], {number: Freed() for number in range(1000)}
        let_go(listed, named)
        assert len(listed) <= limits.PACE_ITEMS
        assert len(named) <= limits.PACE_ITEMS
        turn[0] = -1
        other.kill()

    get_hub().run(go)
    assert 0 < most[0] <= 2 * limits.PACE_ITEMS


def test_items_leave_their_list_in_pieces():
    left = [0, 1, 2, 3, 4]
    pieces = out_of(left, 2)
    assert (next(pieces), left) == ([3, 4], [0, 1, 2])
    assert (next(pieces), left) == ([1, 2], [0])
    assert (next(pieces), left) == ([0], [])
    assert list(pieces) == []


def test_a_green_thread_that_is_killed_while_it_pauses_holds_up_nobody():
    def kill_one_of_two() -> bool:
        def work() -> bool:
            for _ in Pace().over(range(10), every=1):
                burn(0.001)
            return True

        killed, other = gevent.spawn(work), gevent.spawn(work)
        next_turn()
        killed.kill()
        return other.get(timeout=60)

    assert get_hub().run(kill_one_of_two)


def test_the_longest_turn_is_told_for_one_window_to_two(monkeypatch):
    monkeypatch.setattr(limits, "TURN_WINDOW", 10.0)

    class Watcher:
        def start(self, callback):
            self.callback = callback

    class Loop:
        def check(self, **_):
            self.checked = Watcher()
            return self.checked

        def prepare(self, **_):
            self.prepared = Watcher()
            return self.prepared

    now = [100.0]
    loop = Loop()
    gauge = TurnGauge(loop, lambda: now[0], lambda: now[0])

    def turn(seconds: float) -> None:
        loop.checked.callback()
        now[0] += seconds
        loop.prepared.callback()

    turn(0.5)
    turn(0.1)
    assert (gauge.longest, round(gauge.metrics()["hub_longest_turn"], -3)) == (0.5, 500_000)
    now[0] += 10
    turn(0.2)
    assert gauge.longest == 0.5
    turn(0.3)
    now[0] += 10
    turn(0.1)
    assert 0.25 < gauge.longest < 0.35
    gauge.reset()
    assert gauge.longest == gauge.longest_cpu == 0.0


def test_a_turn_takes_no_more_processor_time_than_time(monkeypatch):
    class Watcher:
        def start(self, callback):
            self.callback = callback

    class Loop:
        def watcher(self, **_):
            return Watcher()

        check = prepare = watcher

    clock, cpu = iter([0.0, 1.0, 3.0, 4.0]), iter([0.0, 2.0 + 1e-6])
    gauge = TurnGauge(Loop(), lambda: next(clock), lambda: next(cpu))
    gauge._check.callback()
    gauge._prepare.callback()
    assert (gauge.longest, gauge.longest_cpu) == (2.0, 2.0)


def test_a_broker_tells_it_in_its_metrics():
    with Broker() as broker:
        get_hub().run(burn, 0.06)
        get_hub().run(gevent.sleep, 0.01)
        metrics = broker.metrics()
    assert metrics["hub_longest_turn"] >= metrics["hub_longest_turn_cpu"] >= 50_000
