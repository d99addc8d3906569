"""A lane on our own sockets: messages of several peers wait side by side, in the kernel's buffers.

Tests for libzmq's lanes as well are in test_lane.py.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import zmq
from contexts import new_context
from mesh.test_lane import PARTITION, Publisher, User, is_behind
from timing import until
from zmtp.vectors import GREETING_31, ready

from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.zmtp import HEARING
from dafka.mesh.zmtp_lane import ZmtpLane
from dafka.protocol.commands import Command, Record
from dafka.protocol.framing import encode
from dafka.protocol.runs import Inbound, Run
from dafka.sockets.peer import Peer
from dafka.zmtp.encoding import encode_all

TOPIC = b"hello"


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    one = new_context()
    yield one
    one.destroy(linger=0)


@pytest.fixture
def user() -> User:
    return User(0)


@pytest.fixture
def peers(context: zmq.Context[Any]) -> list[Publisher]:
    return [Publisher(context) for _ in range(3)]


@pytest.fixture
def lane(peers: list[Publisher], user: User) -> Iterator[ZmtpLane]:
    hub = get_hub()
    addresses = [peer.address for peer in peers]
    one = hub.run(partial(ZmtpLane, hub, addresses, user.note, user.deliver, HEARING))
    hub.run(one.subscribe, b"Mhello")
    for peer in peers:
        peer.wait_for_subscriber()
    yield one
    hub.run(one.close)


def test_each_peer_waits_with_its_own_records_until_there_is_room_for_all(lane, peers, user):
    for place, peer in enumerate(peers):
        peer.publish(100 * place, 100 * place + 50)
    until(lambda: len(lane._holding) == 3)
    for room in (1, 70, 79):
        user.room = room
        get_hub().run(lane.resume)
        until(lambda: user.room == 0)
    assert sorted(user.heard) == [*range(50), *range(100, 150), *range(200, 250)]
    for place in range(3):
        own = [sequence for sequence in user.heard if sequence // 100 == place]
        assert own == sorted(own)
    until(lambda: not is_behind(lane))


def test_one_that_waits_reads_no_further(lane, peers, user):
    record = b"x" * 10_000
    one = peers[0]
    one.socket.setsockopt(zmq.SNDHWM, 100)
    for _ in range(3000):  # messages without room at the sender are dropped there
        one.socket.send_multipart([b"Mhello\0\x01\x20" + b"A" * 32 + b"\x05hello" + bytes(8), record])
    until(lambda: is_behind(lane))
    held = lane._subscriber.metrics()["received_octets"]
    assert held < 4 * limits.READ_OCTETS
    assert user.noted * len(record) < 4 * limits.READ_OCTETS


def test_waiting_messages_are_dropped_with_a_closed_lane(lane, peers, user):
    peers[0].publish(0, 50)
    until(lambda: is_behind(lane))
    get_hub().run(lane.close)
    user.room = 1000
    get_hub().run(lane.resume)
    until(lambda: not lane._subscriber.peers)
    assert user.heard == []


def test_a_peer_that_has_gone_holds_up_nothing(lane, peers, user, context):
    peers[0].publish(0, 50)
    until(lambda: is_behind(lane))
    peers[0].socket.close(linger=100_000)  # when it has sent all of it
    user.room = 1000
    get_hub().run(lane.resume)
    until(lambda: user.heard == list(range(50)))
    peers[1].publish(100, 110)
    until(lambda: user.heard[50:] == list(range(100, 110)))
    until(lambda: not is_behind(lane))


def test_a_record_that_comes_alone_waits_for_room_like_any_other(lane, peers, user):
    user.room = 3
    for number in range(3):  # the first one makes the partition known
        peers[0].publish(number, number + 1)
        until(lambda number=number: user.heard == list(range(number + 1)))
    peers[0].publish(3, 4)
    until(lambda: lane._holding)
    assert is_behind(lane)
    peers[0].publish(4, 5)
    user.room = 100
    get_hub().run(lane.resume)
    until(lambda: user.heard == list(range(5)))
    assert not lane._holding
    assert user.noted == 5


class Contents:
    """Has room for everything."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def deliver(self, item: Run | Command) -> None:
        assert isinstance(item, Run)
        self.heard += item.contents

    def note(self, inbound: Inbound) -> None:
        pass


def test_a_connection_is_offered_behind_each_record_that_comes_alone(peers, user):
    hub = get_hub()
    offered: list[tuple[Peer, bytes]] = []

    def lend(peer: Peer, partition: bytes) -> None:
        offered.append((peer, partition))

    addresses = [peer.address for peer in peers]
    lane = hub.run(partial(ZmtpLane, hub, addresses, user.note, user.deliver, HEARING, lend=lend))
    try:
        hub.run(lane.subscribe, b"Mhello")
        user.room = 100
        for peer in peers:
            peer.wait_for_subscriber()
        peers[0].publish(0, 1)  # makes the partition known
        until(lambda: user.heard == [0])
        for number in (1, 2):
            peers[0].publish(number, number + 1)
            until(lambda number=number: len(offered) == number)
        hub.run(lane.subscribe, b"Hhello")
        peers[0].wait_for_subscriber()
        peers[0].say_head(2)
        until(lambda: user.heard[-1] == "head")
        assert len(offered) == 2
        assert offered[0] == offered[1]
        user.room = 0
        peers[0].publish(3, 4)
        until(lambda: lane._holding)
        hub.run(offered[0][0].close)
        user.room = 100
        hub.run(lane.resume)
        until(lambda: not lane._holding)
        assert len(offered) == 2
        assert (offered[0][0].dialled, offered[0][1]) == (addresses[0], PARTITION)
    finally:
        hub.run(lane.close)


def test_octets_that_look_like_a_record_in_the_midst_of_a_message_are_a_part_of_it():
    def octets_of(sequence: int, content: bytes) -> bytes:
        return b"".join(encode_all([encode(Record(PARTITION, TOPIC, sequence, content))]))

    hub, user = get_hub(), Contents()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        one = hub.run(partial(ZmtpLane, hub, [address], user.note, user.deliver, HEARING))
        publisher, _ = server.accept()
        with publisher:
            publisher.sendall(GREETING_31 + ready(b"PUB"))
            until(lambda: one._subscriber.peers)
            for number in range(3):  # of a partition that is known, alone and then as a content
                publisher.sendall(octets_of(number, b"%d" % number))
                until(lambda number=number: len(user.heard) == number + 1)
            inner = octets_of(3, b"not a record")
            outer = octets_of(3, inner)
            publisher.sendall(outer[: -len(inner)])
            until(lambda: one._subscriber.peers[0]._connection.in_progress)
            publisher.sendall(inner)
            until(lambda: len(user.heard) == 4)
            publisher.sendall(octets_of(4, b"4"))
            until(lambda: len(user.heard) == 5)
            hub.run(one.close)
    assert user.heard == [b"0", b"1", b"2", inner, b"4"]
