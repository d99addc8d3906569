"""Our Publisher and libzmq's SUB and XSUB sockets."""

from __future__ import annotations

import socket
from functools import partial

import pytest
import zmq
from contexts import new_context
from ports import LOOPBACK, free_port
from sockets.bystanders import is_closed
from sockets.serving import client, in_hub, plain, publisher
from timing import until
from zmtp.vectors import GREETING_30, GREETING_31, command, greeting_2, message, ready

from dafka.hub.hub import get_hub
from dafka.sockets import limits, listening
from dafka.sockets.publisher import Publisher
from dafka.sockets.shared import Bounds
from dafka.sockets.tcp import KeepAlive
from dafka.zmtp import limits as zmtp_limits
from dafka.zmtp.subscriptions import Most


def test_a_subscriber_gets_what_it_has_subscribed_to():
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as a,
        client(zmq.SUB, served.endpoint) as all_,
    ):
        a.subscribe(b"a")
        a.subscribe(b"bb")
        all_.subscribe(b"")
        until(lambda: served.metrics()["subscriptions"] == 3)
        messages = [
            [first, b"%d" % number] for number, first in enumerate([b"a", b"ab", b"b", b"bb", b"", b"c"])
        ]
        in_hub(served.send_many, messages)
        in_hub(served.send, [b"a", b"end"])
        assert [all_.recv_multipart() for _ in range(7)] == [*messages, [b"a", b"end"]]
        assert [a.recv_multipart() for _ in range(4)] == [*messages[:2], messages[3], [b"a", b"end"]]


@pytest.mark.parametrize("kind", [zmq.SUB, zmq.XSUB])
@pytest.mark.parametrize("size", [0, 255, 256, 100_000, 64 << 20])
def test_messages_of_every_size(size: int, kind: int):
    body = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
    with publisher() as served, client(kind, served.endpoint) as sub:
        if kind == zmq.SUB:
            sub.subscribe(b"")
        else:
            sub.send(b"\x01")
        until(lambda: served.metrics()["subscriptions"] == 1)
        for frames in ([b"first", body, b"end"], [body], [b"last"]):
            in_hub(served.send, frames)
            assert sub.recv_multipart() == frames


def test_a_subscriber_comes_back_to_a_publisher_that_does():
    hub, port = get_hub(), free_port()
    with new_context() as context, context.socket(zmq.SUB) as sub:
        sub.rcvtimeo, sub.linger, sub.reconnect_ivl = 100_000, 0, 10
        sub.subscribe(b"a")
        sub.connect(f"tcp://{LOOPBACK}:{port}")

        def is_told(served: Publisher) -> bool:
            sub.poll(0)  # it tells a new connection of its subscriptions when it is called
            return served.metrics()["subscriptions"] == 1

        for number in range(3):
            served = hub.run(partial(_publisher_at, port))
            try:
                until(partial(is_told, served))
                in_hub(served.send_many, [[b"b"], [b"a%d" % number]])
                assert sub.recv_multipart() == [b"a%d" % number]
            finally:
                in_hub(served.close)


def _publisher_at(port: int) -> Publisher:
    return Publisher(get_hub(), listening.bind(LOOPBACK, port))


def test_a_cancelled_subscription_gets_nothing_more():
    with publisher() as served, client(zmq.SUB, served.endpoint) as sub:
        sub.subscribe(b"a")
        sub.subscribe(b"b")
        until(lambda: served.metrics()["subscriptions"] == 2)
        sub.unsubscribe(b"a")
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send_many, [[b"a"], [b"b"]])
        assert sub.recv_multipart() == [b"b"]


def test_the_subscriptions_of_one_that_leaves_are_forgotten():
    with publisher() as served:
        with client(zmq.XSUB, served.endpoint) as sub:
            for number in range(1000):
                sub.send(b"\x01%d" % number)
            until(lambda: served.metrics()["subscriptions"] == 1000)
        until(lambda: served.metrics()["subscriptions"] == 0)
        until(lambda: served.metrics()["connections"] == 0)
        in_hub(served.send, [b"1"])


