"""Fetched batches: the requests, the use of each answer, and turns of partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    InvalidTopicError,
    LogTruncationError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from kafka.structs import OffsetAndMetadata, TopicPartition
from timing import until

from compat.kafka._calls import Calls
from compat.kafka.consumer._fetches import Fetches
from dafka.broker.interface.broker import Fetched, FetchFrom
from dafka.hub.hub import get_hub
from dafka.protocol.batch_writer import encode_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CONFIG = {
    "isolation_level": "read_uncommitted",
    "max_partition_fetch_bytes": 1000,
    "fetch_max_wait_ms": 500,
    "fetch_min_bytes": 1,
    "fetch_max_bytes": 5000,
    "retry_backoff_ms": 50,
    "key_deserializer": None,
    "value_deserializer": None,
}


def batch(offset: int, *values: bytes) -> bytes:
    return encode_batch([(7, None, value, ()) for value in values], base_offset=offset)


def found(*batches: bytes, high_watermark: int = 100) -> Fetched:
    return Fetched(None, high_watermark, 0, batches)


def refused(error: type) -> Fetched:
    return Fetched(error, -1, -1, ())


class Broker:
    """A broker with scripted answers for each partition, one a fetch; it notes what is asked."""

    def __init__(self) -> None:
        self.answers: dict[TopicPartition, list[Fetched]] = {}
        self.asked: list[dict[Any, FetchFrom]] = []
        self.options: dict[str, Any] = {}
        self.waits = 0.0

    def fetch(self, wanted: dict[Any, FetchFrom], **options: Any) -> dict[Any, Fetched]:
        self.asked.append(wanted)
        self.options = options
        gevent.sleep(self.waits)
        return {
            place: answers.pop(0) for place, answers in self.answers.items() if answers and place in wanted
        }


class Client:
    """What fetches need of a client."""

    def __init__(self, broker: Broker) -> None:
        self.hub = get_hub()
        self.broker = broker

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        return self.hub.run(fn, *args)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def new_fetches(broker: Broker) -> Callable[..., Fetches]:
    def make(
        reset: str = "earliest", partitions: tuple[TopicPartition, ...] = (T0,), **config: Any
    ) -> Fetches:
        subscription = SubscriptionState(reset)
        subscription.assign_from_user(list(partitions))
        for partition in partitions:
            subscription.seek(partition, OffsetAndMetadata(5, "", 3))
        client: Any = Client(broker)
        return Fetches(client, Calls(client), subscription, {**CONFIG, **config})

    return make


def values(taken: Any) -> tuple[TopicPartition, list[bytes]] | None:
    return None if taken is None else (taken[0], [row.value for row in taken[1]])


def move(fetches: Fetches, partition: TopicPartition, offset: int) -> None:
    fetches._subscription.seek(partition, OffsetAndMetadata(offset, "", -1))


# -- asking -------------------------------------------------------------------------------------


def test_a_fetch_names_position_epoch_and_limits(broker: Broker, new_fetches: Callable[..., Fetches]) -> None:
    assert new_fetches(isolation_level="read_committed").fetch(0.1)
    assert broker.asked == [{("t", 0): FetchFrom(5, 1000, last_epoch=3)}]
    assert broker.options == {"max_wait": 0.1, "min_bytes": 1, "max_bytes": 5000, "read_committed": True}


def test_only_partitions_without_buffered_records_are_asked_for(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches(partitions=(T0, T1))
    broker.answers = {T0: [found(batch(5, b"a"))]}
    fetches.fetch(0.0)
    fetches.fetch(0.0)
    assert [set(asked) for asked in broker.asked] == [{T0, T1}, {T1}]


def test_there_is_nothing_to_fetch_without_a_partition_or_while_all_are_buffered(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches()
    broker.answers = {T0: [found(batch(5, b"a"))]}
    assert fetches.fetch(0.0)
    assert not fetches.fetch(0.0)
    fetches._subscription.pause(T0)
    assert not fetches.fetch(0.0)
    assert len(broker.asked) == 1


def test_a_fetch_is_left_out_if_the_program_is_needed_elsewhere(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches()
    fetches.needed_elsewhere = lambda: True
    assert fetches.fetch(10.0)
    assert broker.asked == []


def test_another_thread_ends_a_fetch_that_waits(broker: Broker, new_fetches: Callable[..., Fetches]) -> None:
    fetches = new_fetches(fetch_max_wait_ms=30_000)
    broker.waits = 30.0

    def fetch() -> None:
        while not fetches.fetches:  # a slice of the wait may be over first
            fetches.fetch(0.9)

    waiting = threading.Thread(target=fetch)
    waiting.start()
    until(lambda: broker.asked)
    fetches.interrupt()
    until(lambda: fetches.fetches == 1)
    waiting.join()
    assert fetches._fetching is None


# -- handing out --------------------------------------------------------------------------------


def test_partitions_take_turns(broker: Broker, new_fetches: Callable[..., Fetches]) -> None:
    fetches = new_fetches(partitions=(T0, T1))
    broker.answers = {T0: [found(batch(5, b"a", b"b"))], T1: [found(batch(5, b"c", b"d"))]}
    fetches.fetch(0.0)
    taken = []
    for _ in range(4):
        partition, rows = fetches.take(1) or (T0, [])
        taken.append(rows[0].value)
        move(fetches, partition, rows[0].offset + 1)
    assert taken in ([b"a", b"c", b"b", b"d"], [b"c", b"a", b"d", b"b"])
    assert fetches.take(1) is None
    assert fetches.records_taken == 4


def test_a_paused_partition_keeps_its_records_and_one_that_was_revoked_loses_them(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches()
    broker.answers = {T0: [found(batch(5, b"a"))]}
    fetches.fetch(0.0)
    fetches._subscription.pause(T0)
    assert fetches.take(10) is None
    fetches._subscription.resume(T0)
    assert values(fetches.take(10)) == (T0, [b"a"])
    fetches._subscription.assign_from_user([T1])
    assert fetches.take(10) is None
    fetches._subscription.assign_from_user([T0])
    move(fetches, T0, 5)
    assert fetches.take(10) is None


def test_records_of_a_position_that_was_left_meanwhile_are_dropped(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches()
    accept = fetches._accept

    def seek_first(*answer: Any) -> None:
        move(fetches, T0, 50)
        accept(*answer)

    fetches._accept = seek_first  # type: ignore[method-assign]
    broker.answers = {T0: [found(batch(5, b"a"))]}
    fetches.fetch(0.0)
    assert fetches.take(10) is None


# -- errors -------------------------------------------------------------------------------------


def test_an_offset_out_of_range_is_reset_or_an_error(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    broker.answers = {T0: [refused(OffsetOutOfRangeError)] * 2}
    fetches = new_fetches("earliest")
    fetches.fetch(0.0)
    assert fetches._subscription.is_offset_reset_needed(T0)
    with pytest.raises(OffsetOutOfRangeError):
        new_fetches("none").fetch(0.0)


def test_records_that_were_lost_are_gone_back_to_or_an_error(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    broker.answers = {T0: [Fetched(None, 9, 0, (), diverging=(2, 3))] * 2}
    fetches = new_fetches("earliest")
    fetches.fetch(0.0)
    assert fetches._subscription.position(T0) == OffsetAndMetadata(3, "", 2)
    with pytest.raises(LogTruncationError):
        new_fetches("none").fetch(0.0)


def test_an_error_that_passes_has_the_metadata_looked_at_and_a_pause(
    broker: Broker, new_fetches: Callable[..., Fetches]
) -> None:
    fetches = new_fetches()
    broker.answers = {T0: [refused(NotLeaderForPartitionError)]}
    assert fetches.fetch(0.0)
    assert fetches.stale_metadata
    assert not fetches.fetch(0.0)
    until(lambda: fetches.fetch(0.0))
    assert len(broker.asked) == 2


@pytest.mark.parametrize("error", [TopicAuthorizationFailedError, InvalidTopicError])
def test_an_error_of_one_partition_is_raised_and_the_records_of_others_stay(
    broker: Broker, new_fetches: Callable[..., Fetches], error: type[Exception]
) -> None:
    fetches = new_fetches(partitions=(T0, T1))
    broker.answers = {T0: [refused(error)], T1: [found(batch(5, b"a"))]}
    with pytest.raises(error):
        fetches.fetch(0.0)
    assert values(fetches.take(10)) == (T1, [b"a"])
