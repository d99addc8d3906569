"""Lone records: sent by the calling thread, and the hub hears of them afterwards."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from mesh.peer import Peer
from sockets.serving import silent_subscriber
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import ForkedError, HubStoppedError, get_hub
from dafka.mesh import limits, lone, options
from dafka.mesh.producer_node import ProducerClosedError
from dafka.mesh.run_octets import opening
from dafka.protocol.commands import Ack, DirectRecord, Fetch, Record
from dafka.protocol.framing import Framing
from dafka.sockets.leases import Flight

pytestmark = pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="a socket of libzmq is one thread's")

ELSEWHERE = {"beacon_interval": 0.5}  # an endpoint of its own in the same process


@contextmanager
def hub_held_up() -> Iterator[None]:
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(100)

    get_hub().post(hold)
    assert held.wait(100)
    try:
        yield
    finally:
        go_on.set()


@pytest.fixture
def peer() -> Iterator[Peer]:
    """It has met the producer of ``t``, and heard a first record of it."""
    with Tower() as tower, Peer(tower.addresses) as one:
        one.tower = tower
        yield one


def prepare(producer: Producer, peer: Peer) -> int:
    """Have the next record be one that its thread may send. How many there were before."""
    peer.meet(b"F" + producer.address.encode())
    peer.be_heard(producer._node.endpoint)
    sent = 0

    def is_ready() -> bool:
        lease = producer._node.lone.lease
        return lease is not None and lease.version == lease.queued.version and not lease.queued.held

    while not is_ready():
        assert producer.send(b"before") == sent
        assert peer.receive(Record).content == b"before"
        sent += 1
        time.sleep(0.05)
    return sent


@contextmanager
def meeting(peer: Peer) -> Iterator[Producer]:
    """A producer whose next record its thread may send."""
    with Producer("t", tower=peer.tower, min_stores=0) as producer:
        prepare(producer, peer)
        yield producer


def test_a_lone_record_is_on_its_way_before_the_hub_has_heard_of_it(peer):
    with meeting(peer) as producer:
        with hub_held_up():
            sequence = producer.send(b"hello")
            record = peer.receive(Record)
            assert (record.sequence, record.content) == (sequence, b"hello")
        metrics = producer.metrics()
        assert metrics["records_out"] == metrics["retained_records"] == sequence + 1
        assert metrics["endpoint_records_out"] == sequence + 1
        assert metrics["bytes_out"] == metrics["endpoint_bytes_out"] == 6 * sequence + 5
        assert metrics["pending_bytes"] == 0


def test_a_second_record_waits_for_the_hub_to_hear_of_the_first(peer):
    with meeting(peer) as producer:
        with hub_held_up():
            for number in range(3):
                producer.send(b"%d" % number)
            assert peer.receive(Record).content == b"0"
            time.sleep(0.05)
            peer.pump(0.05)
            assert not [command for command in peer.heard if isinstance(command, Record)]
        assert [peer.receive(Record).content for _ in range(2)] == [b"1", b"2"]


def test_a_thread_that_is_traced_leaves_its_records_to_the_hub(peer):
    """Something may be called between any two lines of it."""
    with meeting(peer) as producer:
        before = sys.gettrace()
        sys.settrace(lambda *_: None)
        try:
            with hub_held_up():
                producer.send(b"hello")
                assert not producer._node.lone.waiting
        finally:
            sys.settrace(before)
        assert peer.receive(Record).content == b"hello"


def test_a_lone_record_is_answered_for_like_any_other(peer):
    with meeting(peer) as producer:
        address = producer.address.encode()
        with hub_held_up():
            sequence = producer.send(b"hello")
            peer.receive(Record)
            peer.send(Fetch(address, peer.address, b"t", sequence, 1))
        answer = peer.receive(DirectRecord)
        assert (answer.sequence, answer.content) == (sequence, b"hello")


def test_an_acknowledgement_may_come_before_the_hub_has_heard_of_the_record(peer):
    with Producer("t", tower=peer.tower, address="A" * 32, end_unknown="begin", end_timeout=0.1) as producer:
        node, address = producer._node, producer.address.encode()
        prepare(producer, peer)
        node.signalled = True  # the thread is kept from telling the hub
        sequence = producer.send(b"hello")
        peer.receive(Record)
        assert node.lone.waiting
        peer.send(Ack(address, b"t", sequence, b""))
        until(lambda: not node.lone.waiting)
        until(lambda: not producer.unacknowledged)
        assert node._role.disputed == 0
        node.signalled = False
        assert producer.send(b"next") == sequence + 1
        assert peer.receive(Record).content == b"next"
        peer.send(Ack(address, b"t", sequence + 1, b""))
        producer.flush(100)


@pytest.mark.parametrize(
    ("size", "by_thread"), [(0, True), (1, True), (300, True), (4096, True), (4097, False), (100_000, False)]
)
def test_records_of_every_size_come_as_they_were_sent(peer, size: int, by_thread: bool):
    with meeting(peer) as producer:
        content = bytes(number & 255 for number in range(size))
        with hub_held_up():
            producer.send(content)
            assert producer._node.lone.waiting == by_thread
        assert peer.receive(Record).content == content


def test_a_record_for_a_node_of_this_process_takes_its_way_through_the_hub(peer):
    with meeting(peer) as producer, Consumer(["t"], tower=peer.tower) as consumer:
        for number in range(20):
            producer.send(b"%d" % number)
            assert not producer._node.lone.waiting
            assert next(consumer).value == b"%d" % number
        assert consumer.metrics()["fetches_sent"] == 0


def test_a_thread_sends_nothing_while_another_one_does(peer):
    with meeting(peer) as producer:
        queued = producer._node.lone.lease.queued
        flight = queued.flight = Flight([], b"")
        assert producer._node.lone.send(b"second") is None
        flight.ended = True
        assert get_hub().run(queued.is_free)
        assert producer._node.lone.send(b"second") is not None
        assert peer.receive(Record).content == b"second"


def test_a_thread_sends_nothing_once_somebody_else_may_have_to_get_it(peer):
    with meeting(peer) as producer:
        get_hub().run(producer._node.endpoint._transport.revoke)
        assert producer._node.lone.send(b"second") is None


def test_a_thread_sends_nothing_for_a_producer_that_has_failed(peer):
    with suppress(ProducerClosedError), meeting(peer) as producer:
        get_hub().run(producer._node.fail, ProducerClosedError("as a test wants it"))
        with pytest.raises(ProducerClosedError, match="as a test wants it"):
            producer.send(b"second")
        assert not producer._node.lone.waiting


@pytest.mark.parametrize("end", ["lease", "stopped"])
def test_a_thread_sends_nothing_if_that_has_ended_meanwhile(peer, monkeypatch, end: str):
    with meeting(peer) as producer:
        lone_records = producer._node.lone
        write = lone.header

        def slowly(size: int, more: bool) -> bytes:
            monkeypatch.setattr(lone, "header", write)
            setattr(lone_records, end, None if end == "lease" else True)
            return write(size, more)

        monkeypatch.setattr(lone, "header", slowly)
        assert lone_records.send(b"second") is None
        lone_records.stopped = False


def test_the_rest_of_a_lone_record_that_a_connection_did_not_take_goes_out_by_itself():
    with Tower() as tower, Producer("t", tower=tower, min_stores=0, head_interval=3600) as producer:
        node = producer._node
        publisher = node.endpoint._transport._publisher
        with silent_subscriber(publisher, b"M") as slow:
            sent = [producer.send(bytes(1000))]
            until(lambda: node.lone.lease)
            lease = node.lone.lease
            lease.outboxes[0].socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            while not lease.queued.held:
                sent.append(producer.send(bytes(1000)))
                until(lambda: not node.lone.waiting and (lease.queued.held or not lease.queued.flight))
            begin = opening(node._role.address, b"t")
            size = len(begin) + 8 + 9 + 1000  # with the sequence, and a long frame's header
            got = b""
            while len(got) < size * len(sent):
                got += slow.recv(1 << 20)
            records = [got[at : at + size] for at in range(0, len(got), size)]
            assert all(record.startswith(begin) for record in records)
            numbers = [int.from_bytes(record[len(begin) : len(begin) + 8], "big") for record in records]
            assert numbers == sent
            until(lambda: not lease.queued.held)


def test_a_thread_may_send_after_a_flush_as_before_it(peer):
    with meeting(peer) as producer:
        for _ in range(3):
            producer.flush(100)
            with hub_held_up():
                producer.send(b"alone")
                assert producer._node.lone.waiting
            assert peer.receive(Record).content == b"alone"


def test_a_record_takes_its_way_through_the_hub_if_another_one_has_come_between(peer, monkeypatch):
    """Another thread's, which may go on wherever a call ends."""
    with meeting(peer) as producer:
        write = lone.header

        def slowly(size: int, more: bool) -> bytes:
            monkeypatch.setattr(lone, "header", write)
            producer.send(b"between")
            until(lambda: not producer._node.lone.waiting)
            return write(size, more)

        monkeypatch.setattr(lone, "header", slowly)
        last = producer.send(b"hello")
        records = [peer.receive(Record) for _ in range(2)]
        assert [record.content for record in records] == [b"between", b"hello"]
        assert [record.sequence for record in records] == [last - 1, last]


