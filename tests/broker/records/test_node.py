"""The broker on the mesh: leaders as ordinary Dafka producers, HEADs, and what may not come in."""

from __future__ import annotations

import time

import gevent
import gevent.event
from broker.clients import Client, batch
from timing import until

from dafka import Broker, Consumer, Producer, Store
from dafka.broker.limits import HEAD_INTERVAL
from dafka.broker.records import node
from dafka.broker.records.node import BrokerNode
from dafka.mesh import limits
from dafka.mesh.endpoint import Node
from dafka.protocol.commands import DirectHead, Fetch, Head, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.outputs import Subscribe


class Listener(Node):
    """A node that notes what it hears of one topic."""

    def __init__(self, client: Client, topic: bytes) -> None:
        self.heard: list[object] = []
        self.endpoint = client.core.node.endpoint
        self.hub = client.connection.hub
        self.hub.run(self._attach, topic)

    def _attach(self, topic: bytes) -> None:
        self.endpoint.attach(self)
        self.endpoint.publish(self, [Subscribe(b"M" + topic), Subscribe(b"H" + topic)])

    def publish(self, *outputs: object) -> None:
        self.hub.run(self.endpoint.publish, self, outputs)

    def on_run(self, run: Run) -> None:
        self.heard.append(run)

    def on_command(self, command: object) -> None:
        self.heard.append(command)


def test_committed_batches_are_published_as_the_leaders_records(client):
    client.create("t")
    listener = Listener(client, b"t")
    client.produce("t", b"a")
    client.produce("t", b"b")
    runs = until(lambda: [run for run in listener.heard if isinstance(run, Run)][1:] and listener.heard)
    address = client.partitions("t")[0][0].encode()
    runs = [run for run in runs if isinstance(run, Run)]
    assert [(run.recipient, run.address, run.topic, run.first) for run in runs] == [
        (None, address, b"t", 0),
        (None, address, b"t", 1),
    ]
    assert [run.contents for run in runs] == [[content] for content in client.fetch("t").batches]


def test_nothing_is_published_before_its_commit(client, monkeypatch):
    client.create("t")
    listener = Listener(client, b"t")
    commit, seen = client.core.log._storage.commit, []

    def watched(*args):
        seen.append([run for run in listener.heard if isinstance(run, Run)])
        return commit(*args)

    monkeypatch.setattr(client.core.log._storage, "commit", watched)
    client.produce("t", b"a")
    until(lambda: listener.heard)
    assert seen == [[]]


def test_a_dafka_consumer_reads_a_brokers_topic_from_the_beginning_and_goes_on(broker, client):
    client.create("t", 2)
    client.produce("t", b"a", b"b", partition=0)
    client.produce("t", b"c", partition=1)
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
        found = sorted((record.partition, record.offset, record.value) for record in take(consumer, 3))
        (first, _), (second, _) = client.partitions("t")
        assert found == sorted([(first, 0, b"a"), (first, 1, b"b"), (second, 0, b"c")])
        client.produce("t", b"d", partition=1)
        assert [record.value for record in take(consumer, 1)] == [b"d"]


def take(consumer, count):
    records = []
    until(lambda: records.extend(consumer.poll(0.5)) or len(records) >= count)
    return records


def test_a_restarted_broker_serves_its_records(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"a")
    with (
        Broker(tmp_path) as broker,
        Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer,
    ):
        assert [record.value for record in take(consumer, 1)] == [b"a"]


def test_another_store_of_the_mesh_gets_the_leaders_partitions(broker, client, tmp_path):
    client.create("t")
    client.produce("t", b"a")
    address = client.partitions("t")[0][0]
    with Store(tmp_path / "store", tower=broker.tower) as store:
        client.produce("t", b"b")
        until(lambda: store.heads() == {(b"t", address): 1})


def test_leaders_beyond_the_partitions_that_a_store_takes_from_the_mesh_are_served(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 5)
        role = client.core.node.role
        role._limits = role._limits._replace(partitions=2)
        for number in range(5):
            client.produce("t", b"%d" % number, partition=number)
        with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
            assert sorted(record.value for record in take(consumer, 5)) == [b"0", b"1", b"2", b"3", b"4"]
        with Store(tmp_path / "store", tower=broker.tower) as store:
            until(lambda: len(store.heads()) == 5)


def test_leaders_take_no_place_of_native_partitions_after_a_restart_either(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 5)
        for number in range(5):
            client.produce("t", b"%d" % number, partition=number)
    with Broker(tmp_path) as broker:
        role = Client(broker).core.node.role
        role._limits = role._limits._replace(partitions=2)
        with Producer("u", tower=broker.tower) as producer:
            producer.send(b"x")
            producer.flush(100)


def test_every_leader_with_records_says_its_head_about_once_in_an_interval(client):
    client.create("t", 25)
    for number in range(20):
        client.produce("t", b"a", b"b", partition=number)
        client.produce("t", b"c", partition=number)
    began = time.monotonic()
    listener = Listener(client, b"t")
    heads: dict[bytes, list[float]] = {}

    def all_twice():
        for command in listener.heard:
            if isinstance(command, Head):
                assert (command.topic, command.sequence) == (b"t", 1)
        heads.clear()
        for command in list(listener.heard):
            if isinstance(command, Head):
                heads.setdefault(command.address, []).append(0)
        return len(heads) == 20 and all(len(times) >= 2 for times in heads.values())

    until(all_twice)
    assert set(heads) == {address.encode() for address, _ in client.partitions("t")[:20]}
    intervals = (time.monotonic() - began) / HEAD_INTERVAL
    assert all(len(times) <= intervals + 2 for times in heads.values())


