"""Threads beside the hub that send to a publisher's peers, and the hub that goes on with what they leave."""

from __future__ import annotations

import gc
import socket
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
import zmq
from sockets.serving import Recorder, client, in_hub, publisher, silent_subscriber, subscriber
from sockets.test_curve import CLIENT, SERVER, of_server
from sockets.test_curve import publisher as curve_publisher
from timing import until
from zmq.utils import z85

from dafka.hub.hub import get_hub
from dafka.sockets import limits
from dafka.sockets.leases import Flight, Lease, is_traced
from dafka.sockets.publisher import Publisher
from dafka.zmtp.encoding import encode

MAKES = SimpleNamespace(send=memoryview)
"""As a socket that makes objects of which the garbage collector knows."""


def lease_of(served: Publisher, first: bytes = b"a") -> Lease | None:
    return in_hub(served.lease, first)


def given(served: Publisher, first: bytes = b"a") -> Lease:
    lease = lease_of(served, first)
    assert lease is not None
    return lease


def send(lease: Lease, octets: bytes) -> Flight:
    """As a thread with the lease does that has found it valid."""
    flight = Flight(lease.outboxes, octets)
    lease.queued.flight = flight
    try:
        flight.sent += flight.sending
        if flight.sent == flight.whole:
            lease.queued.flight = None
    except OSError:
        pass
    finally:
        flight.ended = True
    return flight


def one(*frames: bytes) -> bytes:
    return b"".join(encode(frames))


def subscribed(served: Publisher, count: int) -> None:
    until(lambda: served.metrics()["subscriptions"] == count)


def test_a_lease_sends_while_the_hub_is_held_up():
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as first,
        client(zmq.SUB, served.endpoint) as second,
    ):
        first.subscribe(b"a")
        second.subscribe(b"")
        subscribed(served, 2)
        lease = given(served)
        held, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            go_on.wait()

        get_hub().post(hold)
        assert held.wait(100)
        try:
            send(lease, one(b"a", b"hello"))
            assert first.recv_multipart() == second.recv_multipart() == [b"a", b"hello"]
        finally:
            go_on.set()
        assert lease.queued.flight is None


def test_a_lease_is_for_those_that_get_the_message():
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as one_,
        client(zmq.SUB, served.endpoint) as other,
    ):
        one_.subscribe(b"a")
        other.subscribe(b"b")
        subscribed(served, 2)
        assert len(given(served, b"ab").outboxes) == 1
        assert lease_of(served, b"c") is None


def test_a_lease_is_not_given_for_more_peers_than_a_thread_is_to_send_to(monkeypatch):
    monkeypatch.setattr(limits, "LEASED_PEERS", 1)
    with publisher() as served, client(zmq.SUB, served.endpoint) as a, client(zmq.SUB, served.endpoint) as b:
        a.subscribe(b"a")
        subscribed(served, 1)
        assert lease_of(served) is not None
        b.subscribe(b"a")
        subscribed(served, 2)
        assert lease_of(served) is None


def test_a_lease_is_not_given_of_connections_that_are_sealed():
    with (
        curve_publisher(**of_server()) as served,
        client(
            zmq.SUB,
            served.endpoint,
            curve_publickey=z85.encode(CLIENT.public),
            curve_secretkey=z85.encode(CLIENT.secret),
            curve_serverkey=z85.encode(SERVER.public),
        ) as sub,
    ):
        sub.subscribe(b"a")
        subscribed(served, 1)
        assert lease_of(served) is None


def test_a_lease_ends_with_each_subscription_and_connection_that_comes_or_goes():
    with publisher() as served, client(zmq.SUB, served.endpoint) as sub:
        sub.subscribe(b"a")
        subscribed(served, 1)

        def is_over(lease: Lease) -> bool:
            return lease.version != lease.queued.version

        lease = given(served)
        assert not is_over(lease)
        sub.subscribe(b"b")
        until(lambda: is_over(lease))

        lease = given(served)
        sub.unsubscribe(b"b")
        until(lambda: is_over(lease))

        with client(zmq.SUB, served.endpoint) as other:
            other.subscribe(b"a")
            subscribed(served, 2)
            lease = given(served)
            assert len(lease.outboxes) == 2
        until(lambda: is_over(lease))

        subscribed(served, 1)
        lease = given(served)
        in_hub(served.revoke)
        assert is_over(lease)


