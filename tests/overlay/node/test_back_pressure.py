"""A publisher that is faster than the slowest subscriber waits, over any number of hops."""

from __future__ import annotations

import socket
import threading

import pytest
from overlay.node.crowd import Crowd
from overlay.node.endpoints import WAIT, heard, until

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint, Overloaded, StatusCode
from dafka.overlay.limits import WINDOW_OCTETS
from dafka.overlay.node import limits
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.handshake import (
    Announcement,
    Hello,
    OriginatorAck,
    OriginatorSyn,
    VersionSelect,
    encode_handshake,
)
from dafka.overlay.wire.routed import DATA, Routed, encode_routed

VALUE = "x" * 10_000


def publish_until_overloaded(endpoint, topic="/t", value=VALUE):
    """How many were published before somebody had to wait."""
    for count in range(10_000):
        try:
            endpoint.publish(topic, (count, value), timeout=0.3)
        except Overloaded:
            return count
    raise AssertionError("nobody ever waits")


def chain(make, length, **options):
    ends = [make("127.0.0.1:0", **options)]
    for _ in range(length - 1):
        ends.append(make("127.0.0.1:0", peers=[ends[-1].address], **options))
    assert ends[0].await_peer(ends[-1].id, timeout=WAIT)
    assert ends[-1].await_peer(ends[0].id, timeout=WAIT)
    return ends


@pytest.mark.parametrize("length", [2, 4])
def test_a_publisher_waits_for_a_subscriber_that_does_not_read_and_nothing_is_lost(make, length):
    ends = chain(make, length)
    subscriber = ends[-1].subscribe("/t", capacity=10)
    heard(subscriber, ends[0])
    count = publish_until_overloaded(ends[0])
    assert count < 2000
    got = [subscriber.get(timeout=WAIT).value[0] for _ in range(count)]
    assert got == list(range(count))
    ends[0].publish("/t", "and on", timeout=WAIT)
    assert subscriber.get(timeout=WAIT).value == "and on"


def test_a_publisher_of_another_topic_does_not_wait(make):
    ends = chain(make, 3)
    slow, quick = ends[2].subscribe("/slow", capacity=1), ends[1].subscribe("/quick")
    heard(slow, ends[0], "/slow")
    heard(quick, ends[0], "/quick")
    publish_until_overloaded(ends[0], "/slow")
    for number in range(300):
        ends[0].publish("/quick", number, timeout=WAIT)
        assert quick.get(timeout=WAIT).value == number
    assert slow.available  # to the end
    slow.close()


def test_a_waiting_publisher_goes_on_when_its_slow_subscriber_leaves(make):
    ends = chain(make, 2)
    subscriber = ends[1].subscribe("/t", capacity=1)
    heard(subscriber, ends[0])
    publish_until_overloaded(ends[0])
    thread = threading.Thread(target=ends[0].publish, args=("/t", 1))
    thread.start()
    ends[1].close()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_subscriptions_and_peers_come_and_go_while_data_waits(make):
    ends = chain(make, 2)
    subscriber = ends[1].subscribe("/t", capacity=1)
    heard(subscriber, ends[0])
    publish_until_overloaded(ends[0])
    back = ends[0].subscribe("/back")
    heard(back, ends[1], "/back")
    third = make(peers=[ends[1].address])
    assert ends[0].await_peer(third.id, timeout=WAIT)
    subscriber.close()


@pytest.mark.parametrize("reader", ["plain", "ours"])
def test_a_link_to_version_1_is_held_up_by_tcp_in_both_directions(make, reader):
    ours, plain = make("127.0.0.1:0"), make(versions=(1, 1))
    assert plain.peer(ours.address, timeout=WAIT)
    publisher, other = (ours, plain) if reader == "plain" else (plain, ours)
    subscriber = other.subscribe("/t", capacity=10)
    heard(subscriber, publisher)
    count = publish_until_overloaded(publisher, value=VALUE * 10)
    assert [subscriber.get(timeout=WAIT).value[0] for _ in range(count)] == list(range(count))


