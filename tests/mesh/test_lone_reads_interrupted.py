"""Records that come alone, in programs that signals interrupt, that are traced, or have green threads."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import gevent
import pytest
from mesh.lending import Meeting, meeting, plain_thread
from mesh.test_lone import ELSEWHERE
from timing import SECONDS, until

from dafka import Consumer, Producer, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import consumer as consumer_module
from dafka.mesh import consumer_node, lone_reads, options
from dafka.protocol.runs import Run
from dafka.sockets import loans
from dafka.sockets.loans import CAN_LEND
from tests.compat.interrupting import InterruptedCall

MODULES = (consumer_module, consumer_node, lone_reads, loans)
POLL = Consumer.poll.__code__

pytestmark = [
    pytest.mark.skipif(not CAN_LEND, reason="no connection is lent on this system"),
    pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="a socket of libzmq is one thread's"),
]


@pytest.fixture
def met() -> Iterator[Meeting]:
    with plain_thread(), meeting() as one:
        one.lend()
        yield one


def be_traced() -> None:
    sys.settrace(lambda *_: None)


def have_green_threads() -> None:
    gevent.sleep(0)


@pytest.mark.parametrize("prepare", [be_traced, have_green_threads])
def test_connections_are_lent_to_no_thread_that_may_go_on_within_a_stretch_or_a_wait(
    met: Meeting, prepare: Callable[[], None]
):
    records: list[Any] = []

    def read() -> None:
        prepare()  # for the rest of this thread
        records.extend(met.consumer.poll(SECONDS))

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: not met.is_lent)
    met.say(b"hello")
    thread.join(SECONDS)
    assert [record.value for record in records] == [b"hello"]


def test_a_program_whose_threads_are_patched_consumes_as_before():
    script = """
from gevent import monkey; monkey.patch_all()
import gevent
from dafka import Consumer, Producer, Tower
with Tower() as tower, Consumer(["t"], tower=tower, offset_reset="earliest") as consumer:
    with Producer("t", tower=tower, min_stores=0, beacon_interval=0.5) as producer:
        got = []
        def consume():
            for record in consumer:
                got.append(record.value)
        green = gevent.spawn(consume)
        for number in range(20):
            producer.send(b"%d" % number)
            gevent.sleep(0.01)
        while len(got) < 20:
            gevent.sleep(0.01)
        assert got == [b"%d" % number for number in range(20)], got
        assert not consumer._node._lone.may_come
        green.kill()
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=SECONDS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_lone_records_come_once_whichever_call_ctrl_c_ends(met: Meeting):
    for number in count(1):
        met.lend()
        received = met.next
        met.say(b"interrupted")
        interruption = InterruptedCall(number, *MODULES, handing_out=(POLL,))
        records = []
        with suppress(KeyboardInterrupt), interruption:
            records = met.consumer.poll(SECONDS)
        met.say(b"behind")
        while len(records) < 2:
            records += met.consumer.poll(SECONDS)
        assert [(record.sequence, record.value) for record in records] == [
            (received, b"interrupted"),
            (received + 1, b"behind"),
        ]
        if not interruption.interrupted:
            break
    print(number)
    assert number > 20


def test_a_handler_of_a_signal_may_ask_the_hub_whichever_call_it_comes_behind(met: Meeting):
    for number in count(1):
        met.lend()
        met.say(b"first")
        asked: list[int] = []
        with InterruptedCall(
            number, *MODULES, handler=lambda asked=asked: asked.append(met.consumer.metrics()["records_in"])
        ) as interruption:
            records = met.consumer.poll(SECONDS)
        met.say(b"behind")
        while len(records) < 2:
            records += met.consumer.poll(SECONDS)
        assert [record.value for record in records] == [b"first", b"behind"]
        if not interruption.interrupted:
            break
        assert met.next - 2 <= asked[0] <= met.next
    print(number)
    assert number > 20