def test_a_lease_ends_before_the_descriptor_of_a_connection_does():
    with publisher() as served, client(zmq.SUB, served.endpoint) as sub:
        sub.subscribe(b"a")
        subscribed(served, 1)
        lease = given(served)

        def close() -> bool:
            for peer in served._accepting._peers:
                peer.close()
            return lease.version == lease.queued.version

        assert not in_hub(close)


def test_no_garbage_is_collected_in_a_flight():
    """A finalizer may wait for something that the hub is to send. Other threads may collect meanwhile."""
    collected: list[int] = []
    here = threading.get_ident()

    def note(phase: str, info: dict[str, int]) -> None:
        if flight.sent and not flight.ended and threading.get_ident() == here:
            collected.append(len(flight.sent))

    one, other = socket.socketpair()
    threshold = gc.get_threshold()
    with one, other:
        for room in range(20):  # objects that are made before the next collection
            flight = Flight([SimpleNamespace(socket=box, put_first=bytes) for box in (MAKES, one, one)], b"x")
            gc.collect()
            gc.callbacks.append(note)
            try:
                gc.set_threshold(gc.get_count()[0] + room)
                flight.sent += flight.sending
                flight.ended = True
            finally:
                gc.callbacks.remove(note)
                gc.set_threshold(*threshold)
            assert flight.sent == [b"x", 1, 1]
    assert not collected


def test_a_thread_is_traced_while_something_is_called_at_each_of_its_lines():
    before = sys.gettrace()
    seen: list[bool] = []
    try:
        sys.settrace(None)
        assert not is_traced()
        sys.settrace(lambda *_: None)
        other = threading.Thread(target=lambda: seen.append(is_traced()))
        other.start()
        other.join()
        assert is_traced()
    finally:
        sys.settrace(before)
    assert seen == [False]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_every_thread_is_traced_while_a_tool_monitors_the_interpreter():
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "test")
    try:
        assert is_traced()
    finally:
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)
    assert not is_traced()


def test_the_hub_sends_nothing_while_a_flight_is_under_way():
    with publisher() as served, client(zmq.SUB, served.endpoint, rcvtimeo=200) as sub:
        sub.subscribe(b"a")
        subscribed(served, 1)
        lease = given(served)
        flight = lease.queued.flight = Flight(lease.outboxes, one(b"a", b"first"))
        in_hub(served.send, [b"a", b"second"])
        with pytest.raises(zmq.Again):
            sub.recv_multipart()
        sub.rcvtimeo = 100_000
        flight.sent += flight.sending
        lease.queued.flight = None
        flight.ended = True
        assert sub.recv_multipart() == [b"a", b"first"]
        assert sub.recv_multipart() == [b"a", b"second"]


def test_the_hub_sends_first_what_a_thread_was_kept_from_sending():
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as first,
        client(zmq.SUB, served.endpoint) as second,
    ):
        first.subscribe(b"a")
        subscribed(served, 1)
        second.subscribe(b"")
        subscribed(served, 2)
        lease = given(served)
        flight = Flight(lease.outboxes, one(b"a", b"left"))
        flight.sent.append(next(flight.sending))  # to one of the two
        flight.ended = True
        lease.queued.flight = flight
        in_hub(served.send, [b"b", b"behind"])
        in_hub(served.send, [b"a", b"behind"])
        assert [first.recv_multipart() for _ in range(2)] == [[b"a", b"left"], [b"a", b"behind"]]
        assert [second.recv_multipart() for _ in range(3)] == [
            [b"a", b"left"],
            [b"b", b"behind"],
            [b"a", b"behind"],
        ]


