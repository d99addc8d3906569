"""ShareConsumer: a queue for programs, with a broker in the process and over TCP."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import gevent
import pytest
from kafka.errors import (
    CorruptRecordError,
    GroupIdNotFoundError,
    IllegalStateError,
    InvalidRecordStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicIdError,
)
from kafka.structs import TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.share import AcknowledgeType, ShareConsumer
from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import SharedRecords, ShareFetched
from dafka.testing import TestBroker

WAIT = 60_000


class Scene:
    """A broker with a topic, and share consumers of it."""

    def __init__(self, broker: Broker, remote: bool) -> None:
        self.servers = broker.bootstrap_servers
        self.connection = connect(self.servers, 60.0)
        self.remote = remote
        self.made: list[ShareConsumer] = []
        self.connection.call("create_topics", {"jobs": TopicSpec(1)})
        self.configure("g", share_auto_offset_reset="earliest")

    def configure(self, group: str, **settings: str) -> None:
        changes = [ConfigChange(name.replace("_", "."), 0, value) for name, value in settings.items()]
        self.connection.call("alter_configs", {Resource(ResourceType.GROUP, group): changes})

    def send(self, *values: bytes) -> None:
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for value in values:
                producer.send("jobs", value)

    def consumer(self, **configs: Any) -> ShareConsumer:
        options = {"group_id": "g", "bootstrap_servers": self.servers, "share_acquire_mode": "record_limit"}
        self.made.append(ShareConsumer("jobs", **{**options, **configs}))
        assert self.made[-1]._client.broker.is_remote is self.remote
        return self.made[-1]

    def lag(self) -> int:
        found = self.connection.call("share_offsets", "g", [("jobs", 0)])
        return int(found.partitions["jobs", 0].lag)


@pytest.fixture(params=["in the process", "over TCP"])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    is_remote: bool = request.param == "over TCP"
    if is_remote:  # as a client of another process would find it
        monkeypatch.setattr("dafka.broker.connecting.running.at", lambda addresses: None)
        monkeypatch.setattr("dafka.broker.connecting.running.brokers", lambda: [])
    return is_remote


@pytest.fixture
def scene(remote: bool) -> Iterator[Scene]:
    with Broker(listen="127.0.0.1:0") as broker:
        made = Scene(broker, remote)
        yield made
        for consumer in made.made:
            consumer.close()


def values(records: dict[Any, list[Any]]) -> list[bytes]:
    return [record.value for some in records.values() for record in some]


def counts(records: dict[Any, list[Any]]) -> list[int]:
    return [record.delivery_count for some in records.values() for record in some]


def poll(consumer: ShareConsumer, **options: Any) -> dict[Any, list[Any]]:
    found = consumer.poll(WAIT, **options)
    assert found, "nothing came"
    return found


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_records_are_accepted_with_the_next_poll(scene: Scene) -> None:
    scene.send(b"a", b"b")
    consumer = scene.consumer()
    assert values(poll(consumer, max_records=1)) == [b"a"]
    assert scene.lag() == -1  # until somebody acknowledges something
    assert values(poll(consumer)) == [b"b"]
    assert scene.lag() == 1
    assert consumer.commit() == {next(iter(consumer.assignment())): None}
    assert scene.lag() == 0


def test_a_loop_over_records(scene: Scene) -> None:
    scene.send(b"a", b"b", b"c")
    consumer = scene.consumer(consumer_timeout_ms=20_000, value_deserializer=bytes.decode)
    found = []
    for record in consumer:
        found.append((record.topic, record.value, record.delivery_count))
        if len(found) == 2:
            break
    assert found == [("jobs", "a", 1), ("jobs", "b", 1)]
    consumer.close()
    assert values(poll(scene.consumer())) == [b"a", b"b", b"c"]  # no record was acknowledged


def test_each_record_goes_to_one_member_and_what_one_gives_back_to_another(scene: Scene) -> None:
    scene.send(*(b"%d" % number for number in range(6)))
    one, two = scene.consumer(), scene.consumer()
    first = values(poll(one, max_records=3))
    assert first == [b"0", b"1", b"2"]
    assert values(poll(two)) == [b"3", b"4", b"5"]
    one.close()
    again = poll(two)
    assert (values(again), counts(again)) == (first, [2, 2, 2])


def test_explicit_acknowledgements(scene: Scene) -> None:
    scene.send(b"a", b"b", b"c", b"d")
    consumer = scene.consumer(share_acknowledgement_mode="explicit")
    (records,) = poll(consumer).values()
    with pytest.raises(IllegalStateError, match="must be acknowledged"):
        consumer.poll()
    consumer.acknowledge(records[0], AcknowledgeType.REJECT)
    types = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
    for record, type_ in zip(records, types, strict=True):
        consumer.acknowledge(record, type_)
    with pytest.raises(ValueError, match="REJECT"):
        consumer.acknowledge(records[3], 7)
    assert list(consumer.commit().values()) == [None]
    with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
        consumer.acknowledge(records[0])
    assert poll(consumer) == {TopicPartition("jobs", 0): [records[3]]}
    consumer.acknowledge(records[3])
    again = poll(consumer)
    assert (values(again), counts(again)) == ([b"b"], [2])
    assert scene.lag() == 1


def test_records_that_are_renewed_are_returned_by_the_next_poll_until_they_are_acknowledged(
    scene: Scene,
) -> None:
    scene.send(b"a", b"b")
    consumer = scene.consumer(share_acknowledgement_mode="explicit")
    found = poll(consumer)
    assert values(found) == [b"a", b"b"]
    for _ in range(3):
        ((partition, (one, *others)),) = found.items()
        consumer.acknowledge(one, AcknowledgeType.RENEW)
        for other in others:
            consumer.acknowledge(other)
        found = poll(consumer)
        assert found == {partition: [one]}
    assert scene.lag() == 1
    consumer.acknowledge(one)
    assert consumer.poll(0) == {}
    assert scene.lag() == 0


def test_a_record_that_could_not_be_renewed_is_another_members(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="30")
    scene.send(b"a")
    told: list[Any] = []
    slow = scene.consumer(share_acknowledgement_mode="explicit")
    slow.set_acknowledgement_commit_callback(lambda offsets, error: told.append(type(error)))
    ((record,),) = poll(slow).values()
    scene.configure("g", share_record_lock_duration_ms="60000")
    other = scene.consumer()
    assert counts(poll(other)) == [2]
    slow.acknowledge(record, AcknowledgeType.RENEW)
    assert slow.poll(20) == {}
    until(lambda: slow.poll(20) == {} and told)
    assert told == [InvalidRecordStateError]


def test_outcomes_of_acknowledgements_reach_the_callback(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="30")
    scene.send(b"a")
    told: list[Any] = []
    slow = scene.consumer()
    slow.set_acknowledgement_commit_callback(lambda offsets, error: told.append((offsets, error)))
    poll(slow)
    other = scene.consumer()
    assert counts(poll(other)) == [2]
    (error,) = slow.commit().values()
    assert isinstance(error, InvalidRecordStateError)
    ((offsets, failed),) = told
    assert (list(offsets.values()), type(failed)) == ([{0}], InvalidRecordStateError)


def test_a_callback_that_fails_costs_no_records(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    poll(consumer)

    def fail(*outcome: object) -> None:
        raise ZeroDivisionError

    consumer.set_acknowledgement_commit_callback(fail)
    scene.send(b"b")
    assert values(poll(consumer)) == [b"b"]
    assert "callback of acknowledgements has failed" in caplog.text


def test_a_commit_without_waiting(scene: Scene) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    poll(consumer)
    consumer.commit_async()
    until(lambda: scene.lag() == 0)


def test_a_record_that_cannot_be_read_is_an_error_and_released(scene: Scene) -> None:
    scene.send(b"1", b"x")
    consumer = scene.consumer(value_deserializer=int)
    assert values(poll(consumer)) == [1]
    with pytest.raises(ValueError, match="invalid literal"):
        consumer.poll(WAIT)
    consumer.close()
    again = poll(scene.consumer())
    assert (values(again), counts(again)) == ([b"x"], [2])


def test_a_poll_waits_for_records_and_ends_when_it_is_told_to(scene: Scene) -> None:
    consumer = scene.consumer(fetch_max_wait_ms=50)
    assert consumer.poll(0) == {}
    waker = threading.Timer(0.2, consumer.wakeup)
    waker.start()
    assert consumer.poll(WAIT) == {}
    sender = threading.Thread(target=scene.send, args=(b"late",))
    sender.start()
    assert values(poll(consumer)) == [b"late"]
    sender.join()
    waker.join()


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


def test_a_commit_that_is_not_answered_is_an_error_and_its_outcome_told_later(remote: bool) -> None:
    with TestBroker() as broker:
        scene = Scene(broker, remote)
        scene.send(b"a")
        consumer = scene.consumer()
        poll(consumer)
        told: list[Any] = []
        consumer.set_acknowledgement_commit_callback(lambda *outcome: told.append(outcome))
        late = pytest.raises(KafkaTimeoutError, match="did not answer ShareAcknowledge within 50 ms")
        with broker.hang(), late:
            consumer.commit(50)
        until(lambda: consumer.poll(20) == {} and told)
        assert told == [({TopicPartition("jobs", 0): {0}}, None)]
        consumer.close()


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


def test_consumers_without_topics_are_told_so(scene: Scene) -> None:
    consumer = scene.consumer()
    consumer.unsubscribe()
    for read in (consumer.poll, lambda: next(consumer)):
        with pytest.raises(IllegalStateError, match="not subscribed to any topics"):
            read()
    assert consumer.commit() == {}


def test_the_duration_of_locks_is_known_after_a_fetch(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="20000")
    scene.send(b"a")
    consumer = scene.consumer()
    assert consumer.acquisition_lock_timeout_ms() is None
    poll(consumer)
    assert consumer.acquisition_lock_timeout_ms() == 20_000


def test_a_heartbeat_that_cannot_be_sent_is_an_error(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = scene.consumer()

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(consumer._member), "_heartbeat", fail)
    consumer.subscribe(["jobs", "others"])
    with pytest.raises(ZeroDivisionError):
        consumer.poll(WAIT)


def test_a_consumer_that_is_dropped_leaves(scene: Scene) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    poll(consumer)
    scene.made.clear()
    del consumer
    gc.collect()
    assert counts(poll(scene.consumer())) == [2]


def test_a_group_begins_with_new_records_unless_it_is_told_otherwise(scene: Scene) -> None:
    scene.send(b"old")
    consumer = scene.consumer(group_id="fresh", fetch_max_wait_ms=20)
    until(lambda: consumer.poll(20) == {} and consumer.assignment())
    consumer.poll(100)
    scene.send(b"new")
    assert values(poll(consumer)) == [b"new"]


def test_records_of_a_topic_whose_name_comes_late_are_delivered_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    broker = consumer._client.broker
    ask = broker.metadata

    def slow(*arguments: Any) -> Any:
        gevent.sleep(0.3)
        return ask(*arguments)

    monkeypatch.setattr(broker, "metadata", slow)
    give_up = time.monotonic() + WAIT / 1000
    found: dict[Any, list[Any]] = {}
    while not found and time.monotonic() < give_up:
        found = consumer.poll(20)
    assert (values(found), counts(found)) == ([b"a"], [1])


def test_a_topic_without_a_name_at_first_is_asked_for_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    broker = consumer._client.broker
    ask = broker.metadata
    asked: list[Any] = []

    def late(*arguments: Any) -> Any:
        found = ask(*arguments)
        asked.append(found)
        return found._replace(topics={}) if len(asked) < 3 else found

    monkeypatch.setattr(broker, "metadata", late)
    assert counts(poll(consumer)) == [1]


@pytest.mark.parametrize("error", [UnknownTopicIdError, TopicAuthorizationFailedError, CorruptRecordError])
def test_errors_of_partitions_are_not_asked_for_without_pause(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    consumer = scene.consumer()
    asked: list[Any] = []

    def refuse(request: Any, added: Any, *others: Any) -> ShareFetched:
        asked.append(added)
        return ShareFetched(None, "", 30.0, dict.fromkeys(asked[0], SharedRecords(error)))

    monkeypatch.setattr(consumer._client.broker, "share_fetch", refuse)
    if error is UnknownTopicIdError:  # as Kafka's consumer, it waits for another assignment
        assert consumer.poll(500) == {}
    else:
        with pytest.raises(error, match="partition 0 of topic 'jobs'"):
            consumer.poll(WAIT)
    assert 1 <= len(asked) <= 12


def test_a_fetch_that_the_broker_fails_at_is_repeated(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    broker = consumer._client.broker
    ask = broker.share_fetch
    failed: list[Any] = []

    def fail(*arguments: Any) -> Any:
        if failed:
            return ask(*arguments)
        failed.append(arguments)
        return ShareFetched(UnknownError)

    monkeypatch.setattr(broker, "share_fetch", fail)
    assert values(poll(consumer)) == [b"a"]
    assert failed


def test_a_group_of_another_kind_is_an_error(scene: Scene) -> None:
    with KafkaConsumer(
        "jobs", group_id="other", group_protocol="consumer", bootstrap_servers=scene.servers
    ) as other:
        while not other.assignment():
            other.poll(100)
        consumer = scene.consumer(group_id="other")
        with pytest.raises(GroupIdNotFoundError, match="Group other is not a share group"):
            consumer.poll(WAIT)


def test_configurations_that_cannot_be(scene: Scene) -> None:
    for bad in (
        {"group_id": None},
        {"share_acknowledgement_mode": "maybe"},
        {"share_acquire_mode": "all"},
        {"auto_offset_reset": "earliest"},
    ):
        with pytest.raises(KafkaConfigurationError):
            scene.consumer(**bad)


def test_arguments_of_another_kind_are_named(scene: Scene) -> None:
    consumer = scene.consumer()
    for topics in ("jobs", 5, None):
        with pytest.raises(TypeError, match=f"topics are a list of names, not {topics!r}"):
            consumer.subscribe(topics)
    for most in ("x", 1.5, True):
        with pytest.raises(TypeError, match=f"max_records is a count or None, not {most!r}"):
            consumer.poll(0, most)
    with pytest.raises(ValueError, match="max_records is 1 or more, not 0"):
        consumer.poll(0, 0)
    with pytest.raises(TypeError, match="callback is a function or None, not 5"):
        consumer.set_acknowledgement_commit_callback(5)
    consumer.set_acknowledgement_commit_callback(None)


def test_after_close_nothing_works(scene: Scene) -> None:
    consumer = scene.consumer()
    consumer.close()
    consumer.close()
    for call in (consumer.poll, consumer.commit, consumer.unsubscribe):
        with pytest.raises(IllegalStateError):
            call()
    assert list(consumer) == []