@pytest.mark.parametrize("lends", [False, True], ids=["nothing lent", "lent"])
@pytest.mark.parametrize("timeout", [0.0, 0.01])
@pytest.mark.parametrize("ending", [False, True], ids=["a record", "the end"])
def test_a_wait_within_a_wait_leaves_the_outer_one_to_be_woken(lends: bool, timeout: float, ending: bool):
    with plain_thread(), meeting() as met:
        if lends:
            met.lend()
        polled = threading.Event()

        def poll(*_: object) -> None:
            assert met.consumer.poll(timeout) == []
            polled.set()

        def go_on() -> None:
            polled.wait(SECONDS)
            time.sleep(0.05)
            if ending:
                met.consumer.close()
            else:
                get_hub().run(met.node.on_run, Run(None, b"Q" * 32, b"t", 0, [b"by the hub"]))

        other = threading.Thread(target=go_on)
        before = signal.signal(signal.SIGALRM, poll)
        other.start()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began = time.monotonic()
        try:
            records = met.consumer.poll(20)
        finally:
            signal.signal(signal.SIGALRM, before)
            other.join(SECONDS)
        assert time.monotonic() - began < 15
        assert polled.is_set()
        assert [record.value for record in records] == ([] if ending else [b"by the hub"])


def test_records_that_a_wait_within_a_wait_leaves_are_the_outer_ones():
    with plain_thread(), meeting() as met:
        met.lend()
        inner: list[Any] = []

        def deliver() -> None:
            for number, partition in enumerate((b"Q" * 32, b"R" * 32)):
                met.node.on_run(Run(None, partition, b"t", 0, [b"%d" % number]))

        def poll(*_: object) -> None:
            later = threading.Timer(0.05, get_hub().post, [deliver])
            later.start()
            inner.extend(met.consumer.poll(SECONDS, 1))

        before = signal.signal(signal.SIGALRM, poll)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            outer = next(met.consumer)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert [record.value for record in (*inner, outer)] == [b"0", b"1"]
        assert met.is_lent  # and it was not the end of the connection that ended the wait


def test_a_process_that_is_forked_in_the_midst_of_a_wait_takes_nothing_from_its_parent():
    script = """
import os, signal, sys, time, warnings
warnings.simplefilter("ignore")
from dafka import Consumer, Producer, Tower
from dafka.hub.hub import ForkedError
parent, children, lent = os.getpid(), [], False
def handle(*_):
    pid = os.fork()
    if pid:
        children.append(pid)
with Tower() as tower, Consumer(["t"], tower=tower, offset_reset="earliest") as consumer:
    sender = os.fork()
    if not sender:
        with Producer("t", tower=tower.addresses, min_stores=0) as producer:
            for number in range(700):
                producer.send(b"%d" % number)
                time.sleep(0.003)
            time.sleep(100)
    signal.signal(signal.SIGALRM, handle)
    taken = 0
    try:
        for record in consumer:
            assert os.getpid() == parent
            assert int(record.value) == taken
            taken += 1
            if consumer._node._lone.may_come and not lent:
                lent = True
                signal.setitimer(signal.ITIMER_REAL, 0.05, 0.04)
            if taken == 700:
                break
    except ForkedError:
        os._exit(0 if os.getpid() != parent else 1)
    except BaseException as error:
        print(type(error), error, file=sys.stderr, flush=True)
        os._exit(2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.kill(sender, signal.SIGKILL)
    ends = {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children}
    print(lent, consumer._node._lone.records > 100, ends)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=SECONDS, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True True {0}\n", "")


def test_signals_without_end_lose_no_lone_record():
    """Python looks for signals while it waits, too."""
    with (
        plain_thread(),
        Tower() as tower,
        Consumer(["t"], tower=tower, offset_reset="earliest") as consumer,
        Producer("t", tower=tower, min_stores=0, **ELSEWHERE) as producer,
    ):
        until(lambda: producer._node.endpoint._heard.hears(b"Mt"))
        stop = threading.Event()

        def send() -> None:
            for number in itertools.count():
                if stop.is_set():
                    return
                producer.send(b"%d" % number)
                time.sleep(0.001)

        interrupted = 0
        raises = False

        def handle(*_: object) -> None:
            nonlocal raises, interrupted
            raises = not raises
            if raises:
                interrupted += 1
                raise TimeoutError

        thread = threading.Thread(target=send)
        before = signal.signal(signal.SIGALRM, handle)
        thread.start()
        signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
        kept: list[int] = []
        try:
            ends = time.monotonic() + 3
            while time.monotonic() < ends:
                with suppress(TimeoutError):
                    for record in consumer:
                        kept.append(record.sequence)
        finally:
            with suppress(TimeoutError):
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            stop.set()
            thread.join(SECONDS)
        last = producer.send(b"last")
        while not kept or kept[-1] < last:
            kept += [record.sequence for record in consumer.poll(SECONDS)]
        assert interrupted > 100
        # What an iterator had handed out in the moment of a signal is the program's, which did not keep it.
        assert kept == sorted(set(kept))
        assert len(kept) > (last + 1) / 2