def test_more_than_goes_at_once_waits_for_a_slow_peer_of_version_1_and_nothing_is_lost(make):
    ours, plain = make("127.0.0.1:0"), make(versions=(1, 1))
    assert plain.peer(ours.address, timeout=WAIT)
    subscriber = plain.subscribe("/t", capacity=10)
    heard(subscriber, ours)
    count = 0
    with pytest.raises(Overloaded):
        while True:
            ours.publish("/t", (count, VALUE[: 2000 + count % 1000]), timeout=0.3)
            count += 1
    last = threading.Thread(target=ours.publish, args=("/t", ("end", "")), kwargs={"timeout": WAIT})
    last.start()
    got = [subscriber.get(timeout=WAIT).value[0] for _ in range(count + 1)]
    last.join()
    assert got == [*range(count), "end"]


@pytest.mark.parametrize("overflow", ["drop_newest", "drop_oldest"])
def test_a_slow_peer_loses_messages_if_its_publisher_wants_it_so(make, overflow):
    ends = chain(make, 2, overflow=overflow)
    subscriber = ends[1].subscribe("/t", capacity=10)
    heard(subscriber, ends[0])
    for number in range(1000):
        ends[0].publish("/t", (number, VALUE), timeout=WAIT)
    ends[0].publish("/t", ("end", ""))
    got = []
    while not got or got[-1] not in ("end", 999):
        got.append(subscriber.get(timeout=WAIT).value[0])
        if overflow == "drop_newest" and len(got) < 1000 and subscriber.available == 0:
            ends[0].publish("/t", ("end", ""))
    assert len(got) < 1000
    assert got[:100] == list(range(100))


def test_a_slow_peer_is_left_if_its_publisher_wants_it_so(make):
    ends = chain(make, 2, overflow="disconnect")
    subscriber = ends[1].subscribe("/t", capacity=10)
    heard(subscriber, ends[0])
    statuses = ends[0].statuses()
    for number in range(1000):
        ends[0].publish("/t", (number, VALUE), timeout=WAIT)
    news = [statuses.get(timeout=WAIT) for _ in range(2)]
    lost = next(one for one in news if one.code is StatusCode.PEER_LOST)
    assert "wait for a peer" in lost.message


def test_a_peer_that_exceeds_its_credit_is_dropped_by_name_and_nobody_else_notices(make):
    endpoint, friend = make("127.0.0.1:0", id=b"\xff" * 16), make()
    assert friend.peer(endpoint.address, timeout=WAIT)
    slow = endpoint.subscribe("/slow", capacity=1)
    quick = endpoint.subscribe("/quick")
    heard(quick, friend, "/quick")
    statuses = endpoint.statuses()
    me = b"\x01" * 16
    host, port = endpoint.address.split(":")
    with socket.create_connection((host, int(port))) as liar:
        liar.sendall(encode_handshake(Hello(me, 1, 2)))
        reader = FrameReader(2**24)
        while reader_types(reader, liar) != 6:
            pass
        announcement = Announcement((), 1, 1)
        liar.sendall(
            encode_handshake(VersionSelect(me, 2)) + encode_handshake(OriginatorSyn(announcement), 2)
        )
        while reader_types(reader, liar) != 11:
            pass
        liar.sendall(encode_handshake(OriginatorAck()))
        message = encode_routed(Routed(DATA, True, me, b"", b"/slow", bytes(100_000)))
        with pytest.raises(OSError):
            for _ in range(10 * WINDOW_OCTETS // len(message)):
                liar.sendall(message)
            liar.settimeout(WAIT)
            while liar.recv(65536):
                pass
            raise ConnectionResetError
    while True:
        news = statuses.get(timeout=WAIT)
        if news.code is StatusCode.PEER_LOST:
            assert "credit" in news.message
            break
    friend.publish("/quick", "still")
    assert quick.get(timeout=WAIT).value == "still"
    assert slow.available <= 2 * WINDOW_OCTETS // 100_000


def reader_types(reader, sock):
    reader.feed(sock.recv(65536))
    types = [message[0] for message in reader.messages()]
    return types[-1] if types else None


def test_a_large_message_to_many_peers_takes_its_memory_once(monkeypatch):
    monkeypatch.setattr(limits, "ALL_LINKS_OCTETS", 4 * 1024 * 1024)
    with Endpoint("127.0.0.1:0") as endpoint, Crowd(endpoint.address, 10, 2) as crowd:
        until(lambda: crowd.up == 10 and len(endpoint.peers()) == 10)
        with endpoint.statuses() as statuses:
            for _ in range(3):
                endpoint.publish("/t", "x" * 2 * 1024 * 1024)
            until(lambda: not get_hub().run(lambda: endpoint._carrier._links.queued.held))
            assert statuses.poll() == []
        assert len(endpoint.peers()) == 10
