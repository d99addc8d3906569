"""The thread of a producer's callbacks, and what happens where it cannot be started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from compat.kafka import KafkaProducer
from compat.kafka.producer import _callbacks

Producers = Callable[..., KafkaProducer]


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[RuntimeError]:
    """What the next starts of threads for callbacks fail with."""
    errors: list[RuntimeError] = []
    start = _callbacks._start_new_thread

    def try_to_start(*arguments: Any) -> Any:
        if errors:
            raise errors.pop()
        return start(*arguments)

    monkeypatch.setattr(_callbacks, "_start_new_thread", try_to_start)
    return errors


def test_callbacks_wait_for_a_thread_and_the_producer_goes_on(
    new_producer: Producers, failures: list[RuntimeError], caplog: pytest.LogCaptureFixture
) -> None:
    producer = new_producer()
    failures += [RuntimeError("can't start new thread")] * 4
    called: list[int] = []
    for _ in range(3):
        producer.send("t", b"v").add_callback(lambda metadata: called.append(metadata.offset))
    assert producer.send("u", b"v").get(100).offset == 0
    producer.flush(100)
    assert called == [0, 1, 2]
    assert not failures
    assert len([one for one in caplog.records if "have to wait" in one.getMessage()]) == 1


def test_at_the_end_of_the_interpreter_callbacks_run_in_its_thread(
    new_producer: Producers, failures: list[RuntimeError]
) -> None:
    producer = new_producer(linger_ms=60_000)
    failures += [RuntimeError("can't create new thread at interpreter shutdown")] * 1000
    threads: list[int] = []
    for number in range(3):
        producer.send("t", b"%d" % number).add_callback(lambda _: threads.append(threading.get_ident()))
    producer._accumulator.finish(20)
    assert threads == [threading.get_ident()] * 3
    failures.clear()
    future = producer.send("t", b"v").add_callback(lambda _: threads.append(threading.get_ident()))
    producer.flush(100)
    assert future.get(0).offset == 3
    assert threads[3] != threading.get_ident()