def test_a_message_that_a_connection_took_in_part_goes_on_in_front_of_all_others():
    with publisher() as served, silent_subscriber(served, b"a") as sub:
        lease = given(served)
        lease.outboxes[0].socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        messages = [one(b"a", b"%d" % number, bytes(3000)) for number in range(10_000)]
        sent: list[bytes] = []
        for message in messages:
            flight = send(lease, message)
            sent.append(message)
            if lease.queued.flight is flight:
                break
        assert lease.queued.flight is flight
        assert sum(flight.sent) < len(message)
        in_hub(served.send, [b"a", b"behind"])
        sent.append(one(b"a", b"behind"))
        got = b""
        while len(got) < sum(map(len, sent)):
            got += sub.recv(1 << 20)
        assert got == b"".join(sent)
        until(lambda: not lease.queued.held)


@pytest.mark.parametrize("taken", [[], [3], [3, 7], [12, 12]])
def test_octets_that_a_thread_and_the_hub_have_sent_are_counted_once(taken: list[int]):
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as first,
        client(zmq.SUB, served.endpoint) as second,
    ):
        first.subscribe(b"a")
        second.subscribe(b"a")
        subscribed(served, 2)
        before = served.metrics()
        lease, message = given(served), one(b"a", b"counted")
        flight = lease.queued.flight = Flight(lease.outboxes, message)
        for outbox, size in zip(lease.outboxes, taken, strict=False):
            flight.sent.append(outbox.socket.send(message[:size]))
        flight.ended = True
        in_hub(served.count_flight, 2, len(message))
        assert first.recv_multipart() == second.recv_multipart() == [b"a", b"counted"]
        until(lambda: not lease.queued.held)
        after = served.metrics()
        assert after["octets_out"] - before["octets_out"] == 2 * len(message)
        assert after["messages_out"] - before["messages_out"] == 2


def test_octets_that_a_thread_was_kept_from_sending_go_out_once_its_message_is_counted():
    with publisher() as served, client(zmq.SUB, served.endpoint, rcvtimeo=100) as sub:
        sub.subscribe(b"a")
        subscribed(served, 1)
        lease, message = given(served), one(b"a", b"left")
        flight = lease.queued.flight = Flight(lease.outboxes, message)
        in_hub(served.count_flight, 1, len(message))
        with pytest.raises(zmq.Again):
            sub.recv_multipart()
        flight.ended = True
        sub.rcvtimeo = 100_000
        assert sub.recv_multipart() == [b"a", b"left"]


def test_a_publisher_that_closes_sends_first_what_a_thread_was_kept_from_sending():
    with publisher() as served, client(zmq.SUB, served.endpoint) as sub:
        sub.subscribe(b"a")
        subscribed(served, 1)
        lease = given(served)
        flight = lease.queued.flight = Flight(lease.outboxes, one(b"a", b"left"))
        flight.ended = True
        in_hub(served.close)
        assert sub.recv_multipart() == [b"a", b"left"]


def test_a_descriptor_is_not_another_connections_while_a_thread_sends_to_it():
    handler = Recorder()
    with publisher() as served, subscriber(handler, served.endpoint) as sub:
        in_hub(sub.subscribe, b"a")
        subscribed(served, 1)
        lease = given(served)
        descriptor = lease.outboxes[0].socket.fileno()
        flight = lease.queued.flight = Flight(lease.outboxes, one(b"a", b"late"))
        in_hub(sub.close)
        until(lambda: not served.metrics()["connections"])
        time.sleep(0.05)
        assert lease.outboxes[0].socket.fileno() == descriptor
        assert lease.version != lease.queued.version
        with suppress(OSError):
            flight.sent += flight.sending
        flight.ended = True
        until(lambda: lease.outboxes[0].socket.fileno() == -1)
        assert lease.queued.flight is None


def test_messages_of_a_thread_to_a_connection_that_has_ended_are_dropped():
    with publisher() as served:
        with client(zmq.SUB, served.endpoint) as sub:
            sub.subscribe(b"a")
            subscribed(served, 1)
            lease = given(served)
        until(lambda: not served.metrics()["connections"])
        until(lambda: lease.outboxes[0].socket.fileno() == -1)
        send(lease, one(b"a", b"late"))
        assert in_hub(lease.queued.is_free)
        assert not lease.queued.held
        assert lease.queued.flight is None