@pytest.mark.parametrize(
    "octets",
    [
        GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBEa"),
        GREETING_31 + ready(b"SUB") + message(b"\x01a"),
        GREETING_30 + ready(b"SUB") + message(b"\x01a"),
        greeting_2(2) + message(b"\x01a"),
        greeting_2(10, b"xsub") + message(b"\x01a"),
    ],
)
def test_subscriptions_of_every_version(octets: bytes):
    with publisher() as served, plain(served.endpoint) as socket:
        socket.sendall(octets)
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send, [b"a", b"b"])
        received = b""
        while not received.endswith(message(b"a", b"b")):
            received += socket.recv(1000)


@pytest.mark.parametrize("kind", [zmq.DEALER, zmq.PULL, zmq.PUB])
def test_other_sockets_are_refused(kind: int):
    with publisher() as served, client(kind, served.endpoint):
        until(lambda: served.discarded["socket-type"])


def test_one_that_does_not_read_loses_messages_and_others_do_not():
    with (
        publisher() as served,
        plain(served.endpoint) as stuck,
        client(zmq.SUB, served.endpoint, rcvhwm=0) as reader,
    ):
        stuck.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        reader.subscribe(b"")
        until(lambda: served.metrics()["subscriptions"] == 2)
        body = b"x" * 10_000
        for number in range(3000):
            in_hub(served.send, [b"%d" % number, body])
            assert reader.recv_multipart() == [b"%d" % number, body]
        metrics = served.metrics()
        assert 0 < metrics["dropped"] < 3000
        assert metrics["queued_octets"] < limits.QUEUED_OCTETS + 100_000


@pytest.mark.parametrize(("limit", "value"), [("SUBSCRIPTIONS", 100), ("ALL_SUBSCRIPTIONS_OCTETS", 100_000)])
def test_a_peer_with_too_many_subscriptions_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
):
    monkeypatch.setattr(zmtp_limits, limit, value)
    with publisher() as served, client(zmq.SUB, served.endpoint) as sub, plain(served.endpoint) as bad:
        sub.subscribe(b"prefix")
        until(lambda: served.metrics()["subscriptions"] == 1)
        bad.sendall(GREETING_31 + ready(b"SUB"))
        bad.sendall(
            b"".join(command(b"\x09SUBSCRIBEprefix%d" % number + b"x" * 200) for number in range(300))
        )
        until(lambda: served.discarded["subscriptions"] == 1)
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send, [b"prefix"])
        assert sub.recv_multipart() == [b"prefix"]


def test_long_subscriptions_and_long_messages_are_refused():
    with publisher() as served:
        for wrong, cause in [
            (command(b"\x09SUBSCRIBE" + bytes(2000)), "subscriptions"),
            (command(b"\x09SUBSCRIBE" + bytes(5000)), "command-size"),
            (message(b"\x01" + bytes(5000)), "message-size"),
        ]:
            with plain(served.endpoint) as socket:
                socket.sendall(GREETING_31 + ready(b"SUB") + wrong)
                until(lambda cause=cause: served.discarded[cause] == 1)


def test_many_subscribers_each_get_each_message():
    with publisher() as served:
        sockets = [plain(served.endpoint) for _ in range(300)]
        for socket in sockets:
            socket.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        until(lambda: served.metrics()["subscriptions"] == 300)
        in_hub(served.send_many, [[b"%d" % number] for number in range(100)])
        expected = b"".join(message(b"%d" % number) for number in range(100))
        for socket in sockets:
            received = b""
            while not received.endswith(expected):
                received += socket.recv(10_000)
            socket.close()
        assert served.metrics()["dropped"] == 0


class Log:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bytes]] = []
        self.refused: dict[bytes, list[object]] = {}  # peers that may not subscribe, by prefix

    def allows(self, peer: object, prefix: bytes) -> bool:
        refused = self.refused.get(prefix)
        if refused is None or (refused and peer not in refused):
            return True
        refused.append(peer)
        return False

    def subscribed(self, peer: object, prefix: bytes) -> None:
        self.told.append(("subscribed", prefix))

    def cancelled(self, prefix: bytes) -> None:
        self.told.append(("cancelled", prefix))


