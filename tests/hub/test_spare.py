"""Green threads that are used again."""

from __future__ import annotations

import gevent
import gevent.event

from dafka.hub.spare import SpareGreens


def test_work_is_done_in_its_order_by_the_same_green_thread():
    greens, done = SpareGreens(2), []

    def work(number):
        done.append((number, gevent.getcurrent()))

    for number in range(5):
        greens.begin(work, number).join()
    assert [number for number, _ in done] == [0, 1, 2, 3, 4]
    assert len({green for _, green in done}) == len(greens) == 1
    tasks = [greens.begin(work, number) for number in range(5, 8)]  # one of them by the one that waits
    for task in tasks:
        task.join()
    assert [number for number, _ in done] == [*range(8)]
    assert len({green for _, green in done}) == 3


def test_no_more_of_them_wait_than_were_allowed_and_none_after_the_end():
    greens, gate, seen = SpareGreens(2), gevent.event.Event(), []

    def work():
        seen.append(gevent.getcurrent())
        gate.wait()

    tasks = [greens.begin(work) for _ in range(5)]
    gevent.sleep(0)
    gate.set()
    for task in tasks:
        task.join()
        task.join()
    assert len(set(seen)) == 5
    assert len(greens) == 2
    greens.close()
    gevent.joinall(seen, timeout=100, raise_error=True)
    assert all(green.dead for green in seen)
    greens.begin(work).join()
    assert len(greens) == 0
    seen[-1].join(100)
    assert seen[-1].dead


def test_killed_work_ends_where_it_waits_and_its_green_thread_does_no_other():
    greens, ended = SpareGreens(2), []

    def work(number):
        try:
            gevent.event.Event().wait()
        finally:
            ended.append(number)

    first = greens.begin(work, 1)
    gevent.sleep(0)
    never = greens.begin(work, 2)
    first.kill()
    never.kill()
    never.join()
    first.join()
    assert ended == [1]
    assert len(greens) == 1  # that of the one that never began


def test_killing_work_that_is_done_meanwhile_leaves_what_its_green_thread_does_next():
    greens, gate, done = SpareGreens(1), gevent.event.Event(), []

    def work():
        gate.wait()
        done.append(1)

    task = greens.begin(gate.wait)
    gevent.sleep(0)
    gate.set()  # its green thread goes on before it can be killed
    task.kill()
    other = greens.begin(work)
    gate.clear()
    task.join()
    for _ in range(3):
        gevent.sleep(0)
    assert not done
    gate.set()
    other.join()
    assert done == [1]
