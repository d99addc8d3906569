"""Both protocols of transactions request by request: every broker gives the answers of Apache Kafka 4.3."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from broker.clients import batch
from broker.server.client import WireClient
from kafka.errors import for_code
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from timing import until

from dafka.protocol.batch import with_producer

SECONDS = 60
LATER = ("CoordinatorNotAvailable", "NotCoordinator", "CoordinatorLoadInProgress", "ConcurrentTransactions")
COMMIT, ABORT = True, False


class Address:
    def __init__(self, servers: str) -> None:
        self.bootstrap_servers = servers


class Producer:
    """A transactional id and its producer; its calls name the epoch, and return the word for their error."""

    def __init__(self, wire: WireClient, topic: str, timeout_ms: int = 60_000) -> None:
        self.wire, self.topic, self.timeout_ms = wire, topic, timeout_ms
        self.id = f"versions-{uuid.uuid4().hex[:8]}"
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.id])
        retried(lambda: word(wire.ask(find, 4).coordinators[0].error_code))
        self.producer_id = -1
        assert self.init(-1) == "0"
        self.producer_id = self.given[0]

    def init(self, epoch: int) -> str:
        def ask() -> str:
            request = InitProducerIdRequest(
                transactional_id=self.id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=self.producer_id if epoch >= 0 else -1,
                producer_epoch=epoch,
            )
            response = self.wire.ask(request, 5)
            self.given = response.producer_id, response.producer_epoch
            return word(response.error_code) or str(response.producer_epoch)

        return retried(ask)

    def end(self, epoch: int, commit: bool, version: int = 5) -> str:
        def ask() -> str:
            request = EndTxnRequest(
                transactional_id=self.id,
                producer_id=self.producer_id,
                producer_epoch=epoch,
                committed=commit,
            )
            response = self.wire.ask(request, version)
            if version < 5 or response.error_code:
                return word(response.error_code) or "ended"
            assert response.producer_id == self.producer_id
            return str(response.producer_epoch)

        return retried(ask)

    def write(self, epoch: int, sequence: int, partition: int = 0, version: int = 12) -> str:
        def ask() -> str:
            content = with_producer(batch(b"x"), self.producer_id, epoch, sequence, transactional=True)
            data = ProduceRequest.TopicProduceData
            one = data.PartitionProduceData(index=partition, records=content)
            request = ProduceRequest(
                transactional_id=self.id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[data(name=self.topic, partition_data=[one])],
            )
            (topic,) = self.wire.ask(request, version).responses
            return word(topic.partition_responses[0].error_code) or "written"

        return retried(ask)

    def add(self, epoch: int, partition: int = 0, version: int = 3, verify: bool = False) -> str:
        def ask() -> str:
            many = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
            single = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[single(name=self.topic, partitions=[partition])],
                transactions=[
                    many(
                        transactional_id=self.id,
                        producer_id=self.producer_id,
                        producer_epoch=epoch,
                        verify_only=verify,
                        topics=[many.AddPartitionsToTxnTopic(name=self.topic, partitions=[partition])],
                    )
                ],
            )
            response = self.wire.ask(request, version)
            if version < 4:
                (topic,) = response.results_by_topic_v3_and_below
            else:
                (topic,) = response.results_by_transaction[0].topic_results
            return word(topic.results_by_partition[0].partition_error_code) or "added"

        return retried(ask)

    def offset(self, epoch: int, version: int = 5, group: str = "g", **member: Any) -> str:
        def ask() -> str:
            topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
            one = topic.TxnOffsetCommitRequestPartition(
                partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata=""
            )
            request = TxnOffsetCommitRequest(
                transactional_id=self.id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=epoch,
                topics=[topic(name=self.topic, partitions=[one])],
                **{"generation_id": -1, "member_id": "", "group_instance_id": None, **member},
            )
            (answer,) = self.wire.ask(request, version).topics
            return word(answer.partitions[0].error_code) or "noted"

        return retried(ask)

    def state(self) -> str:
        def ask() -> str:
            (found,) = self.wire.ask(
                DescribeTransactionsRequest(transactional_ids=[self.id]), 0
            ).transaction_states
            preparing = found.transaction_state.startswith("Prepare")
            return LATER[-1] if preparing else f"{found.transaction_state} {found.producer_epoch}"

        return retried(ask)


def word(code: int) -> str:
    return for_code(code).__name__.removesuffix("Error") if code else ""


def retried(ask: Any) -> str:
    deadline = time.monotonic() + SECONDS
    while True:
        found: str = ask()
        if found not in LATER or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


@pytest.fixture
def wire(servers: str) -> Any:
    with WireClient(Address(servers)) as client:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        retried(lambda: word(client.ask(find, 4).coordinators[0].error_code))
        yield client


@pytest.fixture
def producer(wire: WireClient, topic: str) -> Producer:
    return Producer(wire, topic)


def test_an_end_of_nothing(producer: Producer) -> None:
    assert producer.end(0, COMMIT, version=4) == producer.end(0, ABORT, version=4) == "InvalidTxnState"
    assert producer.end(0, COMMIT) == "InvalidTxnState"
    assert producer.state() == "Empty 0"
    assert [producer.end(0, ABORT), producer.end(0, ABORT), producer.end(1, ABORT)] == ["1", "1", "2"]
    assert producer.state() == "CompleteAbort 2"


def test_a_transaction_whose_end_raises_the_epoch(producer: Producer) -> None:
    assert producer.write(0, 0) == "written"
    assert producer.state() == "Ongoing 0"
    assert producer.end(0, COMMIT) == "1"
    assert [producer.end(0, COMMIT), producer.end(0, ABORT)] == ["1", "InvalidTxnState"]
    late = [producer.write(0, 1), producer.write(0, 0), producer.write(0, 1, version=11), producer.offset(0)]
    assert late == ["InvalidProducerEpoch"] * 4
    assert [producer.add(0), producer.end(0, COMMIT, version=4)] == ["ProducerFenced"] * 2
    assert [producer.end(1, COMMIT), producer.end(1, ABORT)] == ["InvalidTxnState", "2"]
    assert [producer.write(2, 5), producer.write(2, 0), producer.write(2, 0)] == [
        *("OutOfOrderSequenceNumber", "written", "written")
    ]
    assert [producer.write(2, 3, 1), producer.write(2, 0, 1)] == ["OutOfOrderSequenceNumber", "written"]
    assert [producer.end(2, ABORT), producer.state()] == ["3", "CompleteAbort 3"]
    assert [producer.write(9, 0), producer.end(9, COMMIT)] == ["InvalidProducerEpoch", "ProducerFenced"]
    assert [producer.init(3), producer.init(3), producer.init(2)] == ["4", "4", "ProducerFenced"]
    producer.producer_id += 77_777
    assert [producer.write(3, 0), producer.end(3, COMMIT)] == ["InvalidProducerIdMapping"] * 2


def test_partitions_not_added_are_refused_as_the_version_knows_it(producer: Producer) -> None:
    assert [producer.write(0, 0, version=version) for version in (3, 10, 11)] == [
        *("InvalidTxnState", "InvalidTxnState", "TransactionAbortable")
    ]
    assert [producer.offset(0, version) for version in (0, 3, 4)] == [
        *("InvalidTxnState", "InvalidTxnState", "TransactionAbortable")
    ]
    assert producer.state() == "Empty 0"


def test_no_batch_overtakes_one_that_was_refused(producer: Producer) -> None:
    def write(*sequences: int) -> list[str]:
        return [producer.write(0, sequence, version=10) for sequence in sequences]

    assert [*write(3), producer.add(0), *write(5, 3, 4)] == [
        *("InvalidTxnState", "added", "OutOfOrderSequenceNumber", "written", "written")
    ]
    assert [producer.end(0, COMMIT, 4), producer.add(0)] == ["ended", "added"]
    assert write(7, 4, 5) == ["OutOfOrderSequenceNumber", "written", "OutOfOrderSequenceNumber"]
    assert [producer.end(0, ABORT, 4), producer.add(0)] == ["ended", "added"]
    assert write(5, 7, 6) == ["written", "OutOfOrderSequenceNumber", "written"]
    newer = [producer.write(0, 3, 1, version=11), producer.write(0, 4, 1), producer.write(0, 2, 1)]
    assert newer == ["TransactionAbortable", "OutOfOrderSequenceNumber", "written"]


def test_the_last_timestamp_of_a_producer_is_its_records_or_that_of_the_end(producer: Producer) -> None:
    before = int(time.time() * 1000)
    kind = DescribeProducersRequest.TopicRequest
    request = DescribeProducersRequest(topics=[kind(name=producer.topic, partition_indexes=[0])])

    def last_timestamp() -> int:
        (topic,) = producer.wire.ask(request, 0).topics
        (known,) = topic.partitions[0].active_producers
        found: int = known.last_timestamp
        return found

    assert [producer.write(0, 0), last_timestamp()] == ["written", 1000]  # the samples' own
    assert producer.end(0, COMMIT) == "1"
    until(lambda: last_timestamp() >= before)


def test_offsets_begin_a_transaction(producer: Producer) -> None:
    assert [producer.offset(7), producer.state()] == ["InvalidProducerEpoch", "Empty 0"]
    nobody = {"generation_id": 4, "member_id": "nobody"}
    assert producer.offset(0, group=f"{producer.id}-g", **nobody) == "IllegalGeneration"
    assert [producer.offset(0), producer.state(), producer.end(0, COMMIT)] == ["noted", "Ongoing 0", "1"]
    assert producer.state() == "CompleteCommit 1"  # Apache Kafka takes offsets until its markers are written
    assert producer.offset(0, version=4) == "InvalidProducerEpoch"


def test_a_group_is_there_with_offsets_of_an_open_transaction(producer: Producer) -> None:
    group, member = f"{producer.id}-g", {"generation_id": 4, "member_id": "nobody"}

    def groups() -> list[str]:
        response = producer.wire.ask(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
        return [one.group_state for one in response.groups if one.group_id == group]

    def delete() -> str:
        (answer,) = producer.wire.ask(DeleteGroupsRequest(groups_names=[group]), 2).results
        return word(answer.error_code) or "deleted"

    def committed() -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=producer.topic, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
        (answer,) = producer.wire.ask(request, 7).topics
        found: int = answer.partitions[0].committed_offset
        return found

    assert [groups(), producer.offset(0, group=group, **member)] == [[], "IllegalGeneration"]
    assert [producer.offset(0, group=group), groups()] == ["noted", ["Empty"]]
    assert producer.offset(0, group=group, **member) == "UnknownMemberId"
    assert [delete(), groups(), delete()] == ["deleted", [], "GroupIdNotFound"]
    assert producer.end(0, COMMIT) == "1"
    assert [groups(), committed()] == [[], -1]
    assert [producer.offset(1, group=group), producer.end(1, ABORT)] == ["noted", "2"]
    assert [groups(), delete()] == [["Empty"], "deleted"]
    assert [producer.offset(2, group=group), producer.end(2, COMMIT), producer.state()] == [
        *("noted", "3", "CompleteCommit 3")
    ]
    until(lambda: committed() == 5)


def test_an_older_client_after_a_newer_one(producer: Producer) -> None:
    assert [producer.write(0, 0), producer.end(0, COMMIT)] == ["written", "1"]
    assert [producer.end(1, COMMIT, 4), producer.end(1, ABORT, 4)] == ["ended", "InvalidTxnState"]
    assert [producer.init(0), producer.state()] == ["1", "Empty 1"]
    assert [producer.add(1), producer.write(1, 0, version=11), producer.end(1, COMMIT, 4)] == [
        *("added", "written", "ended")
    ]
    assert [producer.end(1, COMMIT, 4), producer.end(1, COMMIT), producer.end(1, ABORT)] == [
        *("ended", "InvalidTxnState", "2")
    ]


def test_questions_of_brokers(producer: Producer) -> None:
    for partition, version in enumerate((4, 5)):
        where = partition, version
        assert producer.add(0, *where, verify=True) == "TransactionAbortable"
        assert [producer.add(0, *where), producer.add(0, *where, verify=True)] == ["added", "added"]
        assert [producer.add(4, *where), producer.add(4, *where, verify=True)] == ["ProducerFenced"] * 2


def test_a_newer_producer_fences_an_older_one(producer: Producer) -> None:
    assert [producer.write(0, 0), producer.init(-1), producer.state()] == ["written", "2", "Empty 2"]
    assert [producer.write(0, 1), producer.offset(0)] == ["InvalidProducerEpoch"] * 2
    assert [producer.end(0, COMMIT), producer.end(0, COMMIT, 4), producer.init(0)] == ["ProducerFenced"] * 3


def test_a_producer_takes_the_next_epoch_in_a_transaction(producer: Producer) -> None:
    assert [producer.write(0, 0), producer.init(0), producer.init(0), producer.state()] == [
        *("written", "1", "1", "Empty 1")
    ]


def test_a_producer_with_another_epoch_is_refused_and_ends_what_is_open(producer: Producer) -> None:
    assert [producer.write(0, 0), producer.init(7), producer.state()] == [
        *("written", "ProducerFenced", "CompleteAbort 1")
    ]
    assert [producer.write(0, 1), producer.end(0, COMMIT), producer.end(0, ABORT)] == [
        *("InvalidProducerEpoch", "InvalidTxnState", "1")
    ]
    assert [producer.init(7), producer.state()] == ["ProducerFenced", "CompleteAbort 1"]  # nothing is open
    assert [producer.init(0), producer.write(1, 0)] == ["1", "written"]
    assert [producer.init(0), producer.state(), producer.init(0)] == [  # also the epoch before
        *("ProducerFenced", "CompleteAbort 2", "ProducerFenced")
    ]
    assert [producer.init(1), producer.state(), producer.end(1, COMMIT)] == ["2", "Empty 2", "ProducerFenced"]
    own = producer.producer_id
    assert producer.write(2, 0) == "written"
    producer.producer_id += 77_777
    assert producer.init(2) == "ProducerFenced"
    producer.producer_id = own
    assert [producer.state(), producer.end(2, COMMIT)] == ["Ongoing 2", "3"]


def test_an_older_client_is_refused_with_another_epoch_alike(producer: Producer) -> None:
    assert [producer.add(0), producer.write(0, 0, version=11), producer.init(5), producer.state()] == [
        *("added", "written", "ProducerFenced", "CompleteAbort 1")
    ]
    assert [producer.end(0, COMMIT, 4), producer.init(0), producer.state()] == [
        *("ProducerFenced", "1", "Empty 1")
    ]


def test_a_producer_that_is_too_slow_may_abort_and_goes_on(wire: WireClient, topic: str) -> None:
    slow, older = Producer(wire, topic, 1000), Producer(wire, topic, 1000)
    assert [slow.write(0, 0), older.add(0), older.write(0, 0, version=11)] == ["written", "added", "written"]
    for producer in (slow, older):
        deadline = time.monotonic() + SECONDS  # Apache Kafka looks every ten seconds
        while producer.state() != "CompleteAbort 1" and time.monotonic() < deadline:
            time.sleep(0.1)
    assert [slow.write(0, 1), slow.end(0, COMMIT), slow.end(0, ABORT)] == [
        *("InvalidProducerEpoch", "InvalidTxnState", "1")
    ]
    assert [older.end(0, COMMIT, 4), older.end(0, ABORT, 4), older.init(0)] == [
        *("ProducerFenced", "ProducerFenced", "1")
    ]
