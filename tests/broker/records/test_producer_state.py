"""Idempotent producers: every batch once and in order, whatever is sent again and whatever dies."""

from __future__ import annotations

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from timing import each_time, no_long_turn, until

from dafka import Broker
from dafka.broker import limits
from dafka.broker.interface.broker import Produced, TopicSpec
from dafka.broker.records import producer_state
from dafka.broker.records.producer_row import NO_TRANSACTION, PRODUCERS, Append, ProducerState
from dafka.broker.records.producer_state import ProducerStates, row_name
from dafka.commit import writer
from dafka.hub.turns import in_pieces
from dafka.log import LogWriteError
from dafka.protocol.batch import with_producer

LAST = 2**31 - 1


class Producer:
    """An idempotent producer as the wire shows it: nothing is kept but what the test says."""

    def __init__(self, client: Client, topic: str = "t", producer_id: int = 7, epoch: int = 0) -> None:
        self.client = client
        self.topic = topic
        self.producer_id = producer_id
        self.epoch = epoch

    def batch(self, sequence: int, *values: bytes) -> bytes:
        return batch(*values, producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence)

    def send(self, sequence: int, *values: bytes) -> Produced:
        return self.send_all(self.batch(sequence, *values))

    def send_all(self, *batches: bytes) -> Produced:
        return self.client.call("produce", {(self.topic, 0): list(batches)})[self.topic, 0]


@pytest.fixture
def producer(client: Client) -> Producer:
    client.create("t")
    return Producer(client)


def later(states: ProducerStates, seconds: float) -> None:
    """Have so many seconds pass."""
    before = states._clock
    states._clock = lambda: before() + seconds


def forget_old(client: Client) -> int:
    return client.connection.hub.run(client.core._producers.forget_old, gevent.sleep)


def known_producers(client: Client) -> list[int]:
    answers = client.call("describe_producers", [("t", 0)])
    return [one.producer_id for one in answers["t", 0].producers]


def test_batches_that_continue_each_other_are_appended(client, producer):
    assert producer.send(0, b"a", b"b").base_offset == 0
    assert producer.send(2, b"c").base_offset == 2
    assert client.values("t") == [b"a", b"b", b"c"]


def test_a_batch_that_comes_again_is_answered_with_its_offset_and_not_appended(client, producer):
    client.produce("t", b"somebody else's")
    first = producer.send(0, b"a", b"b")
    client.produce("t", b"somebody else's")
    assert first == Produced(None, (1,), -1, 0)
    assert producer.send(0, b"a", b"b") == first._replace(timestamp=1000)
    assert len(client.values("t")) == 4


