"""The hub: calls cross into one thread and come back, for every kind of caller."""

from __future__ import annotations

import os
import socket
import sys
import textwrap
import threading
import time
import types

import forking
import gevent
import gevent.event
import gevent.socket
import pytest

from dafka.hub import hub as hub_module
from dafka.hub import limits
from dafka.hub.hub import Hub, Waiter, get_hub
from dafka.hub.turns import next_turn


def test_a_call_runs_on_the_hub_thread_and_its_result_comes_back():
    hub = get_hub()
    assert hub.run(threading.get_ident) != threading.get_ident()
    assert hub.run(lambda first, second: first + second, 2, second=3) == 5


def test_an_exception_comes_back_as_it_was_raised():
    error = KeyError("x")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        get_hub().run(fail)
    assert caught.value is error


def test_a_call_may_wait_and_others_go_on():
    hub = get_hub()
    order: list[str] = []
    begun, go_on = threading.Event(), hub.run(gevent.event.Event)

    def slow() -> None:
        begun.set()
        go_on.wait()
        order.append("slow")

    thread = threading.Thread(target=hub.run, args=(slow,))
    thread.start()
    assert begun.wait(60)
    hub.run(order.append, "quick")
    hub.run(go_on.set)
    thread.join()
    assert order == ["quick", "slow"]


def test_a_call_on_the_hub_thread_is_a_plain_call():
    hub = get_hub()
    assert hub.run(lambda: hub.run(threading.get_ident)) == hub.run(threading.get_ident)


def test_posted_calls_keep_their_order():
    hub = get_hub()
    seen: list[int] = []
    for number in range(1000):
        hub.post(seen.append, number)
    hub.run(lambda: None)
    assert seen == list(range(1000))


def test_calls_that_post_themselves_again_leave_time_for_timers():
    hub = get_hub()
    going = [True]
    runs = [0]

    def again() -> None:
        runs[0] += 1
        if going[0]:
            hub.post(again)

    hub.post(again)
    try:
        started = time.monotonic()
        hub.run(gevent.sleep, 0.05)
        assert time.monotonic() - started < 50
        assert runs[0] > 10
    finally:
        going[0] = False


