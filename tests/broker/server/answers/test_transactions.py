"""Transactions: errors by version, and the filters of ListTransactions."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaStorageError,
    NotCoordinatorError,
    OperationNotAttemptedError,
    ProducerFencedError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

from dafka.log import LogWriteError


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("init", 3, InvalidProducerEpochError),
        ("init", 4, ProducerFencedError),
        ("add partitions", 1, InvalidProducerEpochError),
        ("add partitions", 2, ProducerFencedError),
        ("add offsets", 1, InvalidProducerEpochError),
        ("add offsets", 2, ProducerFencedError),
        ("end", 1, InvalidProducerEpochError),
        ("end", 2, ProducerFencedError),
    ],
)
def test_a_fenced_producer_gets_an_error_that_its_version_knows(
    client: Client, name: str, version: int, error: Any
):
    client.create("topic")
    identity = client.call("init_producer_id", "payments", 60.0)
    client.call("init_producer_id", "payments", 60.0)
    who = {"producer_id": identity.producer_id, "producer_epoch": identity.epoch}
    if name == "init":
        request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=1000, **who)
        code = answered(client, request, version).error_code
    elif name == "add partitions":
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="topic", partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="payments",
            **{f"v3_and_below_{field}": value for field, value in who.items()},
            v3_and_below_topics=[topic],
        )
        (topic_answer,) = answered(client, request, version).results_by_topic_v3_and_below
        code = topic_answer.results_by_partition[0].partition_error_code
    elif name == "add offsets":
        request = AddOffsetsToTxnRequest(transactional_id="payments", group_id="group", **who)
        code = answered(client, request, version).error_code
    else:
        request = EndTxnRequest(transactional_id="payments", committed=True, **who)
        code = answered(client, request, version).error_code
    assert code == error.errno


def test_a_coordinator_that_cannot_write_is_to_be_looked_for_again(client: Client, monkeypatch):
    """As with Kafka: clients try again then. Of another error of its disk they know nothing, and give up."""
    client.create("topic")
    identity = client.call("init_producer_id", "payments", 60.0)
    who = {"producer_id": identity.producer_id, "producer_epoch": identity.epoch}
    part = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=None
    )
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[part])
    adding = AddOffsetsToTxnRequest(transactional_id="payments", group_id="group", **who)
    ending = EndTxnRequest(transactional_id="payments", committed=True, **who)

    def full(*_: object) -> None:
        raise LogWriteError(client.core.log.path, "no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(client.core.log._storage, "commit", full)
        committing = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
        (committed,) = answered(client, committing).topics[0].partitions
        codes = {committed.error_code, answered(client, adding, 3).error_code}
        assert codes == {NotCoordinatorError.errno}
        alone = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
        assert answered(client, alone, 4).error_code in (0, KafkaStorageError.errno)  # nobody's
    assert answered(client, adding, 3).error_code == 0
    with monkeypatch.context() as broken:
        broken.setattr(client.core.log._storage, "commit", full)
        assert answered(client, ending, 3).error_code == NotCoordinatorError.errno
    assert answered(client, ending, 3).error_code == 0


@pytest.mark.parametrize("name", ["", "nobody"])
def test_a_transaction_that_there_is_not_has_no_values(client: Client, name: str):
    (found,) = answered(client, DescribeTransactionsRequest(transactional_ids=[name])).transaction_states
    assert found.error_code and not found.transaction_state and not found.topics
    numbers = found.producer_id, found.producer_epoch, found.transaction_start_time_ms
    assert numbers == (0, 0, 0)  # as in Kafka


def test_an_unknown_state_filter_is_reported(client: Client):
    response = answered(client, ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]), 0)
    assert response.unknown_state_filters == ["Nonsense"]
    assert response.transaction_states == []


def test_it_is_known_when_a_transaction_began_that_is_over_until_its_producer_begins_again(client: Client):
    client.create("topic")
    producer = client.call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert client.call("add_partitions_to_transaction", *who, [("topic", 0)]) == {("topic", 0): None}

    def started() -> float:
        return float(client.call("describe_transactions", ["payments"])["payments"].started)

    began = started()
    assert client.call("end_transaction", *who, True) is None
    assert started() == began > 0
    client.call("init_producer_id", "payments", 60.0)
    assert started() == -1


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["payments-1", "payments-2"]),
        ({"transactional_id_pattern": "pay.*1"}, ["payments-1"]),
        ({"transactional_id_pattern": "pay"}, []),
        ({"transactional_id_pattern": "([a-z]+)+-[12]"}, ["payments-1", "payments-2"]),
        ({"duration_filter": 0}, ["payments-1", "payments-2"]),
        ({"duration_filter": 60_000}, ["payments-1"]),  # as in Kafka: it has not begun
        ({"state_filters": ["Ongoing"]}, ["payments-2"]),
    ],
)
def test_transactions_are_listed_by_their_filters(client: Client, filters: dict[str, Any], found: list[str]):
    client.create("topic")
    client.call("init_producer_id", "payments-1", 60.0)
    producer = client.call("init_producer_id", "payments-2", 60.0)
    who = ("payments-2", producer.producer_id, producer.epoch)
    assert client.call("add_partitions_to_transaction", *who, [("topic", 0)]) == {("topic", 0): None}
    response = answered(client, ListTransactionsRequest(**filters))
    assert sorted(one.transactional_id for one in response.transaction_states) == found


def added(client: Client, version: int, *topics: str, transactions: list[dict[str, Any]]) -> list[int]:
    one = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    asked = [one.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics]
    response = answered(
        client,
        AddPartitionsToTxnRequest(
            transactions=[
                one(**{"producer_epoch": 0, "verify_only": False, "topics": asked, **fields})
                for fields in transactions
            ]
        ),
        version,
    )
    assert response.error_code == 0
    return [
        partition.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for partition in topic.results_by_partition
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_partitions_to_several_transactions_and_ask_about_them(client: Client, version: int):
    client.create("topic")
    ids = {name: client.call("init_producer_id", name, 60.0).producer_id for name in ("a", "b")}
    both = [{"transactional_id": name, "producer_id": number} for name, number in ids.items()]
    asking = [{**one, "verify_only": True} for one in both]
    missing = TransactionAbortableError.errno
    assert added(client, version, "topic", transactions=asking) == [missing, missing]
    assert added(client, version, "topic", transactions=[both[0], asking[1]]) == [0, missing]
    assert added(client, version, "topic", transactions=asking) == [0, missing]
    assert added(client, version, "topic", "none", transactions=both[1:]) == [
        OperationNotAttemptedError.errno,
        UnknownTopicOrPartitionError.errno,
    ]


def test_an_end_of_version_5_answers_with_the_next_epoch(client: Client):
    client.create("topic")
    identity = client.call("init_producer_id", "payments", 60.0)
    who = {"producer_id": identity.producer_id, "producer_epoch": 0}

    def end(version: int, **changed: Any) -> Any:
        request = EndTxnRequest(transactional_id="payments", committed=False, **{**who, **changed})
        found = answered(client, request, version)
        return found.error_code, found.producer_id, found.producer_epoch

    assert end(5) == (0, identity.producer_id, 1)
    assert end(5, producer_epoch=9) == (ProducerFencedError.errno, -1, -1)
    assert end(4, producer_epoch=1)[0] == 0
