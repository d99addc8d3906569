"""Requests of a share consumer that its program does not wait for to their end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

import gevent
import pytest
from kafka.errors import IllegalStateError, KafkaTimeoutError

import dafka.broker
from compat.kafka.share import ShareConsumer
from dafka.broker.interface.share import ShareHeartbeat, ShareHeartbeatAnswer
from dafka.testing import TestBroker
from tests.compat.share.scene import WAIT, Scene, poll, until, values


def test_a_wait_for_a_fetch_of_a_minute_ends_with_wakeup_and_close(scene: Scene) -> None:
    consumer = scene.consumer(fetch_max_wait_ms=29_000)
    until(lambda: consumer.poll(0) == {} and consumer.assignment())
    begun = time.monotonic()
    for end in (consumer.wakeup, consumer.close):
        soon = threading.Timer(0.1, end)
        soon.start()
        assert consumer.poll(WAIT) == {}
        soon.join()
    assert time.monotonic() - begun < 20
    scene.send(b"later")
    assert values(poll(scene.consumer())) == [b"later"]  # nobody holds it


def test_a_consumer_that_is_closed_before_it_knows_that_it_has_joined_leaves(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = dafka.broker.connect(scene.servers, 60.0)
    other = scene.consumer(fetch_max_wait_ms=20)
    asked: list[int] = []
    ask = other._client.broker.share_heartbeat

    def answer_late(beat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        asked.append(beat.member_epoch)
        answer = ask(beat)
        gevent.sleep(0.2)
        return answer

    monkeypatch.setattr(other._client.broker, "share_heartbeat", answer_late)
    consumer = scene.consumer(group_id="another")
    until(lambda: asked)
    consumer.close()
    assert broker.call("describe_share_groups", ["another"])["another"].members == []


@pytest.mark.parametrize(("delay", "error"), [(0.3, type(None)), (100.0, KafkaTimeoutError)])
def test_outcomes_of_acknowledgements_that_a_fetch_has_taken_along_are_told_by_close(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, delay: float, error: type
) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    told: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: told.append((offsets, type(error))))
    (partition,) = poll(consumer)
    ask = consumer._client.broker.share_fetch

    def answer_late(*arguments: Any) -> Any:
        answer = ask(*arguments)
        gevent.sleep(delay)
        return answer

    monkeypatch.setattr(consumer._client.broker, "share_fetch", answer_late)
    assert consumer.poll(0) == {}
    assert told == []
    begun = time.monotonic()
    consumer.close()
    assert time.monotonic() - begun < 20
    assert told == [({partition: {0}}, error)]
    assert scene.lag() == 0


def test_calls_end_in_time_when_the_broker_hangs(monkeypatch: pytest.MonkeyPatch, remote: bool) -> None:
    with TestBroker() as broker:
        scene = Scene(broker, remote)
        scene.send(b"a", b"b")
        consumer = scene.consumer(share_acknowledgement_mode="explicit", max_poll_records=1)
        (first,) = poll(consumer).values()
        consumer.acknowledge(first[0])
        with broker.hang():
            begun = time.monotonic()
            assert consumer.poll(0) == consumer.poll(50) == {}
            assert time.monotonic() - begun < 10
            found: list[bytes] = []
        until(lambda: found.extend(values(consumer.poll(20))) or found)
        assert found == [b"b"]  # of the fetch that had begun
        until(lambda: scene.lag() == 1)
        with broker.hang():
            assert consumer.commit(50) == {}
            begun = time.monotonic()
            with pytest.raises(IllegalStateError, match="must be acknowledged"):
                consumer.poll(0)
            consumer.close(50)
            assert time.monotonic() - begun < 10


def test_ctrl_c_in_a_poll_costs_no_records(scene: Scene) -> None:
    consumer = scene.consumer(consumer_timeout_ms=50)
    until(lambda: consumer.poll(0) == {} and consumer.assignment())
    main = threading.get_ident()
    for read in (lambda: consumer.poll(WAIT), lambda: next(consumer)):
        consumer.config["consumer_timeout_ms"] = WAIT
        soon = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
        soon.start()
        with pytest.raises(KeyboardInterrupt):
            read()
        soon.join()
        scene.send(b"a")
        consumer.config["consumer_timeout_ms"] = WAIT
        record = next(consumer)
        assert (record.value, record.delivery_count) == (b"a", 1)
    consumer.commit()
    assert scene.lag() == 0


def test_ctrl_c_at_any_moment_accepts_nothing_unseen(scene: Scene) -> None:
    scene.send(*(b"%d" % number for number in range(100)))
    consumer = scene.consumer(max_poll_records=1, consumer_timeout_ms=WAIT)
    seen = set(values(poll(consumer)))
    calls = 0  # until then

    def stop(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and "compat/kafka/share" in frame.f_code.co_filename
        if calls == 0:
            sys.settrace(None)
            raise KeyboardInterrupt

    for moment in range(1, 40):
        for read in (lambda: values(consumer.poll(WAIT)), lambda: [next(consumer).value]):
            calls = -moment
            sys.settrace(stop)
            try:
                found = read()
            except KeyboardInterrupt:
                continue
            finally:
                sys.settrace(None)
            seen.update(found)
    until(lambda: seen.update(values(consumer.poll(20))) or scene.lag() == 0)
    assert len(seen) == 100


def test_a_fetch_that_ended_with_the_broker_is_no_error_once_that_is_started_again(
    dafka_broker: TestBroker,
) -> None:
    dafka_broker.create_topic("jobs")
    consumer = ShareConsumer(
        "jobs", group_id="g", bootstrap_servers=dafka_broker.bootstrap_servers, fetch_max_wait_ms=WAIT
    )
    until(lambda: consumer.poll(50) == {} and consumer.assignment() and consumer._fetch is None)
    consumer.wakeup()
    assert consumer.poll(WAIT) == {}  # a fetch waits at the broker
    fetch: Any = consumer._fetch
    dafka_broker.restart()
    until(lambda: fetch.is_over)
    assert consumer.poll(0) == {}
    consumer.close()
