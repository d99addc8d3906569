"""The picture of a mesh is made of the messages heard in it."""

from __future__ import annotations

import pytest

from dafka.console import limits
from dafka.console.networks.picture import Picture
from dafka.mesh.observer import Heard, Seen
from dafka.protocol.commands import (
    Ack,
    ConsumerHello,
    DirectHead,
    Fetch,
    GetHeads,
    Head,
    Trimmed,
)

TOPIC, PARTITION = b"hello", b"A" * 32
STORE, OTHER, CONSUMER = b"5" * 32, b"6" * 32, b"C" * 32
AT_STORE, AT_OTHER = ("10.0.0.5", 5000), ("10.0.0.6", 6000)


def seen(*prefixes: bytes, here=None, peers=None) -> Seen:
    return Seen((("tcp://t:1", "tcp://t:2"),), True, peers or {}, set(prefixes), here or {})


def partition(picture: Picture, now: float = 100.0):
    (row,) = picture.rows(now, "", 10)["partitions"]
    return row


def node(picture: Picture, address: bytes, now: float = 100.0):
    return {one["address"]: one for one in picture.rows(now, "", 10)["nodes"]}[address.decode()]


@pytest.fixture
def picture():
    picture = Picture()
    picture.see(seen(b"W" + STORE, b"W" + OTHER, b"L" + CONSUMER, b"K" + PARTITION))
    return picture


def test_a_store_falls_behind_and_catches_up(picture):
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 9), ("p", 1)))
    picture.hear(Heard(1.0, Ack(PARTITION, TOPIC, 9, STORE), AT_STORE))
    picture.hear(Heard(1.0, Ack(PARTITION, TOPIC, 4, OTHER), AT_OTHER))
    assert [(one["end"], one["behind"]) for one in partition(picture)["stores"]] == [(10, 0), (5, 5)]
    picture.hear(Heard(2.0, Fetch(PARTITION, OTHER, TOPIC, 5, 100), AT_OTHER))
    picture.hear(Heard(3.0, Fetch(PARTITION, OTHER, TOPIC, 5, 100), AT_OTHER))
    (asked,) = partition(picture)["fetching"]
    assert (asked["from"], asked["times"], asked["seconds"]) == (5, 2, 1.0)
    assert node(picture, OTHER)["behind"] == 5
    picture.hear(Heard(4.0, Ack(PARTITION, TOPIC, 9, OTHER), AT_OTHER))
    row = partition(picture)
    assert not row["fetching"] and [one["behind"] for one in row["stores"]] == [0, 0]
    assert node(picture, OTHER)["behind"] == 0


def test_an_answer_to_get_heads_is_that_of_the_store_that_speaks_from_there(picture):
    picture.hear(Heard(1.0, GetHeads(b"", STORE), AT_STORE))
    picture.hear(Heard(1.0, DirectHead(b"me", PARTITION, TOPIC, 6), AT_STORE))
    picture.hear(Heard(1.0, DirectHead(b"me", PARTITION, TOPIC, 8), AT_OTHER))  # its name is not known
    assert partition(picture)["stores"] == [{"store": STORE.decode(), "end": 7, "behind": 2}]
    assert partition(picture)["end"] == 9


def test_followers_and_trimmed_records(picture):
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 9), None))
    picture.hear(Heard(1.0, Trimmed(CONSUMER, PARTITION, TOPIC, 3, STORE), AT_STORE))
    assert partition(picture)["first"] == 3 and not partition(picture)["followers"]
    picture.hear(Heard(1.0, ConsumerHello(b"me", CONSUMER, (TOPIC,)), ("c", 1)))
    assert partition(picture)["followers"] == [CONSUMER.decode()]
    assert node(picture, CONSUMER)["topics"] == ["hello"] and node(picture, CONSUMER)["kind"] == "consumer"


def test_a_broker_is_the_store_that_speaks_for_a_partition_without_a_producer():
    picture = Picture({STORE: "this broker"})
    picture.see(seen(b"W" + STORE, b"W" + OTHER, here={STORE: {TOPIC}}))
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 9), None))
    picture.hear(Heard(1.0, Ack(PARTITION, TOPIC, 9, OTHER), AT_OTHER))
    row = partition(picture)
    assert row["led_by"] == STORE.decode() and not row["producer"] and row["process"] == "here"
    assert node(picture, STORE)["name"] == "this broker"
    assert node(picture, OTHER)["process"] == "10.0.0.6:6000"


