"""ShareConsumer: a queue for programs, with a broker in the process and over TCP."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import gevent
import pytest
from kafka.errors import (
    CorruptRecordError,
    GroupIdNotFoundError,
    IllegalStateError,
    KafkaConfigurationError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicIdError,
)

from compat.kafka import KafkaConsumer, TopicPartition
from compat.kafka._client import Client
from dafka.broker.interface.broker import TopicSpec
from dafka.broker.interface.share import SharedRecords, ShareFetched
from tests.compat.share.scene import WAIT, Scene, counts, poll, until, values


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


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_polls_and_iterations_in_turn_get_each_record_once(scene: Scene, mode: str) -> None:
    scene.configure("g", share_delivery_count_limit="2")
    expected = [b"%d" % number for number in range(30)]
    scene.send(*expected)
    consumer = scene.consumer(
        consumer_timeout_ms=WAIT, max_poll_records=12, share_acknowledgement_mode=mode, fetch_max_wait_ms=50
    )
    seen = []
    while len(seen) < 30:
        some = [next(consumer)] if len(seen) % 5 < 3 else list(*poll(consumer, max_records=2).values())
        assert len(some) <= 2
        for record in some:
            assert record.delivery_count == 1
            if mode == "explicit":
                consumer.acknowledge(record)
        seen += [record.value for record in some]
    assert seen == expected
    consumer.commit()
    assert scene.lag() == 0


def test_records_that_an_iteration_has_not_handed_out_are_not_accepted(scene: Scene) -> None:
    scene.send(b"a", b"b", b"c", b"d")
    consumer = scene.consumer(consumer_timeout_ms=WAIT)
    assert next(consumer).value == b"a"
    some = poll(consumer, max_records=1)
    assert (values(some), counts(some)) == ([b"b"], [1])
    until(lambda: scene.lag() == 3)  # the poll has sent what is accepted
    consumer.commit()
    assert scene.lag() == 2
    consumer.close()
    again = poll(scene.consumer())
    assert (values(again), counts(again)) == ([b"c", b"d"], [2, 2])


def test_records_of_topics_that_are_not_read_any_more_are_given_back(scene: Scene) -> None:
    scene.send(b"a", b"b")
    consumer = scene.consumer(consumer_timeout_ms=WAIT, fetch_max_wait_ms=20)
    other = scene.consumer()
    assert next(consumer).value == b"a"
    consumer.subscribe(["others"])
    until(lambda: not consumer.assignment())
    assert consumer.poll(0) == {}
    assert values(poll(other)) == [b"b"]
    assert consumer.commit() == {}


def test_each_record_goes_to_one_member_and_what_one_gives_back_to_another(scene: Scene) -> None:
    scene.send(*(b"%d" % number for number in range(6)))
    one, two = scene.consumer(), scene.consumer()
    first = values(poll(one, max_records=3))
    assert first == [b"0", b"1", b"2"]
    assert values(poll(two)) == [b"3", b"4", b"5"]
    one.close()
    again = poll(two)
    assert (values(again), counts(again)) == (first, [2, 2, 2])


def test_a_member_keeps_its_records_when_another_one_is_closed_in_a_poll(scene: Scene) -> None:
    scene.send(b"a")
    one, two = scene.consumer(), scene.consumer(fetch_max_wait_ms=200)
    assert values(poll(one)) == [b"a"]
    until(lambda: two.poll(20) == {} and two.assignment())
    polling = threading.Thread(target=two.poll, args=(WAIT,))
    polling.start()
    until(lambda: two._member._fetching is not None)
    two.close()
    polling.join(60)
    assert scene.consumer().poll(700) == {}  # the fetch has ended at the broker, too
    assert one.commit() == {TopicPartition("jobs", 0): None}


def test_acknowledgements_that_wait_for_their_turn_are_carried_out_before_the_end(scene: Scene) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    told: list[Exception | None] = []
    consumer.set_acknowledgement_commit_callback(lambda offsets, error: told.append(error))
    poll(consumer)
    member, call = consumer._member, consumer._client.call
    call(member._in_order.acquire)
    consumer.commit_async()
    until(lambda: consumer._acks.sent[0].has_begun)

    def end_in_the_turn_in_which_they_may_go_on() -> None:
        member._in_order.release()
        member.close({})

    call(end_in_the_turn_in_which_they_may_go_on)
    consumer.close()
    assert told == [None]
    assert scene.lag() == 0


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


def test_consumers_without_topics_are_told_so(scene: Scene) -> None:
    consumer = scene.consumer()
    consumer.unsubscribe()
    for read in (consumer.poll, lambda: next(consumer)):
        with pytest.raises(IllegalStateError, match="not subscribed to any topics"):
            read()
    assert consumer.commit() == {}


def test_a_heartbeat_that_cannot_be_sent_is_an_error(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = scene.consumer()

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(consumer._member), "_heartbeat", fail)
    consumer.subscribe(["jobs", "others"])
    with pytest.raises(ZeroDivisionError):
        consumer.poll(WAIT)


def test_a_fetch_that_another_subscription_finds_on_its_way_gives_back_what_it_brings(scene: Scene) -> None:
    scene.connection.call("create_topics", {"others": TopicSpec(1)})
    consumer = scene.consumer(fetch_max_wait_ms=WAIT)
    until(lambda: consumer.poll(50) == {} and consumer.assignment() and consumer._fetch is None)
    consumer.wakeup()
    assert consumer.poll(WAIT) == {}  # a fetch waits at the broker
    consumer.subscribe(["others"])
    scene.send(b"a", topic="jobs")
    scene.send(b"b", topic="others")
    assert [(one.topic, one.value) for (one,) in poll(consumer).values()] == [("others", b"b")]
    again = poll(scene.consumer())
    assert (values(again), counts(again)) == ([b"a"], [2])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_subscription_that_is_interrupted_takes_effect(
    scene: Scene, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.send(b"a")
    consumer = scene.consumer()
    consumer.unsubscribe()
    call = Client.call

    def interrupted(client: Client, *arguments: Any) -> None:
        if moment == "after":
            call(client, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Client, "call", interrupted)
        consumer.subscribe(["jobs"])
    assert consumer.subscription() == {"jobs"}
    assert values(poll(consumer)) == [b"a"]


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
