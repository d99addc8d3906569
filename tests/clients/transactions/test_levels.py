"""Transactions at the levels of the feature transaction.version, and markers by hand, as in Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from broker.server.client import WireClient
from clients.transactions.test_versions import ABORT, COMMIT, Address, Producer, retried, word
from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, WriteTxnMarkersRequest
from timing import until

UP, DOWN = 1, 2
UNSUPPORTED = "UnsupportedVersion"


@pytest.fixture
def wire(servers: str) -> Iterator[WireClient]:
    with WireClient(Address(servers)) as client:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        retried(lambda: word(client.ask(find, 4).coordinators[0].error_code))
        yield client


@contextmanager
def level(wire: WireClient, wanted: int) -> Iterator[None]:
    """Levels of the feature; 2 afterwards."""
    set_level(wire, wanted, DOWN)
    try:
        yield
    finally:
        set_level(wire, 2, UP)


def set_level(wire: WireClient, wanted: int, kind: int) -> None:
    key = UpdateFeaturesRequest.FeatureUpdateKey
    update = key(
        feature="transaction.version", max_version_level=wanted, allow_downgrade=False, upgrade_type=kind
    )
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update], validate_only=False)
    assert wire.ask(request, 1).error_code == 0

    def found() -> int:
        asked = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        features = wire.ask(asked, 4).finalized_features
        return next((one.max_version_level for one in features if one.name == "transaction.version"), 0)

    until(lambda: found() == wanted, f"transaction.version is {wanted}")


def added_by_a_broker(producer: Producer) -> str:
    """What the whole answer says."""
    many = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    topic = many.AddPartitionsToTxnTopic(name=producer.topic, partitions=[0])
    one = many(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=0,
        verify_only=False,
        topics=[topic],
    )
    response = producer.wire.ask(AddPartitionsToTxnRequest(transactions=[one]), 5)
    return word(response.error_code) or "added"


def test_at_level_0_nothing_of_newer_transactions_is_taken(wire: WireClient, topic: str) -> None:
    """Nothing that has to be noted; what was begun before goes on as far as it needs no more."""
    newer, committing, older, *fresh = (Producer(wire, topic) for _ in range(9))
    assert [newer.write(0, 0), committing.offset(0)] == ["written", "noted"]
    with level(wire, 0):
        assert [newer.write(0, 1), newer.write(0, 0, 1), newer.state()] == [
            "written",
            UNSUPPORTED,
            "Ongoing 0",
        ]
        assert [committing.offset(0), committing.end(0, ABORT)] == ["noted", UNSUPPORTED]
        assert [fresh[0].write(0, 0), fresh[0].state()] == [UNSUPPORTED, "Empty 0"]
        assert [fresh[1].offset(0), fresh[1].state()] == [UNSUPPORTED, "Empty 0"]
        assert [added_by_a_broker(fresh[2]), fresh[2].state()] == [UNSUPPORTED, "Empty 0"]
        assert [fresh[3].end(0, COMMIT), fresh[3].end(0, ABORT)] == ["InvalidTxnState", UNSUPPORTED]
        for commit in (COMMIT, ABORT):
            assert [older.add(0), older.write(0, 0, version=11)] == ["added", "written"]
            assert [older.end(0, commit, 4), older.init(0)] == ["ended", "1"]
            older = fresh[4]
        assert [fresh[5].add(0), fresh[5].add(0, version=4, verify=True)] == ["added", "added"]
        assert [fresh[5].write(0, 0), fresh[5].end(0, COMMIT)] == ["written", UNSUPPORTED]


def test_below_level_2_a_producer_that_begins_again_is_fenced_by_the_end_of_its_transaction(
    wire: WireClient, topic: str
) -> None:
    with level(wire, 1):
        producer = Producer(wire, topic)
        assert [producer.write(0, 0), producer.init(0), producer.state()] == [
            *("written", "ProducerFenced", "CompleteAbort 1")
        ]
        assert [producer.init(-1), producer.write(2, 0), producer.end(2, COMMIT)] == ["2", "written", "3"]


def mark(wire: WireClient, *markers: tuple[int, int, list[tuple[str, list[int]]]], version: int = 2) -> Any:
    """The answers by producer id; ``version`` is that of the transactions."""
    kind = WriteTxnMarkersRequest.WritableTxnMarker
    request = WriteTxnMarkersRequest(
        markers=[
            kind(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=COMMIT,
                topics=[kind.WritableTxnMarkerTopic(name=name, partition_indexes=at) for name, at in topics],
                coordinator_epoch=0,
                transaction_version=version,
            )
            for producer_id, epoch, topics in markers
        ]
    )
    return {
        one.producer_id: {
            (topic.name, each.partition_index): word(each.error_code) or "marked"
            for topic in one.topics
            for each in topic.partitions
        }
        for one in wire.ask(request, 2).markers
    }


def test_answers_to_markers_are_by_producer_and_of_partitions(wire: WireClient, topic: str) -> None:
    one, two = 880_001, 880_002
    nowhere = "UnknownTopicOrPartition"
    assert mark(wire, (one, 3, []), version=0) == mark(wire, (one, 3, [(topic, [])]), version=0) == {}
    marked = mark(wire, (one, 3, []), (two, 3, [(topic, [0])]), (two, 3, [(topic, [1, 9])]), version=0)
    assert marked == {two: {(topic, 0): "marked", (topic, 1): "marked", (topic, 9): nowhere}}
    assert mark(wire, (two, 2, [(topic, [0])]), version=0) == {two: {(topic, 0): "InvalidProducerEpoch"}}
    unknown = {one: {(topic, 0): "Unknown"}, two: {(topic, 1): "Unknown"}}
    assert mark(wire, (one, -1, [(topic, [0])]), (two, 4, [(topic, [1])])) == unknown
    assert mark(wire, (one, -1, [(topic, [9])])) == {one: {(topic, 9): nowhere}}
    assert mark(wire, (-1, 4, [(topic, [0])])) == {-1: {(topic, 0): "Unknown"}}
    assert mark(wire, (one, 4, [(topic, [0])]), version=-1) == {one: {(topic, 0): "Unknown"}}


def test_a_marker_of_version_2_is_above_the_epoch_of_the_records(producer: Producer) -> None:
    def marked(epoch: int, version: int = 2) -> str:
        who = producer.producer_id, epoch, [(producer.topic, [0])]
        found: str = mark(producer.wire, who, version=version)[producer.producer_id][producer.topic, 0]
        return found

    assert producer.write(0, 0) == "written"
    assert [marked(0), marked(1), marked(1), marked(0), marked(1, 0)] == [
        *("InvalidProducerEpoch", "marked", "marked", "InvalidProducerEpoch", "marked")
    ]


@pytest.fixture
def producer(wire: WireClient, topic: str) -> Producer:
    return Producer(wire, topic)
