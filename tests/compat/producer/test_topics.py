"""The topics that a producer knows, and which partition a record goes to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from uuid import uuid4

import pytest
from kafka.errors import UnknownTopicOrPartitionError
from kafka.partitioner import murmur2
from kafka.structs import TopicPartition

from compat.kafka import KafkaProducer
from compat.kafka.producer import _topics
from compat.kafka.producer._batches import PartitionQueue
from compat.kafka.producer._topics import ClusterView, Topics
from dafka.broker.interface.topics import Metadata, PartitionMetadata, TopicMetadata
from dafka.hub.hub import get_hub
from tests.compat.producer.queues import Accumulator

Producers = Callable[..., KafkaProducer]


def test_a_key_goes_where_kafkas_hash_sends_it(producer: KafkaProducer, four: str) -> None:
    keys = [b"%d" % number for number in range(200)] + [b"", b"x" * 300]
    futures = [(key, producer.send(four, b"v", key=key)) for key in keys * 2]
    for key, future in futures:
        assert future.get(100).partition == (murmur2(key) & 0x7FFFFFFF) % 4


def test_records_without_key_go_to_all_partitions(producer: KafkaProducer, four: str) -> None:
    futures = [producer.send(four, b"v") for _ in range(400)]
    counts = Counter(future.get(100).partition for future in futures)
    assert set(counts) == {0, 1, 2, 3} and min(counts.values()) > 40


def test_partitions_for_names_the_partitions(producer: KafkaProducer, four: str) -> None:
    assert producer.partitions_for(four) == {0, 1, 2, 3}
    assert producer.partitions_for("made-now") == {0}


def test_new_partitions_are_noticed(new_producer: Producers, broker) -> None:  # type: ignore[no-untyped-def]
    from compat.kafka import KafkaAdminClient

    producer = new_producer(metadata_max_age_ms=20)
    assert producer.partitions_for("t") == {0}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({"t": 3})
    deadline = time.monotonic() + 100
    while producer.partitions_for("t") != {0, 1, 2} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert producer.send("t", b"v", partition=2).get(100).partition == 2


# -- metadata -----------------------------------------------------------------------------------


def metadata(**partitions: list[tuple[int, bool]] | None) -> Metadata:
    """Topics with the numbers of their partitions, and whether each can be written to; None: unknown."""
    topics = {
        name: TopicMetadata(
            name,
            uuid4(),
            UnknownTopicOrPartitionError if numbers is None else None,
            [PartitionMetadata(number, "address", writable) for number, writable in numbers or ()],
        )
        for name, numbers in partitions.items()
    }
    return Metadata("cluster", 0, [], topics)


@pytest.fixture
def topics(accumulator: Accumulator) -> Topics:
    return Topics(lambda partition: PartitionQueue(get_hub(), partition, 1000, None, accumulator))


def test_only_partitions_that_can_be_written_to_take_part(topics: Topics) -> None:
    topics.update_from(metadata(t=[(2, True), (0, True), (1, False)]), ["t"])
    assert [queue.partition.partition for queue in topics.known["t"].queues] == [0, 2]
    topics.update_from(metadata(t=[(1, False)]), ["t"])
    assert "t" not in topics.known


def test_a_topic_that_is_gone_is_forgotten_and_has_its_queues_again_when_it_comes_back(
    topics: Topics,
) -> None:
    topics.update_from(metadata(t=[(0, True)], u=[(0, True)]), ["t", "u"])
    (queue,) = topics.known["t"].queues
    topics.update_from(metadata(t=None), ["t", "u"])
    assert topics.known == {}
    assert queue in topics.queues()
    topics.update_from(metadata(t=[(0, True), (1, True)]), ["t"])
    assert topics.known["t"].queues[0] is queue


def test_metadata_without_news_leaves_the_topic_as_it_is(topics: Topics) -> None:
    topics.update_from(metadata(t=[(0, True)]), ["t"])
    known = topics.known["t"]
    topics.update_from(metadata(t=[(0, True)], other=[(0, True)]), ["t"])
    assert topics.known["t"] is known
    assert list(topics.known) == ["t"]


def test_keys_are_remembered_up_to_a_number_and_a_size(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_topics, "REMEMBERED_KEYS", 2)
    topics.update_from(metadata(t=[(number, True) for number in range(10)]), ["t"])
    topic = topics.known["t"]
    for key in (b"a", b"b", b"c", b"x" * (_topics.REMEMBERED_KEY_SIZE + 1)):
        assert topic.queue_of_key(key) is None
        assert topic.hash_key(key).partition.partition == (murmur2(key) & 0x7FFFFFFF) % 10
    assert [topic.queue_of_key(key) for key in (b"a", b"b")] == [None, None]
    assert topic.queue_of_key(b"c") is topic.hash_key(b"c")
    assert topic.queue_of_key(b"x" * (_topics.REMEMBERED_KEY_SIZE + 1)) is None


@pytest.mark.parametrize("partitions", [2, 64])
def test_partitions_of_records_without_a_key_have_no_pattern(topics: Topics, partitions: int) -> None:
    """One that alternates between two kinds of records sends neither to some of the partitions only."""
    topics.update_from(metadata(t=[(number, True) for number in range(partitions)]), ["t"])
    topic = topics.known["t"]

    def one() -> int:
        try:
            return topic.any_queue().partition.partition
        except IndexError:
            return topic.draw().partition.partition

    chosen = [one() for _ in range(40 * partitions)]
    assert set(chosen[::2]) == set(chosen[1::2]) == set(range(partitions))


def test_the_one_partition_of_a_topic_is_known_without_a_choice(topics: Topics) -> None:
    topics.update_from(metadata(t=[(3, True)]), ["t"])
    assert topics.known["t"].only is topics.known["t"].queues[0]
    topics.update_from(metadata(t=[(3, True), (4, True)]), ["t"])
    assert topics.known["t"].only is None


def test_a_partitioner_sees_topics_partitions_and_leaders(topics: Topics) -> None:
    topics.update_from(metadata(t=[(0, True), (1, True)]), ["t"])
    view = ClusterView(topics)
    assert view.topics() == {"t"}
    for ask in (view.partitions_for_topic, view.available_partitions_for_topic):
        assert (ask("t"), ask("u")) == ({0, 1}, None)
    leaders = [view.leader_for_partition(TopicPartition(*one)) for one in (("t", 1), ("t", 2), ("u", 0))]
    assert leaders == [0, None, None]