def test_the_last_five_batches_are_known_again_and_older_ones_are_out_of_order(client, producer):
    for sequence in range(6):
        producer.send(sequence, b"%d" % sequence)
    assert [producer.send(sequence, b"%d" % sequence).base_offset for sequence in range(1, 6)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert producer.send(0, b"0").error is errors.OutOfOrderSequenceNumberError
    assert len(client.values("t")) == 6


def test_a_gap_is_refused_and_the_batch_that_closes_it_is_taken(client, producer):
    producer.send(0, b"a")
    refused = producer.send(2, b"c")
    assert refused.error is errors.OutOfOrderSequenceNumberError
    assert "1, not 2" in refused.detail
    assert producer.send(1, b"b").base_offset == 1
    assert producer.send(2, b"c").base_offset == 2
    assert client.values("t") == [b"a", b"b", b"c"]


def test_half_of_a_known_batch_and_half_a_new_one_is_out_of_order(producer):
    producer.send(0, b"a", b"b")
    assert producer.send(1, b"b", b"c").error is errors.OutOfOrderSequenceNumberError


def test_an_unknown_producer_may_begin_with_any_sequence(producer):
    assert producer.send(41, b"a").base_offset == 0
    assert producer.send(41, b"a").base_offset == 0
    assert producer.send(43, b"c").error is errors.OutOfOrderSequenceNumberError


def test_sequences_go_on_with_0_behind_the_largest_number(client, producer):
    assert producer.send(LAST - 1, b"a").base_offset == 0
    assert producer.send(LAST, b"b", b"c").base_offset == 1
    assert producer.send(LAST, b"b", b"c").base_offset == 1
    assert producer.send(1, b"d").base_offset == 3
    assert producer.send(0, b"c").base_offset == 2  # it is inside of what is known
    assert client.values("t") == [b"a", b"b", b"c", b"d"]


def test_a_newer_epoch_starts_at_0_and_fences_the_older_one(client, producer):
    producer.send(0, b"a")
    newer = Producer(client, epoch=1)
    assert newer.send(1, b"x").error is errors.OutOfOrderSequenceNumberError
    assert newer.send(0, b"b").base_offset == 1
    refused = producer.send(1, b"late")
    assert refused.error is errors.InvalidProducerEpochError
    assert producer.send(0, b"a").error is errors.InvalidProducerEpochError
    assert client.values("t") == [b"a", b"b"]


def test_each_producer_and_each_partition_counts_for_itself(client, producer):
    client.create("u", 2)
    other = Producer(client, producer_id=8)
    assert producer.send(0, b"a").base_offset == 0
    assert other.send(0, b"b").base_offset == 1
    assert Producer(client, "u").send(0, b"c").base_offset == 0
    assert producer.send(1, b"d").base_offset == 2


@pytest.mark.parametrize("epoch, sequence", [(-1, 0), (0, -1)])
def test_a_producer_id_without_epoch_or_sequence_is_invalid(client, producer, epoch, sequence):
    assert Producer(client, epoch=epoch).send(sequence, b"a").error is errors.InvalidRecordError


def test_a_transactional_batch_without_a_producer_id_is_invalid(client, producer):
    content = with_producer(batch(b"a"), -1, -1, -1, transactional=True)
    assert producer.send_all(content).error is errors.InvalidRecordError


# -- several batches in one call ------------------------------------------------------------------


def test_a_call_with_many_batches_can_come_again_as_a_whole(client, producer):
    batches = [producer.batch(number, b"%d" % number) for number in range(100)]
    assert producer.send_all(*batches).base_offset == 0
    assert producer.send_all(*batches) == Produced(None, tuple(range(100)), -1, 0)
    assert len(client.values("t")) == 100


def test_batches_that_came_before_and_new_ones_may_come_together(client, producer):
    producer.send(0, b"a")
    client.produce("t", b"x")
    answer = producer.send_all(producer.batch(0, b"a"), producer.batch(1, b"b"), producer.batch(2, b"c"))
    assert answer == Produced(None, (0, 2, 3), -1, 0)
    assert client.values("t") == [b"a", b"x", b"b", b"c"]


def test_one_batch_out_of_order_refuses_all_of_its_call_and_counts_none(client, producer):
    answer = producer.send_all(producer.batch(0, b"a"), producer.batch(2, b"c"))
    assert answer.error is errors.OutOfOrderSequenceNumberError
    assert client.values("t") == []
    assert producer.send(0, b"a").base_offset == 0


# -- under way together ---------------------------------------------------------------------------


def together(client: Client, *contents: bytes) -> list[Produced]:
    """The answers to calls that are under way at the same time."""

    def produce() -> list[Produced]:
        greens = [gevent.spawn(client.core.produce, {("t", 0): [content]}) for content in contents]
        gevent.joinall(greens, raise_error=True)
        return [green.value["t", 0] for green in greens]

    return client.connection.hub.run(produce)


def test_a_duplicate_of_a_batch_under_way_shares_its_outcome(client, producer):
    content = producer.batch(0, b"a")
    answers = together(client, content, content, producer.batch(1, b"b"), content)
    assert [answer.base_offset for answer in answers] == [0, 0, 1, 0]
    assert client.values("t") == [b"a", b"b"]


def test_a_refused_batch_does_not_disturb_others_of_its_round(client, producer):
    answers = together(
        client,
        producer.batch(0, b"a"),
        producer.batch(5, b"?"),
        producer.batch(1, b"b"),
        producer.batch(0, b"a"),
    )
    assert [answer.error for answer in answers] == [None, errors.OutOfOrderSequenceNumberError, None, None]
    assert client.values("t") == [b"a", b"b"]


def test_a_round_that_fails_counts_nothing(client, producer, monkeypatch):
    storage = client.core.log._storage
    commit = storage.commit

    def fail(*args):
        raise LogWriteError(client.core.log.path, "no space")

    producer.send(0, b"a")
    monkeypatch.setattr(storage, "commit", fail)
    answers = together(client, producer.batch(1, b"b"), producer.batch(1, b"b"), producer.batch(2, b"c"))
    assert [answer.error for answer in answers] == [errors.KafkaStorageError] * 3
    monkeypatch.setattr(storage, "commit", commit)
    assert producer.send(2, b"c").error is errors.OutOfOrderSequenceNumberError
    assert producer.send(1, b"b").base_offset == 1
    assert client.values("t") == [b"a", b"b"]


# -- restarts, expiry, deletion -------------------------------------------------------------------


def test_the_state_of_producers_survives_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        Producer(client).send(0, b"a", b"b")
    with Broker(tmp_path) as broker:
        client = Client(broker)
        producer = Producer(client)
        assert producer.send(0, b"a", b"b").base_offset == 0
        assert producer.send(3, b"d").error is errors.OutOfOrderSequenceNumberError
        assert producer.send(2, b"c").base_offset == 2
        assert client.values("t") == [b"a", b"b", b"c"]


def test_producers_that_have_been_silent_for_too_long_are_forgotten(client, producer):
    producer.send(0, b"a")
    states = client.core._producers
    assert forget_old(client) == 0
    assert producer.send(2, b"c").error is errors.OutOfOrderSequenceNumberError
    later(states, limits.PRODUCER_ID_EXPIRATION + 60)
    assert forget_old(client) == 1
    assert producer.send(2, b"c").base_offset == 1


def test_beyond_their_number_the_longest_silent_ones_are_forgotten(client, producer, monkeypatch):
    states = client.core._producers
    for producer_id in range(20):
        Producer(client, producer_id=producer_id).send(0, b"a")
        later(states, 60.0)
    monkeypatch.setattr(producer_state, "PRODUCERS_KEPT", 10)
    assert states.crowded
    later(states, limits.PRODUCER_RETRIES)
    assert forget_old(client) == 11
    assert known_producers(client) == list(range(11, 20))


def test_however_many_there_are_none_is_forgotten_whose_batch_may_come_again(client, producer, monkeypatch):
    monkeypatch.setattr(producer_state, "PRODUCERS_KEPT", 10)
    states = client.core._producers
    for producer_id in range(20):
        Producer(client, producer_id=producer_id).send(0, b"a")
    later(states, limits.PRODUCER_RETRIES - 60)
    assert states.crowded
    assert forget_old(client) == 0
    answers = [Producer(client, producer_id=producer_id).send(0, b"a") for producer_id in range(20)]
    assert [answer.base_offset for answer in answers] == list(range(20))
    assert len(client.values("t")) == 20


def test_a_broker_that_was_down_for_long_still_knows_the_batches_that_come_again(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        monkeypatch.setattr(producer_state, "PRODUCERS_KEPT", 1)
        later(client.core._producers, -2 * limits.PRODUCER_RETRIES)
        for producer_id in range(3):
            Producer(client, producer_id=producer_id).send(0, b"a")
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.core._producers.crowded
        assert forget_old(client) == 0
        assert Producer(client, producer_id=0).send(0, b"a").base_offset == 0
        later(client.core._producers, limits.PRODUCER_RETRIES + 60)
        assert forget_old(client) == 3


def test_an_unknown_producer_is_refused_when_there_is_no_room(client, producer, monkeypatch):
    producer.send(0, b"a")
    monkeypatch.setattr(producer_state, "PRODUCERS_MAX", 1)
    refused = Producer(client, producer_id=8).send(0, b"x")
    assert refused.error is errors.PolicyViolationError
    assert "producer 8" in refused.detail
    assert producer.send(1, b"b").base_offset == 1
    assert client.produce("t", b"of a producer without an id").error is None


def test_a_producer_that_writes_while_old_ones_are_looked_for_is_not_forgotten(client, producer):
    producer.send(0, b"a")
    states = client.core._producers
    silent = [0]

    def write() -> None:
        """When the search has come to an end."""
        if len(silent) == 1:
            silent.append(1)
        elif len(silent) == 2:
            silent.append(2)
            client.core.produce({("t", 0): [producer.batch(1, b"b")]})

    for producer_id in range(100, 1100):  # so many that there are two pauses, and two rounds
        Producer(client, producer_id=producer_id).send(0, b"x")
    later(states, limits.PRODUCER_ID_EXPIRATION + 60)
    client.connection.hub.run(states.forget_old, write)
    assert len(silent) == 3
    assert producer.send(3, b"?").error is errors.OutOfOrderSequenceNumberError
    assert producer.send(2, b"c").error is None


def test_a_batch_that_is_being_stored_while_its_topic_is_deleted_leaves_nothing_behind(client, producer):
    def together() -> None:
        content = producer.batch(0, bytes(writer.INLINE_BYTES + 1))  # stored outside of the hub
        sending = gevent.spawn(client.core.produce, {("t", 0): [content]})
        while not client.core._producers._staged:
            gevent.sleep(0)
        deleting = gevent.spawn(client.core.delete_topics, ["t"])
        gevent.joinall([sending, deleting], raise_error=True)

    client.connection.hub.run(together)
    assert len(client.core.log.table("producers")) == 0


def test_a_topic_that_is_created_again_knows_no_producer_of_the_old_one(client, producer):
    producer.send(0, b"a")
    client.call("delete_topics", ["t"])
    assert len(client.core.log.table("producers")) == 0
    client.create("t")
    assert producer.send(5, b"b").base_offset == 0


@each_time
def test_the_producers_of_a_deleted_topic_are_forgotten_in_short_turns(tmp_path):
    many = 20_000
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        partition = client.core._topics.partition("t", 0)
        state = ProducerState(0, client.core._producers.now(), NO_TRANSACTION, (Append(0, 1, 0),), 0).pack()
        for some in in_pieces(range(many), 1000):
            rows = {(PRODUCERS, f"{row_name(partition)}/{number}"): state for number in some}
            client.connection.hub.run(client.core._writer.put_and_wait, rows)
    with Broker(tmp_path) as broker:  # which has not read these rows
        client = Client(broker)
        assert len(client.core.log.table(PRODUCERS)) == many
        turns = client.connection.hub.turns
        client.connection.hub.run(turns.reset)
        assert client.change("delete_topics", ["t"]) == {"t": None}
        no_long_turn(turns.longest_cpu, 0.05)
        assert len(client.core.log.table(PRODUCERS)) == 0


def test_producers_of_a_partition_are_described(client, producer):
    producer.send(0, b"a", b"b")
    Producer(client, producer_id=3, epoch=2).send(0, b"c")
    found = until(lambda: client.call("describe_producers", [("t", 0), ("t", 1)]))
    assert found["t", 1].error is errors.UnknownTopicOrPartitionError
    described = [(one.producer_id, one.epoch, one.last_sequence) for one in found["t", 0].producers]
    assert described == [(3, 2, 0), (7, 0, 1)]
    assert all(one.transaction_start == -1 for one in found["t", 0].producers)


@pytest.mark.parametrize("by", ["CreateTime", "LogAppendTime"])
def test_the_last_timestamp_of_a_producer_is_that_of_its_last_batch(client, by):
    specs = {"t": TopicSpec(1, configs={"message.timestamp.type": by})}
    assert client.change("create_topics", specs) == {"t": None}
    for first, timestamp in enumerate((5_000, 3_000)):
        content = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=first, timestamp=timestamp)
        produced = client.call("produce", {("t", 0): [content]})["t", 0]
        (known,) = client.call("describe_producers", [("t", 0)])["t", 0].producers
        assert known.last_timestamp == (timestamp if by == "CreateTime" else produced.timestamp)