def test_a_node_that_has_gone_is_shown_for_a_while_and_then_forgotten(picture, monkeypatch):
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 9), None))
    picture.hear(Heard(1.0, Ack(PARTITION, TOPIC, 9, OTHER), AT_OTHER))
    picture.see(seen(b"W" + STORE, b"K" + PARTITION))
    picture.count(2.0)
    assert not node(picture, OTHER)["present"] and len(partition(picture)["stores"]) == 1
    picture.count(2.0 + limits.MESH_AWAY_SECONDS)
    assert OTHER.decode() not in {one["address"] for one in picture.rows(1.0, "", 10)["nodes"]}
    assert not partition(picture)["stores"]


def test_rates_are_what_came_since(picture):
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 99), None))
    picture.count(10.0)
    picture.hear(Heard(1.0, Head(PARTITION, TOPIC, 199), None))
    picture.count(12.0)
    assert partition(picture)["rate"] == 50.0


def test_no_table_grows_without_a_bound(picture, monkeypatch):
    monkeypatch.setattr(limits, "MESH_PARTITIONS", 3)
    monkeypatch.setattr(limits, "MESH_NODES", 4)
    monkeypatch.setattr(limits, "MESH_NODES_OF_ONE", 2)
    monkeypatch.setattr(limits, "MESH_TOPICS", 2)
    for number in range(10):
        name = b"%032d" % number
        picture.hear(Heard(1.0, Head(name, b"t%d" % number, 1), None))
        picture.hear(Heard(1.0, Ack(name, b"t0", 1, name), AT_STORE))
        picture.hear(Heard(1.0, Ack(b"%032d" % 0, b"t0", 1, name), AT_STORE))
        picture.hear(Heard(1.0, Fetch(b"%032d" % 0, name, b"t0", number, 1), AT_STORE))
        picture.hear(Heard(1.0, GetHeads(b"t%d" % number, CONSUMER), AT_STORE))
    rows = picture.rows(1.0, "", 10)
    assert rows["total_partitions"] == 3 and rows["total_nodes"] == 4 and rows["left_out"] > 0
    assert all(len(one["stores"]) <= 2 and len(one["fetching"]) <= 2 for one in rows["partitions"])
    assert len(node(picture, CONSUMER)["topics"]) == 2


def test_the_partitions_in_which_most_is_missing_come_first(picture):
    for number in range(5):
        name = b"%032d" % number
        picture.hear(Heard(1.0, Head(name, b"t%d" % number, 99), None))
        picture.hear(Heard(1.0, Ack(name, b"t%d" % number, 99 - number, STORE), AT_STORE))
    rows = picture.rows(1.0, "", 2)
    assert [one["topic"] for one in rows["partitions"]] == ["t3", "t4"]
    assert rows["matching_partitions"] == 5
    assert [one["topic"] for one in picture.rows(1.0, "T1", 2)["partitions"]] == ["t1"]


def test_metrics_are_asked_for_where_the_mesh_was_heard_alone(picture):
    def at(*places):
        peers = {bytes([number]) * 32: place for number, place in enumerate(places)}
        told = seen(b"W" + STORE, b"L" + CONSUMER, peers=peers)
        picture.see(told._replace(metrics={STORE: 9100, CONSUMER: 9101}))
        return picture.metrics_at(STORE), picture.metrics_at(CONSUMER)

    assert at(b"tcp://10.0.0.5:5000") == (None, None)  # a beacon is all that is known
    picture.hear(Heard(1.0, Ack(PARTITION, TOPIC, 9, STORE), AT_STORE))
    assert at(b"tcp://10.0.0.5:5000") == (("10.0.0.5", 9100), ("10.0.0.5", 9101))
    assert at(b"tcp://10.0.0.9:80") == (("10.0.0.5", 9100), None)
    assert at(b"tcp://10.0.0.5:5000", b"tcp://10.0.0.9:80") == (("10.0.0.5", 9100), None)
    assert picture.metrics_at(OTHER) is None
