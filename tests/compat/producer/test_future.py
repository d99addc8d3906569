"""The futures of ``send``: kafka-python's interface on a shared result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from compat.kafka import KafkaProducer
from compat.kafka.errors import IllegalStateError, KafkaTimeoutError, MessageSizeTooLargeError
from compat.kafka.future import Future
from compat.kafka.producer._future import RecordFuture

Producers = Callable[..., KafkaProducer]


@pytest.fixture
def lingering(new_producer: Producers) -> KafkaProducer:
    """A producer that sends when it is told to."""
    return new_producer(linger_ms=60_000)


def test_nothing_is_known_before_the_record_is_stored(lingering: KafkaProducer) -> None:
    future = lingering.send("t", b"v")
    assert not future.is_done and not future.succeeded() and not future.failed() and not future.retriable()
    assert future.value is None and future.exception is None
    with pytest.raises(KafkaTimeoutError, match=r"0\.01 secs"):
        future.get(0.01)
    lingering.flush(100)
    assert future.get().offset == 0


def test_a_future_has_no_dictionary_of_its_own(lingering: KafkaProducer) -> None:
    assert not hasattr(lingering.send("t", b"v"), "__dict__")


def test_callbacks_run_in_the_order_of_the_records_with_their_metadata(lingering: KafkaProducer) -> None:
    seen: list[Any] = []
    futures = [lingering.send("t", b"v") for _ in range(3)]
    for future in reversed(futures):
        future.add_callback(lambda tag, metadata, end: seen.append((tag, metadata.offset, end)), "x", end="z")
        future.add_errback(lambda error: seen.append(error))
    lingering.flush(100)
    lingering.close()
    assert seen == [("x", 0, "z"), ("x", 1, "z"), ("x", 2, "z")]


def test_a_callback_added_later_runs_at_once(lingering: KafkaProducer) -> None:
    future = lingering.send("t", b"v")
    lingering.flush(100)
    seen: list[Any] = []
    assert future.add_callback(seen.append) is future
    future.add_errback(seen.append)
    future.add_both(seen.append)
    assert seen == [future.value, future.value]


def test_a_future_can_be_chained_to_another(lingering: KafkaProducer) -> None:
    future, other = lingering.send("t", b"v"), Future()
    future.chain(other)
    lingering.flush(100)
    lingering.close()
    assert other.value == future.value


def test_errors_in_callbacks_are_logged_and_affect_no_other_callback(
    lingering: KafkaProducer, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    lingering.send("t", b"v").add_callback(lambda metadata: 1 / 0).add_callback(seen.append)
    lingering.flush(100)
    lingering.close()
    assert len(seen) == 1
    assert "Error processing callback" in caplog.text


def test_callbacks_run_on_one_thread_that_is_not_the_senders(lingering: KafkaProducer) -> None:
    threads: list[int] = []
    for _ in range(3):
        lingering.send("t", b"v").add_callback(lambda metadata: threads.append(threading.get_ident()))
    lingering.flush(100)
    lingering.close()
    assert len(threads) == 3 and len(set(threads)) == 1 and threads[0] != threading.get_ident()


def test_a_callback_may_send(new_producer: Producers) -> None:
    producer = new_producer()
    done = threading.Event()
    offsets: list[int] = []

    def again(metadata: Any) -> None:
        offsets.append(metadata.offset)
        if len(offsets) == 5:
            done.set()
        else:
            producer.send("t" if len(offsets) % 2 else "other", b"v").add_callback(again)

    producer.send("t", b"v").add_callback(again)
    assert done.wait(100)


@pytest.mark.parametrize("wait", ["get", "flush"])
def test_a_callback_that_waits_for_a_record_is_told_that_it_cannot(
    new_producer: Producers, wait: str
) -> None:
    producer = new_producer(linger_ms=5)
    raised: list[Exception] = []
    done = threading.Event()

    def callback(metadata: Any) -> None:
        try:
            future = producer.send("t", b"v")
            future.get() if wait == "get" else producer.flush()
        except Exception as error:
            raised.append(error)
        done.set()

    producer.send("t", b"v").add_callback(callback)
    assert done.wait(100)
    assert isinstance(raised[0], IllegalStateError) and "callback" in str(raised[0])


def test_closing_in_a_callback_does_not_wait(new_producer: Producers) -> None:
    producer = new_producer()
    closed = threading.Event()

    def close(metadata: Any) -> None:
        producer.close()
        closed.set()

    producer.send("t", b"v").add_callback(close)
    assert closed.wait(100)
    with pytest.raises(IllegalStateError):
        producer.send("t", b"v")


def test_many_threads_wait_for_one_record(lingering: KafkaProducer) -> None:
    future = lingering.send("t", b"v")
    offsets: list[int] = []
    threads = [threading.Thread(target=lambda: offsets.append(future.get(100).offset)) for _ in range(5)]
    for thread in threads:
        thread.start()
    lingering.flush(100)
    for thread in threads:
        thread.join(100)
    assert offsets == [0] * 5


def test_a_failed_record_raises_and_calls_errbacks(new_producer: Producers) -> None:
    producer = new_producer(linger_ms=60_000)
    future = producer.send("t", b"v")
    seen: list[Any] = []
    future.add_errback(seen.append).add_callback(seen.append)
    producer._client._broker = RefusingBroker(producer._client._broker, MessageSizeTooLargeError)
    producer.flush(100)
    with pytest.raises(MessageSizeTooLargeError):
        future.get()
    assert future.failed() and not future.retriable() and future.value is None
    producer.close()
    assert [type(error) for error in seen] == [MessageSizeTooLargeError]
    future.add_errback(seen.append)
    assert len(seen) == 2


def test_only_the_producer_resolves_a_future(lingering: KafkaProducer) -> None:
    future = lingering.send("t", b"v")
    assert isinstance(future, RecordFuture)
    for change in (
        lambda: future.success(1),
        lambda: future.failure(ValueError()),
        lambda: future.rebind(1, 2),
    ):
        with pytest.raises(IllegalStateError):
            change()


class RefusingBroker:
    """Answers produce with an error; everything else is the real broker's."""

    def __init__(self, broker: Any, error: Any, times: float = float("inf")) -> None:
        self._broker = broker
        self._error = error
        self._times = times
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def produce(self, batches: Any, **options: Any) -> Any:
        from dafka.broker.interface.broker import Produced

        self.calls += 1
        if self.calls > self._times:
            return self._broker.produce(batches, **options)
        return {partition: Produced(self._error) for partition in batches}
