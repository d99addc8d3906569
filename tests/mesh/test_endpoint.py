"""Nodes on real sockets: routing by exact topic, framings, malformed input, joining and leaving."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest
from mesh.peer import ADDRESS, Peer
from timing import each_time, short_turns, until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits, options
from dafka.mesh.address import InvalidAddressError, InvalidTopicError
from dafka.mesh.consumer import ConsumerClosedError
from dafka.mesh.endpoint import Endpoint, EndpointBindError, Node
from dafka.mesh.producer import ProducerClosedError, UnacknowledgedError
from dafka.mesh.tower import TowerBindError
from dafka.protocol import commands
from dafka.protocol.framing import Framing, encode
from dafka.protocol.runs import Inbound
from dafka.roles.outputs import Subscribe
from dafka.roles.peers import PeersRole


def test_a_topic_that_only_starts_with_the_one_asked_for_is_not_delivered():
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["hello"], tower=tower) as consumer:
        peer.meet(b"Mhello")
        peer.send(commands.Record(ADDRESS, b"hello2", 0, b"not asked for"))
        peer.send(commands.Record(ADDRESS, b"hello", 0, b"asked for"))
        (record,) = consumer.poll(100.0)
        assert (record.topic, record.value) == ("hello", b"asked for")


@pytest.mark.parametrize("framing", Framing)
def test_a_node_reads_both_framings_and_writes_the_configured_one(framing):
    with (
        Tower() as tower,
        Peer(tower.addresses, framing) as peer,
        Consumer(["in"], tower=tower, framing=framing) as consumer,
        Producer("out", tower=tower, framing=framing, min_stores=0) as producer,
    ):
        for spoken in Framing:
            peer.meet(b"Min")
            sequence = list(Framing).index(spoken)
            peer.send_frames(encode(commands.Record(ADDRESS, b"in", sequence, b"said"), spoken))
            assert consumer.poll(100.0)[0].value == b"said"
        producer.send(b"perhaps too early")
        peer.receive(commands.Head)  # now it is subscribed
        producer.send(b"heard")
        peer.until(lambda: b"heard" in [getattr(command, "content", None) for command in peer.heard])
        record = peer.heard[-1]
        assert (record.topic, record.content, record.address) == (b"out", b"heard", producer.address.encode())


def test_malformed_frames_are_discarded_and_counted_and_what_follows_is_heard():
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["hello"], tower=tower) as consumer:
        peer.meet(b"Mhello")
        good = encode(commands.Record(ADDRESS, b"hello", 0, b"good"))
        for frames in (
            [good[0]],  # no content
            [*good, b"one too many", b"two"],
            [good[0][:-3], b"short"],
            [good[0].replace(b"\0\x01 ", b"\0\x02 "), b"version"],
            [b"Mhello"],
            [b"Mhello", b"\xaa\xa0M\x01", b"signature"],
            good,
        ):
            peer.send_frames(frames)
        assert [record.value for record in consumer.poll(100.0)] == [b"good"]
        discarded = consumer._node.endpoint.discarded
        assert sum(discarded.values()) == 6, discarded


def test_two_consumers_of_one_process_both_get_every_record():
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as first,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as second,
    ):
        for number in range(100):
            producer.send(b"%d" % number)
        for consumer in (first, second):
            assert [int(next(consumer).value) for _ in range(100)] == list(range(100))


def test_a_consumer_starts_where_it_is_told_to():
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as producer:
        for number in range(10):
            producer.send(b"%d" % number)
        with Consumer(
            ["hello"], tower=tower, offset_reset="earliest", start={producer.address: 7}
        ) as consumer:
            assert [next(consumer).sequence for _ in range(3)] == [7, 8, 9]


def test_a_slow_consumer_gets_everything_in_the_end(monkeypatch):
    monkeypatch.setattr("dafka.mesh.limits.ROOM_RECORDS", 100)
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for number in range(5000):
            producer.send(b"%d" % number)
        assert [int(next(consumer).value) for _ in range(5000)] == list(range(5000))


def test_closing_a_consumer_ends_an_iteration_in_another_thread():
    with Tower() as tower:
        consumer = Consumer(["hello"], tower=tower)
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.extend(consumer))
        thread.start()
        consumer.close()
        thread.join(100)
        assert not thread.is_alive()
        assert seen == []
        with pytest.raises(ConsumerClosedError):
            consumer.poll()


def test_a_producer_says_what_was_not_acknowledged():
    with Tower() as tower:
        producer = Producer("hello", tower=tower)
        for _ in range(3):
            producer.send(b"kept")
        with pytest.raises(
            UnacknowledgedError, match=r"3 records of topic 'hello'.*offsets 0 to 2"
        ) as caught:
            producer.close(timeout=0.05)
        assert (caught.value.first, caught.value.last) == (0, 2)
        with pytest.raises(ProducerClosedError):
            producer.send(b"too late")


@pytest.mark.parametrize("topic", ["", "x" * 256, b"", 7])
def test_illegal_topics_are_named(topic):
    with Tower() as tower:
        with pytest.raises(InvalidTopicError):
            Producer(topic, tower=tower)
        with pytest.raises(InvalidTopicError):
            Consumer([topic], tower=tower)


def test_topics_may_be_any_octets():
    name = bytes(range(256))[1:]
    with (
        Tower() as tower,
        Producer(name, tower=tower, min_stores=0) as producer,
        Consumer([name], tower=tower, offset_reset="earliest") as consumer,
    ):
        producer.send(b"value")
        record = next(consumer)
        assert record.topic.encode("utf-8", "surrogateescape") == name


@pytest.mark.parametrize("value", ["text", None, 5])
def test_values_are_bytes(value):
    with Tower() as tower, Producer("hello", tower=tower) as producer, pytest.raises(TypeError):
        producer.send(value)


@pytest.mark.parametrize("tower", ["tcp://127.0.0.1:5556", ("here", "there"), (("tcp://a:1", "x"),), (), 5])
def test_towers_are_pairs_of_addresses(tower):
    with pytest.raises(InvalidAddressError):
        Consumer(["hello"], tower=tower)


@pytest.mark.parametrize("number", [-1, 2**63, 1.5, "0"])
def test_a_start_that_is_not_a_sequence_is_refused(number):
    with Tower() as tower, pytest.raises(ValueError, match="a start sequence is an int from 0"):
        Consumer(["hello"], tower=tower, start={"A" * 32: number})


def test_an_unknown_framing_is_named():
    with Tower() as tower, pytest.raises(ValueError, match="framing is 'libdafka' or 'rfc46', not 'rfc'"):
        Consumer(["hello"], tower=tower, framing="rfc")


def test_peers_may_be_silent_for_ever():
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0, beacon_timeout=float("inf")) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest", beacon_timeout=1e12) as consumer,
    ):
        producer.send(b"value")
        assert consumer.poll(100)[0].value == b"value"


def test_a_tower_whose_address_is_taken_says_which():
    with Tower() as tower, pytest.raises(TowerBindError, match=tower.addresses[0]):
        Tower(tower.addresses[0])


@pytest.mark.parametrize("address", ["tcp://no port", "tcp://127.0.0.1"])
def test_a_tower_address_that_cannot_be_one_is_named_and_leaves_nothing_open(address):
    with pytest.raises(InvalidAddressError, match="is not an address of a tower"):
        Consumer(["hello"], tower=("tcp://127.0.0.1:5556", address))
    assert not get_hub().run(
        lambda: [options for _, options in Endpoint._open if address in options.towers[0]]
    )


def test_an_interface_that_is_not_there_is_named():
    with Tower() as tower, pytest.raises(EndpointBindError, match=r"'192\.0\.2\.1'"):
        Consumer(["hello"], tower=tower, bind="192.0.2.1")


def test_closing_twice_does_not_touch_the_endpoint_of_those_that_came_after():
    with Tower() as tower:
        first = Consumer(["hello"], tower=tower)
        old = first._node.endpoint
        first.close()
        with Consumer(["hello"], tower=tower) as second:
            new = second._node.endpoint
            assert new is not old
            get_hub().run(old.detach, first._node)
            with Consumer(["hello"], tower=tower) as third:
                assert third._node.endpoint is new


def test_a_node_that_has_left_says_nothing_any_more(caplog):
    with Tower() as tower, Consumer(["other"], tower=tower) as staying:
        consumer = Consumer(["hello"], tower=tower)
        node, endpoint = consumer._node, consumer._node.endpoint
        consumer.close()
        before = staying.metrics()["endpoint_subscriptions"]
        get_hub().run(node.subscribe, b"late")
        get_hub().run(node._set_room)
        assert staying.metrics()["endpoint_subscriptions"] == before
        assert not endpoint._routes.of(node)
    assert not [one for one in caplog.records if one.name.startswith("dafka.mesh")]


def test_a_consumer_that_leaves_takes_its_subscriptions_back():
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Consumer(["hello", "other"], tower=tower) as staying,
    ):
        own = {octet + staying.address.encode() for octet in (b"D", b"E", b"L", b"T")}
        with Consumer(["hello", "hello2"], tower=tower) as leaving:
            peer.meet(b"Mhello", b"Hhello", b"Mhello2", b"D" + leaving.address.encode())
            leaving.unsubscribe("hello2")
            peer.until(lambda: not peer.subscriptions & {b"Mhello2", b"Hhello2"})
        peer.until(lambda: peer.subscriptions == own | {b"C", b"Mhello", b"Hhello", b"Mother", b"Hother"})
        staying.unsubscribe("hello")
        peer.until(lambda: peer.subscriptions == own | {b"C", b"Mother", b"Hother"})


@each_time
def test_a_node_that_joins_is_told_of_very_many_subscriptions_little_by_little():
    class Listening(Node):
        hello_ids = b"W"

        def __init__(self, leaves_at: int = -1) -> None:
            self.told: list[bytes] = []
            self._leaves_at = leaves_at

        def on_subscription(self, prefix: bytes) -> None:
            self.told.append(prefix)
            if len(self.told) == self._leaves_at:
                endpoint.detach(self)

    hub = get_hub()
    prefixes = [b"W%032X" % number for number in range(100_000)]
    with Tower() as tower, Consumer(["hello"], tower=tower) as consumer:
        endpoint = consumer._node.endpoint
        for prefix in prefixes:
            endpoint._heard.add(prefix)
        node, leaving = Listening(), Listening(leaves_at=limits.TOLD_AT_ONCE + 10)
        with short_turns():
            hub.run(endpoint.attach, node)
            hub.run(endpoint.attach, leaving)
            until(lambda: len(node.told) == len(prefixes))
        assert node.told == prefixes
        assert len(leaving.told) == limits.TOLD_AT_ONCE + 10
        hub.run(endpoint.detach, node)


@each_time
def test_commands_that_come_together_are_handled_in_several_turns():
    class Slow(Node):
        def __init__(self) -> None:
            self.told: list[tuple[commands.Command, object]] = []

        def on_command(self, command: commands.Command) -> None:
            ends = time.thread_time() + 0.0002
            while time.thread_time() < ends:
                pass
            self.told.append((command, endpoint.speaker))

    hub, speaker = get_hub(), ("127.0.0.1", 1)
    fetches = [commands.Fetch(ADDRESS, b"%032X" % number, b"t", number, 1) for number in range(1000)]
    with Tower() as tower, Consumer(["hello"], tower=tower) as consumer:
        endpoint, node = consumer._node.endpoint, Slow()
        hub.run(endpoint.attach, node)
        hub.run(endpoint.publish, node, [Subscribe(b"F")])
        with short_turns():
            hub.run(endpoint.received, Inbound([], fetches, Counter()), speaker)
        assert node.told == [(command, speaker) for command in fetches]
        assert endpoint.speaker is None
        assert endpoint.counts["fetches_in"] == 1000
        hub.run(endpoint.detach, node)


def test_clocks_end_with_the_nodes_they_are_for():
    with Tower() as tower, Consumer(["hello"], tower=tower) as consumer:
        endpoint = consumer._node.endpoint
        for number in range(5):
            Producer("hello", tower=tower, min_stores=0, head_interval=0.02 + number / 1000).close()
        until(lambda: endpoint._ticking.intervals == [0.1])


def test_a_peer_may_be_named_by_its_host():
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0, advertise="localhost") as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        producer.send(b"value")
        assert [record.value for record in consumer.poll(100)] == [b"value"]
        assert any(b"localhost" in peer for peer in consumer._node.endpoint.peers)


def test_a_tower_that_is_not_there_is_said_in_the_log_once(caplog):
    with ExitStack() as stack:  # ports that nobody else takes meanwhile, and that say nothing
        ports = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        addresses = tuple(f"tcp://127.0.0.1:{port.getsockname()[1]}" for port in ports)
        said = f"nothing is heard from a tower at {addresses[1]}: is one running there?"
        with Consumer(["hello"], tower=addresses, beacon_interval=0.05, beacon_timeout=0.2) as consumer:
            until(lambda: said in caplog.text)
            assert consumer.poll(0.5) == []
    assert caplog.text.count(said) == 1


def test_a_tower_that_is_there_is_not_asked_about(caplog):
    mesh = {"beacon_interval": 0.1, "beacon_timeout": 3.0}
    for _ in range(4):  # on a busy machine three seconds may be too short once, but not each time
        caplog.clear()
        with Tower() as tower, Consumer(["hello"], tower=tower, **mesh) as consumer:
            assert consumer.poll(3.5) == []
        if f"nothing is heard from a tower at {tower.addresses[1]}" not in caplog.text:
            return
    pytest.fail(caplog.text)


def test_an_error_in_a_node_is_logged_and_others_go_on(caplog, monkeypatch):
    with (
        Tower() as tower,
        Consumer(["hello"], tower=tower) as broken,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        Producer("hello", tower=tower, min_stores=0) as producer,
    ):
        monkeypatch.setattr(broken._node, "on_run", lambda run: 1 // 0)
        producer.send(b"value")
        assert [record.value for record in consumer.poll(100)] == [b"value"]
    assert "ZeroDivisionError" in caplog.text


def test_a_store_keeps_its_address_with_its_folder(tmp_path):
    with Tower() as tower:
        with Store(tmp_path / "storedb", tower=tower) as store:
            address = store.address
        with Store(tmp_path / "storedb", tower=tower) as store:
            assert store.address == address
        with Store(tmp_path / "other", tower=tower, address="0" * 32) as store:
            assert store.address == "0" * 32


@pytest.mark.skipif(options.TRANSPORT == "libzmq", reason="libzmq connects as long as it is told to")
def test_the_port_of_a_lost_peer_is_not_connected_to_before_a_tower_tells_of_it_again(monkeypatch):
    asked: list[bytes] = []
    expected = PeersRole.expected

    def spied(role: PeersRole, now: float, endpoint: bytes, began: float, lost: float) -> bool:
        asked.append(endpoint)
        return expected(role, now, endpoint, began, lost)

    monkeypatch.setattr(PeersRole, "expected", spied)
    # A tower counts as gone after half of the timeout: not here.
    with Tower() as tower, Consumer(["hello"], tower=tower, beacon_interval=0.1, beacon_timeout=1000):
        with Peer(tower.addresses) as peer:
            peer.meet(b"Mhello")
        until(lambda: len(asked) >= 5, "the peer is lost, and its last beacon has come")
        with socket.create_server(("127.0.0.1", peer.port)) as stranger:
            begun = len(asked)
            until(lambda: len(asked) >= begun + 5, "the peer is not there")
            stranger.settimeout(0)
            with pytest.raises(BlockingIOError):
                stranger.accept()
            with Peer(tower.addresses) as successor:
                successor.port = peer.port
                successor.until(partial(_has_come, stranger))


def _has_come(served: socket.socket) -> bool:
    try:
        connection, _ = served.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True