@pytest.mark.parametrize(
    ("mesh", "own"),
    [({"framing": Framing.RFC46}, {}), ({"transport": "libzmq"}, {}), ({}, {"batch": True})],
    ids=["rfc46", "libzmq", "batches"],
)
def test_other_framings_transports_and_batches_are_the_hubs(mesh: dict[str, object], own: dict[str, object]):
    with (
        Tower() as tower,
        Producer("t", tower=tower, min_stores=0, **mesh, **own) as producer,
        Consumer(["t"], tower=tower, **mesh, **ELSEWHERE) as consumer,
    ):
        until(lambda: producer._node.endpoint._heard.hears(b"Mt"))
        for number in range(10):
            producer.send(b"%d" % number)
            assert next(consumer).value == b"%d" % number
            assert producer._node.lone.lease is None


def test_a_closed_producer_sends_nothing(peer):
    with meeting(peer) as producer:
        lone_records, lease = producer._node.lone, producer._node.lone.lease
        assert lease is not None
    lone_records.lease = lease
    assert lone_records.send(b"late") is None


def test_nothing_is_sent_once_the_hub_has_been_stopped(peer, monkeypatch):
    with meeting(peer) as producer:
        lone_records = producer._node.lone
        with monkeypatch.context() as patched:
            patched.setattr(get_hub(), "stopped", True)
            with pytest.raises(HubStoppedError):
                producer.send(b"late")
            assert not lone_records.waiting


