"""The raw sockets: read until empty, bounded in messages and octets, and heard of when there is news."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import forking
import gevent.event
import pytest
import zmq
from mesh.sandbox import CALLS

from dafka.hub.hub import get_hub
from dafka.mesh.sockets import Socket


class Pair:
    """A publisher and a subscriber to everything it says; used on the hub's thread."""

    def __init__(self) -> None:
        hub = get_hub()
        self.ready = gevent.event.Event()
        self.news = gevent.event.Event()
        self.publisher = Socket(hub.context, zmq.XPUB, self.news.set, 10_000)
        self.subscriber = Socket(hub.context, zmq.SUB, self.ready.set, 10_000)
        port = self.publisher.bind_free_port("127.0.0.1")
        self.subscriber.set(zmq.SUBSCRIBE, b"")
        self.subscriber.connect(f"tcp://127.0.0.1:{port}")
        while not self.publisher.receive(1):
            self.news.wait(0.1)

    def close(self) -> None:
        self.publisher.close()
        self.subscriber.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    one = get_hub().run(Pair)
    yield one
    get_hub().run(one.close)


def in_hub(call: Callable[[], object]) -> None:
    get_hub().run(call)


def read(pair: Pair, count: int) -> list[list[bytes]]:
    """So many messages, however many come at a time."""
    messages: list[list[bytes]] = []
    deadline = time.monotonic() + 100
    while len(messages) < count:
        assert time.monotonic() < deadline
        if found := pair.subscriber.receive(count - len(messages)):
            messages += found
        else:
            pair.ready.wait(0.1)
            pair.ready.clear()
    return messages


def test_messages_keep_their_frames_and_their_order(pair):
    said = [[b"one"], [b"two", b"frames"], [b"and", b"", b"three"], [b""]]

    def talk() -> None:
        pair.publisher.send_messages(said)
        assert read(pair, 4) == said
        assert pair.subscriber.receive(10) == []
        assert not pair.subscriber.readable()

    in_hub(talk)


def test_no_more_messages_are_read_at_once_than_asked_for(pair):
    def talk() -> None:
        pair.publisher.send_messages([[b"%d" % number, b"x"] for number in range(10)])
        first = read(pair, 1)
        while len(first) < 4:
            first += pair.subscriber.receive(4 - len(first))
        assert [frames[0] for frames in first] == [b"0", b"1", b"2", b"3"]
        assert [frames[0] for frames in read(pair, 6)] == [b"4", b"5", b"6", b"7", b"8", b"9"]

    in_hub(talk)


def test_reading_ends_with_the_message_that_makes_it_so_many_octets(pair):
    def talk() -> None:
        pair.publisher.send_messages([[b"%d" % number, b"x" * 100] for number in range(10)])
        (first,) = read(pair, 1)
        assert first[0] == b"0"
        deadline = time.monotonic() + 100
        taken: list[list[bytes]] = []
        while len(taken) < 9:
            assert time.monotonic() < deadline
            some = pair.subscriber.receive(100, 250)
            assert len(some) <= 3
            taken += some

    in_hub(talk)


def test_a_socket_that_was_read_until_it_was_empty_is_told_of_the_next_message(pair):
    def talk() -> None:
        for number in range(20):
            pair.ready.clear()
            assert pair.subscriber.receive(1) == []
            pair.publisher.send_messages([[b"%d" % number]])
            assert pair.ready.wait(20)
            assert read(pair, 1) == [[b"%d" % number]]

    in_hub(talk)


def test_frames_tell_where_they_came_from(pair):
    def talk() -> None:
        pair.publisher.send_messages([[b"hello"]])
        deadline = time.monotonic() + 100
        while (frames := pair.subscriber.receive_frames()) is None:
            assert time.monotonic() < deadline
            pair.ready.wait(0.1)
        assert [frame.bytes for frame in frames] == [b"hello"]
        assert frames[0].get("Peer-Address") == "127.0.0.1"

    in_hub(talk)


LEAVING = """
import time

import zmq

from dafka.hub.hub import get_hub
from dafka.mesh.sockets import Socket


def leave():
    publisher = get_hub().context.socket(zmq.XPUB)
    address = f"tcp://127.0.0.1:{publisher.bind_to_random_port('tcp://127.0.0.1')}"
    told = []
    subscriber = Socket(get_hub().context, zmq.SUB, lambda: told.append(True), 10)
    subscriber.set(zmq.SUBSCRIBE, b"")
    subscriber.connect(address)
    publisher.recv()
    for number in range(3):
        publisher.send_multipart([b"%d" % number, b"of", b"three"])
    while not subscriber.readable():
        time.sleep(0.01)
    told.clear()
    for _ in range(3):
        subscriber.disconnect(address)
        subscriber.connect(address)
    was_told, readable = bool(told), subscriber.readable()
    print(was_told, readable, subscriber.receive(10))
    assert subscriber.receive(10) == [] and not subscriber.readable()
    subscriber.close()  # the loop would look at the descriptor of one that is collected
    publisher.close(linger=0)


get_hub().run(leave)
print("lives")
"""


def test_the_message_that_a_socket_was_told_of_is_kept_when_its_connection_is_given_up():
    """libzmq has its first frame by then, and would abort the process that asks for the others."""
    left = forking.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=100)
    assert left.stdout.splitlines() == ["True True [[b'0', b'of', b'three']]", "lives"], left.stderr


def test_without_listeners_nothing_waits(pair):
    def talk() -> None:
        pair.subscriber.close()
        pair.publisher.send_messages([[b"x" * 1000] for _ in range(20_000)])

    in_hub(talk)


def test_closing_twice_is_allowed(pair):
    in_hub(pair.publisher.close)
    in_hub(pair.publisher.close)
    assert pair.publisher.closed


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in CALLS, reason="filters of system calls are Linux's"
)
def test_a_port_is_bound_where_the_interfaces_of_the_machine_may_not_be_looked_at():
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tests}:{tests.parent}"}
    done = forking.run(
        [sys.executable, "-m", "mesh.sandbox"], env=environment, capture_output=True, text=True, timeout=200
    )
    if done.stdout.startswith("no filters"):
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("no interfaces\n") and done.stdout.count("tcp://127.0.0.1:") == 2


def test_a_port_that_is_taken_is_refused_as_by_libzmq():
    hub = get_hub()

    def bind() -> int | None:
        one, other = [Socket(hub.context, zmq.XPUB, lambda: None, 10) for _ in range(2)]
        try:
            address = one.bind("tcp://127.0.0.1:*")
            other.bind(address)
        except zmq.ZMQError as error:
            assert other.bind("tcp://127.0.0.1:*") != address  # the socket is as it was
            return error.errno
        finally:
            one.close()
            other.close()
        return None

    assert hub.run(bind) == zmq.EADDRINUSE


@pytest.mark.parametrize("address", ["127.0.0.1:65536", f"127.0.0.1:{2**64}", "999.0.0.1:*", "127.0.0.1:٣"])
def test_an_address_that_there_cannot_be_is_refused(address):
    hub = get_hub()

    def bind() -> None:
        socket = Socket(hub.context, zmq.XPUB, lambda: None, 10)
        try:
            with pytest.raises(zmq.ZMQError, match=r"Invalid argument|No such device"):
                socket.bind(f"tcp://{address}")
        finally:
            socket.close()

    hub.run(bind)