def test_heads_go_on_after_a_restart_and_end_with_the_topic(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"a")
    with Broker(tmp_path) as broker:
        client = Client(broker)
        listener = Listener(client, b"t")
        assert set(until(lambda: listener.heard)) == {Head(client.partitions("t")[0][0].encode(), b"t", 0)}
        client.call("delete_topics", ["t"])
        client.create("u")
        client.produce("u", b"a")
        other = Listener(client, b"u")
        listener.heard.clear()
        until(lambda: sum(isinstance(one, Head) for one in other.heard) >= 2)  # all were told in between
        assert listener.heard == []


def test_a_broker_that_joins_the_mesh_learns_of_changes_meanwhile(tmp_path, monkeypatch):
    """It learns of its partitions one by one, and others have their turn in between."""
    learn, learned, go_on = BrokerNode.learn, [], gevent.event.Event()

    def learn_slowly(node, partition):
        learned.append(partition)
        if len(learned) == 30:
            go_on.wait()
        gevent.sleep(0.001)
        learn(node, partition)

    monkeypatch.setattr(BrokerNode, "learn", learn_slowly)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        core, hub = client.core, client.connection.hub
        for topic in ("before", "t", "gone", "trimmed"):
            client.create(topic, 40)
            for number in range(20):
                client.produce(topic, b"first", partition=number)
        client.call("delete_topics", ["before"])
        joining = hub.run(gevent.spawn, core._presence.join)
        for number in range(40):
            client.produce("t", b"second", partition=39 - number)
            if number == 10:
                client.call("delete_records", {("trimmed", 0): 1, ("trimmed", 19): 1})
                client.call("delete_topics", ["gone"])
            if number == 20:
                assert not joining.ready()
                hub.run(go_on.set)
        hub.run(joining.get)
        led = {
            (partition.topic.octets, partition.address): partition
            for topic in core._topics
            for partition in topic.partitions
            if partition.next_sequence
        }
        assert core.node.role.positions == {
            names: (partition.stored.first_sequence, partition.next_sequence, partition.next_sequence)
            for names, partition in led.items()
        }
        assert len(led) == 60
        assert set(core.node._heading) == set(led.values())
        assert core.node.metrics()["records_in"] == 4 * 20 + 40


def test_a_node_that_asks_for_very_many_heads_is_told_them_all(broker, client, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "HEADS_AT_ONCE", 7)
    client.create("t", 600)
    client.call("produce", {("t", number): [batch(b"x")] for number in range(600)})
    with Store(tmp_path / "store", tower=broker.tower) as store:
        addresses = {address for address, _ in client.partitions("t")}
        until(lambda: {address for _, address in store.heads()} == addresses)


def test_records_and_heads_under_a_leaders_address_are_dropped_and_counted(broker, client):
    client.create("t")
    client.produce("t", b"a")
    address = client.partitions("t")[0][0].encode()
    impostor = Listener(client, b"other")
    impostor.publish(Run(None, address, b"t", 1, [batch(b"forged"), b"raw"]), Head(address, b"t", 100))
    until(lambda: broker.discarded.get("leader-address") == 3)
    me = client.core.node.role.address
    impostor.publish(DirectHead(me, address, b"t", 0), DirectHead(me, address, b"t", 100))
    until(lambda: broker.discarded.get("leader-address") == 4)  # the first of them is what a store may say
    assert client.core.node.metrics()["lag"] == 0
    assert client.values("t") == [b"a"]
    assert client.produce("t", b"b").base_offset == 1


def test_a_fetch_from_a_deleted_topic_is_told_so_also_after_a_restart(tmp_path):
    own = b"0123456789ABCDEF" * 2

    def fetch(broker: Broker, address: str, first: int) -> list[object]:
        listener = Listener(Client(broker), b"other")
        listener.publish(Subscribe(b"T" + own), Fetch(address.encode(), own, b"t", first, 100))
        until(lambda: any(isinstance(one, Trimmed) for one in listener.heard))
        return [one for one in listener.heard if isinstance(one, Trimmed)]

    def store_of(broker: Broker) -> bytes:
        return Client(broker).core.node.role.address

    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"a")
        client.produce("t", b"b")
        address = client.partitions("t")[0][0]
        client.call("delete_topics", ["t"])
        assert fetch(broker, address, 0) == [Trimmed(own, address.encode(), b"t", 2, store_of(broker))]
        assert client.core.node.role.positions == {}
    with Broker(tmp_path) as broker:
        assert fetch(broker, address, 1) == [Trimmed(own, address.encode(), b"t", 2, store_of(broker))]


def test_a_consumer_of_a_deleted_topic_is_told_that_its_records_are_gone(broker, client):
    client.create("t")
    client.produce("t", b"a")
    client.call("delete_topics", ["t"])
    client.create("t")
    client.produce("t", b"new")
    with Consumer(["t"], tower=broker.tower, offset_reset="earliest") as consumer:
        assert [record.value for record in take(consumer, 1)] == [b"new"]


def test_a_head_that_is_due_when_the_node_closes_is_not_published(client, monkeypatch):
    """It would be looked up in a log that is closed by then."""
    client.create("t")
    client.produce("t", b"a")
    broker_node, heads = client.core.node, []
    until(lambda: broker_node._heading)

    def publish(_node: object, outputs: list[object]) -> None:
        heads.extend(one for one in outputs if isinstance(one, Head) and broker_node.closed)

    def close_in_between() -> None:
        monkeypatch.setattr(broker_node.endpoint, "publish", publish)
        heading = gevent.spawn(broker_node._head)
        gevent.sleep(node._PAUSE / 2)
        broker_node.closed = True
        heading.join(100)
        broker_node.closed = False
        assert heading.ready()

    client.connection.hub.run(close_in_between)
    assert not heads