def test_a_watcher_is_told_of_each_subscription_and_of_the_last_one_that_ends():
    log = Log()
    with publisher(watcher=log) as served:
        with client(zmq.SUB, served.endpoint) as one, client(zmq.SUB, served.endpoint) as two:
            one.subscribe(b"a")
            until(lambda: log.told == [("subscribed", b"a")])
            two.subscribe(b"a")
            until(lambda: log.told == [("subscribed", b"a")] * 2)
            two.subscribe(b"b")
            until(lambda: log.told[2:] == [("subscribed", b"b")])
            one.unsubscribe(b"a")
            one.subscribe(b"c")
            until(lambda: log.told[3:] == [("subscribed", b"c")])
            two.unsubscribe(b"a")
            until(lambda: log.told[4:] == [("cancelled", b"a")])
        until(lambda: sorted(log.told[5:]) == [("cancelled", b"b"), ("cancelled", b"c")])


def test_a_subscription_that_is_not_allowed_keeps_no_prefix_alive():
    log = Log()
    with (
        publisher(watcher=log) as served,
        client(zmq.SUB, served.endpoint) as refused,
        client(zmq.SUB, served.endpoint) as allowed,
    ):
        log.refused[b"a"] = []
        refused.subscribe(b"a")
        refused.subscribe(b"b")
        until(lambda: log.told == [("subscribed", b"b")])
        allowed.subscribe(b"a")
        until(lambda: log.told[1:] == [("subscribed", b"a")])
        assert served.metrics()["subscriptions"] == 2
        allowed.unsubscribe(b"a")
        until(lambda: log.told[2:] == [("cancelled", b"a")])


def test_encoded_messages_go_to_subscribers_of_their_common_prefix():
    with (
        publisher() as served,
        client(zmq.SUB, served.endpoint) as sub,
        client(zmq.SUB, served.endpoint) as no,
    ):
        sub.subscribe(b"Ma")
        no.subscribe(b"Mb")
        until(lambda: served.metrics()["subscriptions"] == 2)
        octets = b"".join(message(b"Mabc%d" % number, b"x" * 300) for number in range(100))
        in_hub(served.send_encoded, b"Mabc", [octets], 100)
        assert [sub.recv_multipart() for _ in range(100)] == [
            [b"Mabc%d" % number, b"x" * 300] for number in range(100)
        ]
        assert served.metrics()["messages_out"] == 100


def test_the_queue_for_a_peer_that_does_not_read_has_a_configurable_bound():
    with publisher(bounds=Bounds(queued=20_000_000)) as served, plain(served.endpoint) as stuck:
        stuck.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        until(lambda: served.metrics()["subscriptions"] == 1)
        octets = message(b"x" * 100_000)
        while not served.metrics()["dropped"]:
            in_hub(served.send_encoded, b"x", [octets], 1)
        assert 19_000_000 < served.metrics()["queued_octets"] < 20_200_000


def test_connections_beyond_the_limit_are_told_as_others_that_are_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    told: list[str] = []
    with publisher(bounds=Bounds(exceeded=told.append)) as served, plain(served.endpoint) as one:
        one.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        until(lambda: served.metrics()["subscriptions"] == 1)
        with plain(served.endpoint) as more:
            assert is_closed(more)
            host, port = more.getsockname()
        assert told == ["connections"]
        assert served.discarded == {"connections": 1}
    assert f"{host}:{port} refused: there are 1 connections" in caplog.text


def test_the_bounds_of_subscriptions_can_be_given():
    most = Most(prefix_octets=10, prefixes=20, octets=20 * 300, all_octets=10**6)
    with publisher(most=most) as served:
        for wrong in ([b"x" * 11], [b"%d" % number for number in range(21)]):
            with plain(served.endpoint) as socket:
                socket.sendall(GREETING_31 + ready(b"SUB"))
                socket.sendall(b"".join(command(b"\x09SUBSCRIBE" + prefix) for prefix in wrong))
                assert is_closed(socket)
        assert served.discarded["subscriptions"] == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only some systems have it")
def test_the_time_a_peer_may_read_nothing_is_configurable():
    keep_alive = KeepAlive(unread=0.3)
    bounds = Bounds(queued=20_000_000, keep_alive=keep_alive)
    with publisher(bounds=bounds) as served, plain(served.endpoint) as stuck:
        stuck.sendall(GREETING_31 + ready(b"SUB") + command(b"\x09SUBSCRIBE"))
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send_encoded, b"x", [message(b"x" * 15_000_000)], 1)
        until(lambda: served.metrics()["connections"] == 0)
