"""The hub's turns stay short, whatever many peers and busy stores do at once."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from descriptors import descriptors
from overlay.node.crowd import Crowd
from overlay.node.endpoints import until
from timing import SECONDS, each_time, short_turns

from dafka.hub.hub import get_hub
from dafka.overlay import Disk, Endpoint, Memory
from dafka.overlay.node import limits, publishing, receiving
from dafka.overlay.node.publishing import Publishing
from dafka.overlay.node.receiving import Receiving
from dafka.overlay.node.stores import host
from dafka.overlay.peering.outputs import Close, PeerDown, Send
from dafka.overlay.values import encode, types

PEERS = 120
VERY_MANY = 900  # nearly as many as a node may have


def test_further_messages_do_not_multiply_the_work_of_later_turns(monkeypatch):
    posted, later, published = [], [], []
    monkeypatch.setattr(publishing, "in_later_turn", later.append)
    hub = SimpleNamespace(post=posted.append, turns=SimpleNamespace(elapsed=1.0))  # each turn is long already
    core = SimpleNamespace(fan_out=lambda topic: 1, is_blocked=lambda topic: False)
    role = SimpleNamespace(
        core=core, me=b"", publish_many=lambda topic, payloads: [(topic, one) for one in payloads]
    )
    subscribers = SimpleNamespace(deliver_own=lambda *message: None, full_own=lambda topic: False)
    publisher = Publishing(hub, role, subscribers, published.extend)
    expected = []
    for number in range(10):
        for topic in (b"/a", b"/b", b"/c"):
            publisher.pending.put(topic, b"%d" % number, None)
            expected.append((topic, b"%d" % number))
        while posted:
            posted.pop()()
    assert len(later) == 1
    while later:
        later.pop()(None)
    assert published == expected and publisher.waiting == 0


@pytest.mark.parametrize("is_long", [False, True])
def test_messages_that_came_at_once_and_are_much_work_are_handled_in_several_turns(monkeypatch, is_long):
    done = []
    monkeypatch.setattr(receiving.Pace, "pause", lambda self: done.append("a turn ends"))

    def received_some(now, number, messages, begin):
        return [messages[begin]], begin + 1

    core = SimpleNamespace(payload_to_check=lambda number, message: None)
    role = SimpleNamespace(received_some=received_some, core=core)
    hub = SimpleNamespace(turns=SimpleNamespace(elapsed=1.0 if is_long else 0.0))
    Receiving(hub, role, done.extend).receive(7, [b"1", b"2", b"3"])
    assert [one for one in done if one != "a turn ends"] == [b"1", b"2", b"3"]
    assert done.count("a turn ends") == (3 if is_long else 0)


class Published:
    """A publisher whose turns are long, whatever it does. ``outputs``: of the role, for each message."""

    def __init__(self, monkeypatch, outputs):
        self.carried, self.later, posted = [], [], []
        monkeypatch.setattr(publishing, "in_later_turn", self.later.append)
        hub = SimpleNamespace(post=posted.append, turns=SimpleNamespace(elapsed=1.0))
        core = SimpleNamespace(fan_out=lambda topic: 1000, is_blocked=lambda topic: False)

        def publish_many(topic, payloads):
            return [one for payload in payloads for one in outputs(payload)]

        role = SimpleNamespace(core=core, me=b"", publish_many=publish_many)
        subscribers = SimpleNamespace(deliver_own=lambda *message: None, full_own=lambda topic: False)
        self.publisher = Publishing(hub, role, subscribers, lambda some: self.carried.append(list(some)))
        self.publisher.pending.put(b"/t", b"1", None)
        self.publisher.pending.put(b"/t", b"2", None)
        posted.pop()()

    def go_on(self):
        while self.later:
            assert self.publisher.waiting
            self.later.pop()(None)
        assert self.publisher.waiting == 0


def test_a_message_to_a_thousand_peers_goes_out_in_several_turns_and_in_order(monkeypatch):
    published = Published(monkeypatch, lambda payload: [Send(number, payload) for number in range(1000)])
    published.go_on()
    assert max(map(len, published.carried)) == limits.CARRIED_AT_ONCE and len(published.carried) == 10
    expected = [Send(number, one) for one in (b"1", b"2") for number in range(1000)]
    assert [one for some in published.carried for one in some] == expected


def test_the_loss_of_a_peer_is_carried_in_the_same_turn_as_its_close(monkeypatch):
    left = [Close(7), PeerDown(7, b"slow", False, False, "too slow")]

    def outputs(payload):
        return [Send(number, payload) for number in range(1000)] + (left if payload == b"1" else [])

    published = Published(monkeypatch, outputs)
    assert published.carried == [outputs(b"1")]
    published.go_on()
    assert sum(map(len, published.carried)) == 2002


def test_further_writes_do_not_multiply_a_stores_work_in_later_turns(monkeypatch):
    later = []
    with Endpoint() as endpoint:
        store = endpoint.attach_master("s")
        hosted = store._hosted

        def write_and_drain():
            with monkeypatch.context() as patch:
                patch.setattr(host, "in_later_turn", later.append)
                patch.setattr(limits, "TURN_SECONDS", float("-inf"))
                for number in range(10):
                    for key in range(3):
                        hosted.queue.append(store._operations.put((number, key), 1, None))
                    hosted.drain()
            scheduled = len(later)
            while later:
                later.pop()(None)
            return scheduled

        assert get_hub().run(write_and_drain) == 1
        assert len(store.keys()) == 30


@pytest.mark.parametrize("version", [1, 2])
@each_time
def test_many_peers_come_are_sent_to_and_go_at_once(version):
    with Endpoint("127.0.0.1:0") as endpoint:
        with short_turns(), Crowd(endpoint.address, PEERS, version) as crowd:
            until(lambda: crowd.up == PEERS and len(endpoint.peers()) == PEERS)
        with short_turns():
            until(lambda: not endpoint.peers())


@pytest.mark.parametrize("version", [1, 2])
@each_time
def test_an_endpoint_with_many_peers_publishes_much_and_is_closed(version):
    endpoint = Endpoint("127.0.0.1:0")
    with Crowd(endpoint.address, PEERS, version) as crowd:
        until(lambda: crowd.up == PEERS and len(endpoint.peers()) == PEERS)
        with short_turns():
            endpoint.publish_batch([("/t", number) for number in range(100)])
            endpoint.close()


@each_time
def test_messages_are_passed_on_to_very_many_peers():
    with (
        descriptors(3 * VERY_MANY),
        Endpoint("127.0.0.1:0") as middle,
        Crowd(middle.address, VERY_MANY, 1) as crowd,
        Endpoint(peers=[middle.address]) as publisher,
    ):
        until(lambda: crowd.up == VERY_MANY and len(publisher.filters()) == VERY_MANY + 1)
        with short_turns():
            for number in range(5):
                publisher.publish("/t", number)
                assert publisher.await_routes(SECONDS), "the middle has passed it on"


def dear(count):
    """A set, its largest elements first, and each is in sixteen tables."""
    numbers = [encode(count - place) for place in range(count)]
    return bytes([types.SET, count]) + b"".join([bytes([types.TABLE, 1, 0]) * 16 + one for one in numbers])


@pytest.mark.parametrize(("messages", "count"), [(6, 127), (150, 12)])
@each_time
def test_values_that_are_much_work_to_check_hold_up_nobody_where_they_come_in(messages, count):
    with (
        Endpoint("127.0.0.1:0") as middle,
        Endpoint(peers=[middle.address]) as sender,
        Endpoint(peers=[middle.address]) as receiver,
        receiver.subscribe("/t") as subscriber,
    ):
        assert sender.await_subscriber("/t", timeout=SECONDS)
        for number in range(1000):  # they are little work: then many are handled at once
            sender.publish("/t", number)
        assert [subscriber.get(SECONDS).value for _ in range(1000)] == list(range(1000))
        with short_turns():
            for _ in range(messages):
                sender._carrier.pending.put(b"/t", dear(count), None)
                sender._carrier.pending.put(b"/t", dear(count)[:-1], None)
            assert all(len(subscriber.get(SECONDS).value) == count for _ in range(messages))
        until(lambda: middle._carrier.role.core.discarded["undecodable"] == messages)


@pytest.mark.parametrize("kind", ["memory", "disk"])
@each_time
def test_a_store_is_written_to_from_both_ends(kind, tmp_path_factory):
    backend = Memory() if kind == "memory" else Disk(tmp_path_factory.mktemp("disk") / "store")
    with Endpoint("127.0.0.1:0") as here, Endpoint(peers=[here.address]) as there:
        master, clone = here.attach_master("s", backend), there.attach_clone("s")

        def write(store):
            for number in range(1000):
                store.put(number % 500, "x" * 100)

        other = threading.Thread(target=write, args=(clone,))
        with short_turns():
            other.start()
            write(master)
            other.join()
            assert clone.await_idle(60) and master.await_idle(60)
            get_hub().run(lambda: None)
