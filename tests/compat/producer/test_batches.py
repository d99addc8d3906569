"""One partition's batches: where a record goes, which thread encodes sealed batches, and the results of
futures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from compat.kafka.errors import (
    IllegalStateError,
    InvalidRecordError,
    KafkaError,
)
from compat.kafka.producer import _batches
from compat.kafka.producer._batches import NANOSECONDS, PartitionQueue
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch
from tests.compat.producer.queues import RECORD, ROOM, SIZE, Accumulator, filled

Told = list[tuple[str, Any]]


class Future:
    """A record's future, which knows its batch and its place."""

    def __init__(self, value: Any) -> None:
        self.value = value


def test_records_join_the_open_batch_until_it_is_full(queue: PartitionQueue) -> None:
    appended = [queue.append(RECORD, SIZE) for _ in range(4)]
    first, second = appended[0][0], appended[3][0]
    assert [(batch, index) for batch, index, _ in appended] == [
        (first, 0),
        (first, 1),
        (first, 2),
        (second, 0),
    ]
    assert [sealed for _, _, sealed in appended] == [None, None, None, first]
    assert first is not second


def test_a_record_larger_than_a_batch_has_one_of_its_own(queue: PartitionQueue) -> None:
    first, _, _ = queue.append(RECORD, 10 * ROOM)
    second, index, sealed = queue.append(RECORD, SIZE)
    assert (sealed, index) == (first, 0) and second is not first


def test_a_batch_counts_as_incomplete_from_its_first_record_on(
    queue: PartitionQueue, accumulator: Accumulator
) -> None:
    assert not accumulator.incomplete
    batch, _, _ = queue.append(RECORD, SIZE)
    queue.append(RECORD, SIZE)
    assert list(accumulator.incomplete) == [batch]


def test_sealed_batches_are_taken_encoded_and_in_their_order(queue: PartitionQueue) -> None:
    for number in range(7):
        queue.append((number * NANOSECONDS, None, b"v" * 40, ()), SIZE)
    queue.seal_open()
    taken = [queue.take_sealed() for _ in range(3)]
    times = [decode_batch(batch.content).timestamps for batch in taken if batch and batch.content]
    assert times == [[0, 1, 2], [3, 4, 5], [6]]
    assert queue.take_sealed() is None and queue.empty


