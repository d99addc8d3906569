"""A lane: read as far as there is room, in order; a peer is let go of when all that it has sent is read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import zmq
from contexts import new_context
from timing import until

from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.lane import Lane
from dafka.mesh.transport import AnyLane
from dafka.mesh.zmtp import HEARING
from dafka.mesh.zmtp_lane import ZmtpLane
from dafka.protocol.commands import Command, Head, Record
from dafka.protocol.framing import encode
from dafka.protocol.runs import Inbound, Run

TOPIC, PARTITION = b"hello", b"A" * 32


class Publisher:
    """A peer that publishes, in the test's thread."""

    def __init__(self, context: zmq.Context[Any]) -> None:
        self.socket = context.socket(zmq.XPUB)
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.address = f"tcp://127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"

    def wait_for_subscriber(self) -> None:
        assert self.socket.poll(20_000)
        self.socket.recv()

    def publish(self, first: int, end: int) -> None:
        for sequence in range(first, end):
            record = Record(PARTITION, TOPIC, sequence, b"%d" % sequence)
            self.socket.send_multipart(encode(record))

    def say_head(self, sequence: int) -> None:
        self.socket.send_multipart(encode(Head(PARTITION, TOPIC, sequence)))


class User:
    """Takes what the lane brings while it has room; each record takes some."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.heard: list[int | str] = []  # sequences of records, and "head"
        self.noted = 0

    def deliver(self, item: Run | Command) -> Run | None:
        if not isinstance(item, Run):
            self.heard.append("head")
            return None
        count = min(self.room, len(item.contents))
        self.room -= count
        self.heard += [int(content) for content in item.contents[:count]]
        rest = item.contents[count:]
        return item._replace(first=item.first + count, contents=rest) if rest else None

    def note(self, inbound: Inbound) -> None:
        self.noted += sum(len(run.contents) for run in inbound.runs)


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    one = new_context()
    yield one
    one.destroy(linger=0)


@pytest.fixture
def publisher(context: zmq.Context[Any]) -> Publisher:
    return Publisher(context)


@pytest.fixture
def user() -> User:
    return User(10**6)


@pytest.fixture(params=["libzmq", "zmtp"])
def lane(publisher: Publisher, user: User, request: pytest.FixtureRequest) -> Iterator[AnyLane]:
    hub = get_hub()
    arguments = (hub, [publisher.address], user.note, user.deliver)
    make = partial(ZmtpLane, *arguments, HEARING) if request.param == "zmtp" else partial(Lane, *arguments)
    one: AnyLane = hub.run(make)
    hub.run(one.subscribe, b"Mhello")
    publisher.wait_for_subscriber()
    hub.run(one.subscribe, b"Hhello")
    publisher.wait_for_subscriber()
    yield one
    hub.run(one.close)


def is_behind(lane: AnyLane) -> bool:
    return get_hub().run(lambda: lane.behind)


def test_records_and_heads_come_in_the_order_in_which_they_were_sent(lane, publisher, user):
    publisher.publish(0, 5)
    publisher.say_head(4)
    until(lambda: len(user.heard) == 6)
    assert user.heard == [0, 1, 2, 3, 4, "head"]
    assert user.noted == 5
    assert not is_behind(lane)


def test_records_without_room_wait_and_so_do_messages_behind_them(lane, publisher, user):
    user.room = 3
    publisher.publish(0, 5)
    publisher.say_head(4)
    until(lambda: len(user.heard) == 3 and is_behind(lane))
    user.room = 10
    get_hub().run(lane.resume)
    until(lambda: len(user.heard) == 6)
    assert user.heard == [0, 1, 2, 3, 4, "head"]
    until(lambda: not is_behind(lane))


@pytest.fixture
def ten_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROUND_MESSAGES", 10)


@pytest.mark.parametrize("lane", ["libzmq"], indirect=True)
@pytest.mark.usefixtures("ten_a_round")  # before there is a lane, which may be reading already
def test_no_more_is_read_than_one_round_while_there_is_no_room(lane, publisher, user):
    user.room = 0
    publisher.publish(0, 100)
    until(lambda: is_behind(lane))
    assert user.noted <= 10
    user.room = 10**6
    get_hub().run(lane.resume)
    until(lambda: user.heard == list(range(100)))


def test_messages_a_peer_has_sent_are_read_before_it_is_left(lane, publisher, user, monkeypatch):
    monkeypatch.setattr(limits, "LANE_LEAVE_SECONDS", 0.5)
    user.room = 1
    publisher.publish(0, 50)
    until(lambda: is_behind(lane))
    get_hub().run(lane.disconnect, publisher.address)
    time.sleep(0.8)  # longer than a silent peer is waited for
    user.room = 10**6
    get_hub().run(lane.resume)
    until(lambda: user.heard == list(range(50)))
    assert publisher.socket.poll(20_000)  # it takes its subscription back
    assert publisher.socket.recv()[:1] == b"\x00"


def test_a_peer_that_is_back_is_connected_to_anew_and_once(lane, publisher, user):
    get_hub().run(lane.disconnect, publisher.address)
    get_hub().run(lane.connect, publisher.address)
    wanted = {b"\x01Mhello", b"\x01Hhello"}
    while wanted:
        assert publisher.socket.poll(20_000)
        wanted.discard(publisher.socket.recv())
    publisher.publish(0, 3)
    publisher.say_head(2)
    until(lambda: "head" in user.heard)
    assert user.heard == [0, 1, 2, "head"]


def test_messages_stop_coming_after_their_subscription_ends(lane, publisher, user):
    get_hub().run(lane.unsubscribe, b"Mhello")
    assert publisher.socket.poll(20_000)
    assert publisher.socket.recv() == b"\x00Mhello"
    publisher.publish(0, 3)
    publisher.say_head(2)
    until(lambda: user.heard)
    assert user.heard == ["head"]


def test_a_lane_that_is_closed_brings_nothing(lane, publisher, user):
    user.room = 0
    publisher.publish(0, 3)
    until(lambda: is_behind(lane))
    get_hub().run(lane.close)
    get_hub().run(lane.close)
    user.room = 10
    get_hub().run(lane.resume)
    assert user.heard == []
