"""With hostile and with very many peers no turn of the hub takes 20 ms of processor time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import zmq
from descriptors import descriptors
from sockets.serving import Recorder, client, in_hub, later, plain, publisher, router, sending
from timing import each_time, no_long_turn, until
from zmtp.vectors import GREETING_31, command, frame, message, ready

from dafka.hub.hub import get_hub
from dafka.sockets.peer import Peer
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.subscriptions import Most

TURN = 0.020

JOIN = GREETING_31 + ready(b"DEALER")


class Counter(Recorder):
    """Counts messages, so that the handler takes next to nothing."""

    count = 0

    def messages(self, peer: Peer, messages: list[list[bytes]]) -> None:
        self.count += len(messages)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    with descriptors(5000):
        yield


@contextmanager
def short_turns(limit: float = TURN) -> Iterator[None]:
    """Check the turns of what is done in between."""
    hub = get_hub()
    gc.collect()
    gc.disable()  # collections take long in a process of tests
    try:
        in_hub(time.sleep, 0)
        hub.turns.reset()
        yield
        hub.run(lambda: None)
        longest = hub.turns.longest_cpu
    finally:
        gc.enable()
    no_long_turn(longest, limit)


FLOODS: dict[str, Callable[[], bytes]] = {
    "empty messages": lambda: message(b"") * 32_768,
    "messages of one octet": lambda: message(b"x") * 22_000,
    "messages of a hundred octets": lambda: message(b"x" * 100) * 642,
    "empty frames": lambda: (frame(b"", True) * 1000 + frame(b"")) * 32,
    "messages of two frames": lambda: message(b"k", b"v") * 10_000,
    "unlike messages": lambda: b"".join(message(b"x" * (number % 3)) for number in range(20_000)),
    "PINGs": lambda: command(b"\x04PING\x00\x00") * 6000,
    "unknown commands": lambda: command(b"\x01X") * 16_000,
    "a large message": lambda: message(bytes(24 << 20)),  # the largest of ZPER; one copy is made in a turn
    "large messages": lambda: message(bytes(1 << 20)) * 10,
}


@pytest.mark.parametrize("name", FLOODS)
@each_time
def test_floods_of_messages(name: str):
    flood = FLOODS[name]()
    with router(Counter(), max_message=65 << 20) as served, ExitStack() as stack:
        sockets = [stack.enter_context(plain(served.endpoint)) for _ in range(4)]
        with short_turns():
            for socket in sockets:
                socket.sendall(JOIN)
            until(lambda: served.metrics()["peers"] == 4)
            started = served.metrics()["octets_in"]
            repeats = max(1, 500_000 // len(flood))
            threads = [later(socket.sendall, flood * repeats) for socket in sockets]
            for thread in threads:
                thread.join()
            # More where a node of another test looks for its tower, whose port this one has now.
            until(lambda: served.metrics()["octets_in"] - started >= 4 * repeats * len(flood))
            until(lambda: served.metrics()["received_octets"] == 0)


@each_time
def test_bursts_of_connections_and_of_disconnects(many_descriptors: None):
    with router(Counter()) as served, ExitStack() as stack, short_turns():
        for _ in range(1500):
            stack.enter_context(plain(served.endpoint)).sendall(JOIN + message(b"x"))
        until(lambda: served.metrics()["messages_in"] == 1500)
        stack.close()
        until(lambda: served.metrics()["connections"] == 0)


@each_time
def test_a_router_with_many_peers_closes(many_descriptors: None):
    with ExitStack() as stack:
        with short_turns(), router(Counter()) as served:
            for _ in range(1500):
                stack.enter_context(plain(served.endpoint)).sendall(JOIN)
            until(lambda: served.metrics()["peers"] == 1500)
        assert served.metrics()["connections"] == 0


@each_time
def test_all_of_many_peers_send_at_once(many_descriptors: None):
    class Slow(Counter):
        def messages(self, peer: Peer, messages: list[list[bytes]]) -> None:
            super().messages(peer, messages)
            ends = time.perf_counter() + 0.001
            while time.perf_counter() < ends:
                pass

    recorder = Slow()
    with router(recorder) as served, ExitStack() as stack:
        sockets = [stack.enter_context(plain(served.endpoint)) for _ in range(1000)]
        for socket in sockets:
            socket.sendall(JOIN)
        until(lambda: served.metrics()["peers"] == 1000)
        with short_turns():
            for socket in sockets:
                socket.sendall(message(b"x" * 100) * 10)
            until(lambda: recorder.count == 10_000)


@each_time
def test_streams_to_many_peers(many_descriptors: None):
    with router(Counter()) as served, ExitStack() as stack:
        sockets = [stack.enter_context(plain(served.endpoint)) for _ in range(300)]
        for number, socket in enumerate(sockets):
            socket.sendall(GREETING_31 + ready(b"PULL", b"%d" % number))
        until(lambda: served.metrics()["peers"] == 300)
        peers = [served.peer(peer.identity) for peer in served._accepting._peers]
        messages = [[b"x" * 1000]] * 1000
        expected = len(message(b"x" * 1000)) * 1000
        with short_turns():
            for peer in peers:
                assert peer is not None
                sending(peer, messages)
            done = threading.Semaphore(0)

            def read(some: list[object]) -> None:
                for socket in some:
                    left = expected
                    while left > 0:
                        left -= len(socket.recv(65536))  # type: ignore[attr-defined]
                    done.release()

            for begin in range(0, 300, 100):
                later(read, sockets[begin : begin + 100])
            for _ in range(300):
                assert done.acquire(timeout=200)


@each_time
def test_connections_that_waited_are_accepted_in_several_turns(many_descriptors: None):
    with router(Counter()) as served, ExitStack() as stack, short_turns(0.6 * TURN):
        hub_sleeps = later(in_hub, time.sleep, 1.0)  # takes no processor time
        sockets = [stack.enter_context(plain(served.endpoint)) for _ in range(1000)]
        for socket in sockets:
            socket.sendall(JOIN + message(b"x"))
        hub_sleeps.join()
        until(lambda: served.metrics()["messages_in"] == 1000)


@each_time
def test_sockets_that_have_room_at_the_same_time_are_sent_to_in_several_turns(many_descriptors: None):
    body = [b"x" * 100_000]
    with router(Counter()) as served, ExitStack() as stack:
        sockets = [stack.enter_context(plain(served.endpoint)) for _ in range(200)]
        for number, socket in enumerate(sockets):
            socket.sendall(GREETING_31 + ready(b"PULL", b"%d" % number))
        until(lambda: served.metrics()["peers"] == 200)
        for peer in list(served._accepting._peers):
            sending(peer, [body] * 300)
        until(lambda: all(peer.queued > 500_000 for peer in served._accepting._peers))
        sent = served.metrics()["octets_out"]
        with short_turns(0.5 * TURN):
            hub_sleeps = later(in_hub, time.sleep, 2.0)
            for socket in sockets:
                socket.setblocking(False)
            quiet = time.monotonic() + 0.3
            while time.monotonic() < quiet:  # held by the kernel
                for socket in sockets:
                    with suppress(BlockingIOError):
                        while socket.recv(1 << 20):
                            quiet = time.monotonic() + 0.3
            hub_sleeps.join()
            until(lambda: served.metrics()["octets_out"] - sent > 40_000_000)


@each_time
def test_publishing_to_many(many_descriptors: None):
    with publisher() as served, ExitStack() as stack:
        for _ in range(1500):
            subscriber = stack.enter_context(plain(served.endpoint))
            subscriber.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        until(lambda: served.metrics()["subscriptions"] == 1500)
        with short_turns():
            for _ in range(10):
                in_hub(served.send_many, [[b"x" * 100]] * 50)
            until(lambda: served.metrics()["queued_octets"] == 0)
        assert served.metrics()["dropped"] == 0


@each_time
def test_subscriptions_come_and_go():
    count = zmtp_limits.SUBSCRIPTIONS - 1000
    some = b"".join(command(b"\x09SUBSCRIBE" + b"%d" % number) for number in range(count))
    with publisher() as served, plain(served.endpoint) as socket, client(zmq.SUB, served.endpoint) as sub:
        sub.subscribe(b"")
        until(lambda: served.metrics()["subscriptions"] == 1)
        with short_turns():
            socket.sendall(GREETING_31 + ready(b"SUB") + some)
            until(lambda: served.metrics()["subscriptions"] == 1 + count)
            for number in range(100):
                in_hub(served.send, [b"%d" % number])
                sub.recv()
            socket.close()
            until(lambda: served.metrics()["connections"] == 1)
        assert served.metrics()["subscriptions"] == 1
        assert not served.discarded


@each_time
def test_subscriptions_that_take_a_while_each():
    class Answering:
        def allows(self, peer: Peer, prefix: bytes) -> bool:
            return True

        def subscribed(self, peer: Peer, prefix: bytes) -> None:
            _compute(0.0002)

        def cancelled(self, prefix: bytes) -> None:
            pass

    some = b"".join(command(b"\x09SUBSCRIBE" + b"%d" % number) for number in range(2000))
    with publisher(watcher=Answering()) as served, plain(served.endpoint) as socket, short_turns():
        socket.sendall(GREETING_31 + ready(b"SUB") + some)
        until(lambda: served.metrics()["subscriptions"] == 2000)


def _compute(seconds: float) -> None:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


@each_time
def test_a_subscriber_of_very_much_leaves():
    count = 100_000  # nodes of the mesh may have more than twice as many
    some = b"".join(command(b"\x09SUBSCRIBE" + b"%032d" % number) for number in range(count))
    most = Most(prefixes=count, octets=1 << 30, all_octets=1 << 30)
    with publisher(most=most) as served, plain(served.endpoint) as socket:
        socket.sendall(GREETING_31 + ready(b"SUB") + some)
        until(lambda: served.metrics()["subscriptions"] == count)
        with short_turns():
            socket.close()
            until(lambda: served.metrics()["connections"] == 0)
        assert served.metrics()["subscriptions"] == 0