def test_a_forked_process_sends_nothing_to_the_peers_of_its_parent(peer):
    with meeting(peer) as producer:
        assert producer._node.lone.lease is not None

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            pid = os.fork()
        if not pid:
            try:
                producer.send(b"of the child")
            except ForkedError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        producer.send(b"of the parent")
        assert peer.receive(Record).content == b"of the parent"


def test_a_thread_does_not_send_beyond_what_is_retained(peer, monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_RECORDS", 3)
    with Producer("t", tower=peer.tower, min_stores=1) as producer:
        sent = prepare(producer, peer)
        assert sent < 3
        for number in range(sent, 3):
            producer.send(b"%d" % number)
            peer.receive(Record)
            time.sleep(0.05)
        assert producer._node.lone.lease is None
        producer.send(b"waits")
        time.sleep(0.1)
        peer.pump(0.1)
        assert not [command for command in peer.heard if isinstance(command, Record)]
        peer.send(Ack(producer.address.encode(), b"t", 2, b""))
        assert peer.receive(Record).content == b"waits"
        peer.send(Ack(producer.address.encode(), b"t", 3, b""))


@pytest.mark.parametrize("seed", range(4))
def test_records_of_several_threads_keep_their_order_and_nobody_has_to_fetch(
    tmp_path: Path, monkeypatch, seed: int
):
    rng = random.Random(seed)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(rng.choice([1e-6, 1e-5, interval]))
    try:
        with (
            Tower() as tower,
            Store(tmp_path / "db", tower=tower, **ELSEWHERE) as store,
            Producer("t", tower=tower) as producer,
            Consumer(["t"], tower=tower, beacon_interval=0.6, offset_reset="earliest") as consumer,
        ):
            subscriptions = producer._node.endpoint._transport._publisher._subscriptions
            until(lambda: len(subscriptions.matching(b"Mt")) == 2)
            sent: dict[int, bytes] = {}
            alone = 0
            send_alone = producer._node.lone.send

            def counted(content: bytes) -> int | None:
                nonlocal alone
                sequence = send_alone(content)
                alone += sequence is not None
                return sequence

            monkeypatch.setattr(producer._node.lone, "send", counted)

            def send(name: int, rng: random.Random) -> None:
                for number in range(300):
                    content = b"%d %d " % (name, number) + bytes(rng.choice([0, 0, 0, 500, 5000]))
                    sent[producer.send(content)] = content
                    if rng.random() < 0.7:
                        time.sleep(rng.choice([0, 0, 1e-4, 1e-3]))

            threads = [
                threading.Thread(target=send, args=(name, random.Random(rng.random()))) for name in range(3)
            ]
            for thread in threads:
                thread.start()
            got = [next(consumer) for _ in range(900)]
            for thread in threads:
                thread.join()
            assert [record.sequence for record in got] == list(range(900))
            assert [record.value for record in got] == [sent[number] for number in range(900)]
            producer.flush(100)
            assert consumer.metrics()["fetches_sent"] == store.metrics()["fetches_sent"] == 0
            assert consumer.metrics()["endpoint_records_in"] == 900
            assert producer.metrics()["endpoint_dropped"] == 0
            assert alone
    finally:
        sys.setswitchinterval(interval)