def test_a_batch_that_another_thread_encodes_is_left_to_it_for_a_while(
    queue: PartitionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.append(RECORD, SIZE)
    batch = queue.seal_open()
    assert batch is not None
    encoding, go_on = threading.Event(), threading.Event()
    encode = _batches.encode_batch

    def slow(*args: Any, **options: Any) -> bytes:
        encoding.set()
        assert go_on.wait(100)
        return encode(*args, **options)

    monkeypatch.setattr(_batches, "encode_batch", slow)
    monkeypatch.setattr(_batches, "ENCODING_SECONDS", 60.0)
    thread = threading.Thread(target=batch.encode)
    thread.start()
    assert encoding.wait(100)
    assert queue.take_sealed() is None
    go_on.set()
    thread.join()
    assert queue.take_sealed() is batch


def test_a_record_that_joined_before_its_batch_was_settled_is_sent_with_it(queue: PartitionQueue) -> None:
    batch, _, _ = queue.append(RECORD, SIZE)
    records, mine = batch.records, (7 * NANOSECONDS, None, b"mine", ())
    records += [(6 * NANOSECONDS, None, b"another thread's", ()), mine]  # as send() does, without the lock
    assert queue.place(batch, records, mine, 1) == 2  # the batch is open
    queue.seal_open()
    assert queue.place(batch, records, mine, 1) == 2  # ... and now sealed
    taken = queue.take_sealed()
    assert taken is batch and taken.content is not None
    assert decode_batch(taken.content).timestamps == [1, 6, 7]
    assert queue.place(batch, records, mine, 1) == 2  # ... and encoded


def test_a_record_that_is_appended_with_the_lock_knows_its_place_though_another_thread_joins(
    queue: PartitionQueue,
) -> None:
    class Overtaken(list[Any]):
        def append(self, record: Any) -> None:
            self += [(6 * NANOSECONDS, None, b"another thread's", ()), record]

    batch, _, _ = queue.append(RECORD, SIZE)
    batch.records = Overtaken(batch.records)
    assert queue.append((7 * NANOSECONDS, None, b"mine", ()), SIZE) == (batch, 2, None)


def test_a_record_that_came_after_its_batch_was_settled_is_not_sent_with_it(queue: PartitionQueue) -> None:
    batch, _, _ = queue.append(RECORD, SIZE)
    records, late = batch.records, (7 * NANOSECONDS, None, b"late", ())
    queue.seal_open()
    records.append(late)
    assert queue.place(batch, records, late, 1) == -1
    taken = queue.take_sealed()
    assert taken is batch and taken.count == 1 and taken.content is not None
    assert decode_batch(taken.content).timestamps == [1]


def test_a_batch_whose_sealing_was_interrupted_is_settled_by_the_one_that_encodes_it(
    queue: PartitionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, _, _ = queue.append(RECORD, SIZE)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(_batches.Batch, "settle", interrupted)
        queue.seal_open()
    records, late = batch.records, (7 * NANOSECONDS, None, b"late", ())
    records.append(late)
    assert queue.take_sealed() is batch and batch.count == 2
    assert queue.place(batch, records, late, 1) == 1


def interrupted(batch: object) -> None:
    raise KeyboardInterrupt


def test_batches_that_are_put_back_come_first_and_in_their_order(queue: PartitionQueue) -> None:
    first, second = filled(queue, 1), filled(queue, 2)
    queue.append(RECORD, SIZE)
    queue.seal_open()
    queue.put_back([first, second], 5.0)
    assert queue.retry_at == 5.0
    assert [queue.take_sealed(), queue.take_sealed()] == [first, second]
    assert queue.take_sealed() is not None


def test_a_queue_with_records_is_not_closed_and_a_closed_one_takes_none(queue: PartitionQueue) -> None:
    queue.append(RECORD, SIZE)
    assert not queue.close_if_empty()
    queue.seal_open()
    queue.take_sealed()
    assert queue.close_if_empty() and queue.close_if_empty()
    assert queue.empty and queue.seal_open() is None
    assert not queue.has_room(0)
    with pytest.raises(IllegalStateError):
        queue.append(RECORD, SIZE)


def test_callbacks_are_called_in_the_order_of_the_records_before_waiters_are_woken(
    queue: PartitionQueue, accumulator: Accumulator
) -> None:
    batch, told = filled(queue, 3), Told()
    for index in (2, 0, 1):
        assert batch.call_back(index, Future(index), lambda value: told.append(("ok", value)), told.append)
    batch.resolve(7, -1, None)
    assert batch.wait(100)
    assert told == [("ok", 0), ("ok", 1), ("ok", 2)]
    assert accumulator.ended == [batch]
    assert not batch.call_back(0, Future(0), told.append, told.append)


def test_the_accumulator_is_done_with_a_batch_before_a_wait_for_it_ends(
    queue: PartitionQueue, accumulator: Accumulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, known = filled(queue, 1), list[bool]()
    monkeypatch.setattr(accumulator, "finished", lambda batch: known.append(batch.finished))
    batch.resolve(0, -1, None)
    assert batch.wait(100)
    assert known == [False]


def test_a_callback_that_raises_keeps_the_others_from_nothing(queue: PartitionQueue) -> None:
    batch, told = filled(queue, 2), Told()

    def fails(value: Any) -> None:
        raise SystemExit

    batch.call_back(0, Future(0), fails, fails)
    batch.call_back(1, Future(1), lambda value: told.append(("ok", value)), fails)
    batch.resolve(0, -1, None)
    assert batch.wait(100) and told == [("ok", 1)]


def test_a_wait_ends_with_its_time(queue: PartitionQueue) -> None:
    batch = filled(queue, 1)
    assert not batch.wait(0.01)
    assert not batch.waiters
    batch.resolve(0, -1, None)
    assert batch.wait(0.0)


def test_a_callback_must_not_wait_for_another_record(queue: PartitionQueue) -> None:
    first, second = filled(queue, 1), filled(queue, 1)
    raised: list[BaseException] = []

    def wait(value: Any) -> None:
        try:
            second.wait(100)
        except IllegalStateError as error:
            raised.append(error)

    first.call_back(0, Future(0), wait, wait)
    first.resolve(0, -1, None)
    assert first.wait(100) and len(raised) == 1


def test_only_the_record_that_is_wrong_has_the_brokers_reason(queue: PartitionQueue) -> None:
    batch = filled(queue, 3)
    batch.record_errors = {1: "no key"}
    batch.resolve(-1, -1, InvalidRecordError("of a batch"))
    errors = [batch.error_of(index) for index in range(3)]
    assert [type(error) for error in errors] == [KafkaError, InvalidRecordError, KafkaError]
    assert "no key" in str(errors[1])


class HeldUp:
    """A lock, whose caller is held up in front of it until something has been done."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.meanwhile: Callable[[], None] | None = None

    def __enter__(self) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_a_thread_that_comes_late_with_an_encoding_leaves_the_one_that_was_sent(
    queue: PartitionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, _, _ = queue.append(RECORD, SIZE)
    assert queue.seal_open() is batch
    held_up = HeldUp(queue.lock)
    monkeypatch.setattr(queue, "lock", held_up)

    def sent() -> None:
        batch.content = b"another thread's, sent under its sequence"

    def encoded(*given: Any, **options: Any) -> bytes:
        held_up.meanwhile = sent
        return encode_batch(*given, **options)

    monkeypatch.setattr(_batches, "encode_batch", encoded)
    batch.encode()
    assert batch.content == b"another thread's, sent under its sequence"
