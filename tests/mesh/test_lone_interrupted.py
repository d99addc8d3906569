"""Lone records whose thread is interrupted: by Ctrl-C, by the handler of a signal, by a full connection."""

from __future__ import annotations

import ctypes
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from bytecode import stretch_of
from mesh.peer import Peer
from mesh.test_lone import ELSEWHERE, meeting, prepare
from timing import until

from dafka import Consumer, Producer, Tower
from dafka.hub import hub
from dafka.mesh import lone, options, producer_node
from dafka.mesh import producer as producer_module
from dafka.mesh.lone import LoneRecords
from dafka.protocol.commands import Record
from dafka.sockets import leases
from tests.compat.interrupting import InterruptedCall

pytestmark = pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="a socket of libzmq is one thread's")

MODULES = (producer_module, producer_node, lone, leases, hub)


@contextmanager
def consumed_elsewhere() -> Iterator[tuple[Producer, Consumer]]:
    """A producer whose records a consumer of another endpoint gets."""
    with (
        Tower() as tower,
        Producer("t", tower=tower, min_stores=0) as producer,
        Consumer(["t"], tower=tower, offset_reset="earliest", **ELSEWHERE) as consumer,
    ):
        until(lambda: producer._node.endpoint._heard.hears(b"Mt"))
        yield producer, consumer


@contextmanager
def full_socket() -> Iterator[socket.socket]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                one.send(bytes(4096))
        yield one


@pytest.fixture
def peer() -> Iterator[Peer]:
    """It has met the producer of ``t``, and heard a first record of it."""
    with Tower() as tower, Peer(tower.addresses) as one:
        one.tower = tower
        yield one


@pytest.mark.parametrize("taken", ["nothing", "a part"])
def test_a_thread_is_done_with_a_lone_record_before_the_handler_of_a_signal_runs_in_it(peer, taken: str):
    """The handler may wait for something that the hub is to send."""
    seen: list[bool] = []
    set_off = partial(ctypes.pythonapi.PyErr_SetInterruptEx, ctypes.c_int(signal.SIGUSR1))
    with meeting(peer) as producer, full_socket() as full:
        lease = producer._node.lone.lease
        assert lease is not None
        queued = lease.queued
        sockets = [SimpleNamespace(send=set_off), *([full] if taken == "nothing" else [])]
        lease.outboxes[:] = [SimpleNamespace(socket=one, put_first=bytes) for one in sockets]
        before = signal.signal(
            signal.SIGUSR1, lambda *_: seen.append(queued.flight is None or queued.flight.ended)
        )
        try:
            producer.send(b"second")
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert seen == [True]


def test_records_come_in_order_whichever_call_of_a_lone_ones_way_ctrl_c_ends():
    with consumed_elsewhere() as (producer, consumer):
        expected = -1
        for number in count(1):
            for content in (b"before", b"again"):  # the second one's thread has a lease to look at
                expected = producer.send(content)
                assert [record.value for record in consumer.poll(100)] == [content]
                time.sleep(0.01)
            interruption = InterruptedCall(number, *MODULES)
            with suppress(KeyboardInterrupt), interruption:
                producer.send(b"interrupted")
            last = producer.send(b"later")
            records = consumer.poll(100)
            while records[-1].sequence < last:
                records += consumer.poll(100)
            assert [record.sequence for record in records] == list(range(expected + 1, last + 1))
            assert [record.value for record in records] == [b"interrupted", b"later"][-len(records) :]
            if not interruption.interrupted:
                break
        assert number > 10
        assert consumer.metrics()["fetches_sent"] == 0


@pytest.mark.parametrize("content", [b"interrupted", bytes(5000)], ids=["by-its-thread", "by-the-hub"])
def test_a_signals_handler_may_send_whichever_call_of_send_it_comes_behind(content: bytes):
    with consumed_elsewhere() as (producer, consumer):
        for number in count(1):
            first = producer.send(b"before")
            sent = {first: b"before"}

            def handle(sent: dict[int, bytes] = sent) -> None:
                sent[producer.send(b"of the handler")] = b"of the handler"

            time.sleep(0.005)
            interruption = InterruptedCall(number, *MODULES, handler=handle)
            with interruption:
                last = producer.send(content)
            sent[last] = content
            expected = [sent[sequence] for sequence in sorted(sent)]
            records = consumer.poll(100)
            while len(records) < len(expected):
                records += consumer.poll(100)
            assert [record.sequence for record in records] == list(range(first, first + len(expected)))
            assert [record.value for record in records] == expected
            if not interruption.interrupted:
                break
        assert number > 5


class TakesParts:
    """A socket that takes a part of what is sent."""

    def __init__(self, whole: socket.socket) -> None:
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def send(self, octets: bytes) -> int:
        return self._whole.send(octets[: 1 + len(octets) // 2])


def test_the_rest_of_a_lone_record_goes_out_whichever_call_ctrl_c_ends(peer):
    with Producer("t", tower=peer.tower, min_stores=0, head_interval=3600) as producer:
        node = producer._node
        prepare(producer, peer)
        outbox = node.lone.lease.outboxes[0]
        outbox.socket = TakesParts(outbox.socket)
        in_part = 0
        for number in count(1):
            until(lambda: node.lone.lease and not node.lone.lease.queued.held)
            before = node.next
            interruption = InterruptedCall(number, *MODULES)
            with suppress(KeyboardInterrupt), interruption:
                producer.send(b"interrupted")
            producer.flush(100)
            if node.next > before:
                in_part += interruption.interrupted
                assert peer.receive(Record).content == b"interrupted"
            if not interruption.interrupted:
                break
        assert number > 10
        assert in_part > 2


def test_no_call_and_no_loop_lies_between_the_look_at_a_lease_and_its_use():
    """Where the interpreter could change to another thread, or raise KeyboardInterrupt."""
    stretch_of(LoneRecords.send, "if (", "except")