def test_a_failing_posted_call_does_not_hurt_the_next_one(caplog):
    hub = get_hub()
    hub.post(lambda: 1 // 0)
    assert hub.run(lambda: 7) == 7
    assert "ZeroDivisionError" in caplog.text


@pytest.fixture
def own_hub():
    """One that nobody else posts calls to, as what earlier tests have left behind does to the process's."""
    hub = Hub()
    yield hub
    hub.stop()


def test_a_lone_posted_call_has_its_soon_done_before_the_loop_goes_on(own_hub, monkeypatch):
    monkeypatch.setattr(limits, "POSTED_SECONDS", 60.0)
    hub = own_hub
    order: list[str] = []

    done = threading.Event()

    def call() -> None:
        gevent.get_hub().loop.run_callback(order.append, "the loop")
        gevent.get_hub().loop.run_callback(done.set)
        hub.soon(lambda: order.append("soon"))
        order.append("call")

    hub.post(call)
    assert done.wait(60)
    assert order == ["call", "soon", "the loop"]


def test_several_posted_calls_have_their_soon_done_at_the_end_of_the_turn(own_hub, monkeypatch):
    monkeypatch.setattr(limits, "POSTED_SECONDS", 60.0)
    hub = own_hub
    order: list[str] = []

    def call() -> None:
        gevent.get_hub().loop.run_callback(order.append, "the loop")
        hub.soon(lambda: order.append("soon"))
        hub.post(order.append, "second")

    hub.post(call)
    hub.run(next_turn)
    assert order == ["second", "the loop", "soon"]


def test_a_green_thread_has_its_soon_done_at_the_end_of_the_turn():
    hub = get_hub()
    order: list[str] = []

    def call() -> None:
        hub.soon(lambda: order.append("soon"))
        order.append("call")
        next_turn()

    hub.run(call)
    assert order == ["call", "soon"]


def test_a_failure_of_one_soon_does_not_hurt_the_rest(own_hub, caplog, monkeypatch):
    monkeypatch.setattr(limits, "POSTED_SECONDS", 60.0)
    hub = own_hub
    order: list[str] = []
    done = threading.Event()

    def call() -> None:
        gevent.get_hub().loop.run_callback(done.set)
        hub.soon(lambda: order.append(str(1 // 0)))
        hub.soon(lambda: order.append("soon"))

    hub.post(call)
    assert done.wait(60)
    assert order == ["soon"]
    assert "behind the one that was posted" in caplog.text


def test_much_that_is_to_be_soon_leaves_time_for_sockets_and_timers(own_hub, monkeypatch):
    monkeypatch.setattr(limits, "POSTED_SECONDS", 0.0)
    hub = own_hub
    order: list[str] = []

    def call() -> None:
        gevent.get_hub().loop.run_callback(order.append, "the loop")
        for number in range(3):
            hub.soon(lambda number=number: order.append(str(number)))

    hub.post(call)
    hub.run(next_turn)
    assert order == ["the loop", "0", "1", "2"]


def test_a_green_thread_that_others_rely_on_goes_on_after_an_error(caplog, monkeypatch):
    monkeypatch.setattr(limits, "SHORTEST_RESTART", 0.001)
    hub, calls = get_hub(), []

    def work():
        calls.append(1)
        if len(calls) < 3:
            raise KeyError("unexpected") if len(calls) == 1 else SystemExit(1)

    hub.run(lambda: hub.keep(work).join(60))
    assert len(calls) == 3
    name = "test_a_green_thread_that_others_rely_on_goes_on_after_an_error.<locals>.work"
    assert [bool(one.exc_info) for one in caplog.records if name in one.getMessage()] == [True, True]


def test_a_green_thread_that_others_rely_on_ends_when_it_is_killed():
    hub = get_hub()

    def killed():
        green = hub.keep(gevent.sleep, 60)
        gevent.sleep(0)
        green.kill(timeout=60)
        return green.dead

    assert hub.run(killed)


def test_an_error_of_the_interpreter_in_a_green_thread_does_not_end_the_hub():
    """gevent hands a SystemError to the green thread that runs the loop."""
    hub = get_hub()

    def broken():
        raise SystemError("returned NULL without setting an exception")

    hub.run(lambda: gevent.spawn(broken).join(60))
    assert hub.run(lambda: 7) == 7


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """The pauses of threads that give way."""
    pauses: list[float] = []
    monkeypatch.setattr(hub_module, "_sleep", pauses.append)
    return pauses


def test_a_thread_gives_way_to_a_turn_of_the_hub_for_so_long_at_most(slept):
    hub = get_hub()
    begun, ends = threading.Event(), threading.Event()

    def turn() -> None:
        begun.set()
        ends.wait(100)

    ours, theirs = socket.socketpair()
    green = hub.run(hub.spawn, gevent.socket.wait_read, theirs.fileno())
    hub.run(next_turn)  # the loop has heard of the socket
    hub.post(turn)
    assert begun.wait(100)
    try:
        hub.give_way()
        assert slept == [limits.WAY_SECONDS] * limits.WAYS_GIVEN
        ours.send(b"x")
        assert hub._has_events()
    finally:
        ends.set()
    hub.run(green.join)
    ours.close()
    theirs.close()


def test_a_thread_gives_way_to_what_the_hub_has_to_look_at_and_not_to_one_that_waits(slept):
    hub = object.__new__(hub_module.Hub)  # without a thread
    there, end = os.pipe()
    hub._ident, hub.turns, hub._events = None, types.SimpleNamespace(under_way=False), there
    hub.give_way()
    assert not slept
    os.write(end, b"x")
    hub.give_way()
    assert slept == [limits.WAY_SECONDS] * limits.WAYS_GIVEN
    hub._events = None  # a loop that cannot tell
    hub.give_way()
    assert len(slept) == limits.WAYS_GIVEN
    os.close(there)
    os.close(end)


def test_the_hub_gives_itself_no_way(slept):
    hub = get_hub()
    hub.run(hub.give_way)
    assert not slept


def test_waiter_times_out_and_is_set_from_another_thread():
    waiter = get_hub().waiter()
    started = time.monotonic()
    assert waiter.wait(0.05) is False
    assert time.monotonic() - started >= 0.04
    threading.Timer(0.05, waiter.set).start()
    assert waiter.wait(60) is True
    assert waiter.wait(0) is True  # it stays set


def test_a_gevent_caller_waits_without_stopping_its_other_greenlets():
    def program() -> None:
        ticks: list[int] = []

        def tick() -> None:
            for number in range(5):
                ticks.append(number)
                gevent.sleep(0.02)

        def wait_for_ticks() -> None:
            with gevent.Timeout(60, False):
                while len(ticks) < 5:
                    gevent.sleep(0.01)

        ticking = gevent.spawn(tick)
        get_hub().run(wait_for_ticks)
        assert len(ticks) == 5, ticks
        ticking.join()

    outcome: list[BaseException | None] = []

    def in_thread() -> None:
        try:
            program()
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert outcome == [None]


def run_program(source: str) -> str:
    """What a program prints, run in an interpreter of its own; its errors fail the test."""
    done = forking.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=200,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_monkey_patched_program_keeps_running_while_it_waits():
    assert (
        run_program(
            """
            from gevent import monkey; monkey.patch_all()
            import gevent, threading, time
            from dafka.hub.hub import get_hub
            hub = get_hub()
            ticks = []
            def tick():
                for _ in range(5):
                    ticks.append(1); time.sleep(0.02)
            def wait_for_ticks():
                with gevent.Timeout(60, False):
                    while len(ticks) < 5:
                        gevent.sleep(0.01)
            green = gevent.spawn(tick)
            hub.run(wait_for_ticks)
            print(len(ticks), hub.run(lambda: hub.here), hub.here)
            """
        )
        == "5 True False"
    )


def test_the_hub_of_before_a_fork_is_refused_in_the_child_and_a_new_one_works():
    assert (
        run_program(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            from dafka.hub.hub import get_hub, ForkedError
            hub = get_hub(); hub.run(int)
            child = os.fork()
            if child == 0:
                try:
                    hub.run(int)
                except ForkedError:
                    os._exit(get_hub().run(lambda: 42))
                os._exit(1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), hub.run(lambda: 7))
            """
        )
        == "42 7"
    )


def test_a_producer_of_before_a_fork_refuses_records_in_the_child():
    assert (
        run_program(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            from dafka import Producer, Tower
            from dafka.hub.hub import ForkedError
            tower = Tower()
            producer = Producer("hello", tower=tower, min_stores=0)
            producer.send(b"value")
            producer._node.signalled = True  # as between a send and the hub's answer to it
            child = os.fork()
            if child == 0:
                try:
                    producer.send(b"lost")
                except ForkedError:
                    os._exit(42)
                os._exit(1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """
        )
        == "42"
    )


def test_ctrl_c_at_the_interpreters_exit_prints_no_traceback(monkeypatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(get_hub(), "stop", interrupted)
    hub_module._stop_at_exit()


def test_an_interpreter_with_a_running_hub_ends_quietly():
    assert run_program("from dafka.hub.hub import get_hub; print(get_hub().run(lambda: 'end'))") == "end"


def test_a_waiter_whose_thread_and_loop_have_ended_is_set_in_vain():
    """A call that was given up may end in the hub after its thread."""
    made = []

    def make():
        gevent.get_hub()
        made.append(Waiter())
        gevent.get_hub().destroy(destroy_loop=True)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    made[0].set()


def test_a_waiter_of_any_thread_refuses_to_wait_nan_seconds():
    def refuse() -> None:
        waiter = Waiter()
        with pytest.raises(ValueError, match="not nan"):
            waiter.wait(float("nan"))
        waiter.close()

    refuse()
    gevent.spawn(refuse).get(timeout=60)  # in the loop of this thread, whose timers are not ours
