"""Ctrl-C in the middle of a poll or an iteration: records that were not handed out come again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from timing import until

from compat.kafka import Deserializer, KafkaConsumer, TopicPartition
from compat.kafka.consumer import _group_member, _polling, group
from compat.kafka.consumer._assigned import member, session
from compat.kafka.consumer._in_group import GroupSession
from compat.kafka.consumer._listener import Notices
from compat.kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from dafka.testing import TestBroker
from tests.compat.consumer.members import PARTITIONS, Members, join
from tests.compat.consumer.readers import Recorder
from tests.compat.interrupting import InterruptedCall

Consumers = Callable[..., KafkaConsumer]


class InterruptedAt(Deserializer):
    """A deserializer in which a record of this value meets Ctrl-C, the first time."""

    def __init__(self, value: bytes) -> None:
        self.value: bytes | None = value

    def deserialize(self, topic: str, headers: Any, data: bytes) -> bytes:
        if data == self.value:
            self.value = None
            raise KeyboardInterrupt
        return data


def test_an_interrupted_poll_returns_its_records_the_next_time(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.create_topic("t", 2)
    dafka_broker.preload("t", [b"a", b"b"], partition=0)
    dafka_broker.preload("t", [b"c", b"d"], partition=1)
    consumer = kafka_consumer_factory(group_id="g", value_deserializer=InterruptedAt(b"d"))
    consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
    with pytest.raises(KeyboardInterrupt):
        until(lambda: consumer.poll(1000))
    assert [consumer.position(TopicPartition("t", number)) for number in (0, 1)] == [0, 0]
    seen: list[Any] = []
    until(
        lambda: seen.extend(r.value for rows in consumer.poll(100).values() for r in rows) or len(seen) == 4
    )
    assert sorted(seen) == [b"a", b"b", b"c", b"d"]
    consumer.commit()
    assert dafka_broker.committed("g") == {("t", 0): 2, ("t", 1): 2}


def test_an_interrupted_iteration_goes_on_where_it_was(
    dafka_broker: TestBroker, new_consumer: Consumers
) -> None:
    dafka_broker.preload("t", [b"%d" % number for number in range(10)])
    consumer = new_consumer("t", value_deserializer=InterruptedAt(b"5"))
    seen = []
    with pytest.raises(KeyboardInterrupt):
        for record in consumer:
            seen.append(record.value)
    seen += [record.value for record in consumer]
    assert seen == [b"%d" % number for number in range(10)]


HANDING_OUT = (KafkaConsumer.poll.__code__, KafkaConsumer.__next__.__code__)


def iterate(consumer: KafkaConsumer, seen: list[Any]) -> None:
    for record in consumer:
        seen.append(record.value)
        if len(seen) == 9:
            break


def poll(consumer: KafkaConsumer, seen: list[Any]) -> None:
    while len(seen) < 9:
        for records in consumer.poll(1000).values():
            seen += [record.value for record in records]


@pytest.mark.parametrize("read", [iterate, poll])
@pytest.mark.parametrize(
    ("protocol", "modules"),
    [
        ("classic", (group, _polling)),
        ("classic", (_group_member,)),
        ("consumer", (member,)),
        ("consumer", (session,)),
    ],
)
def test_whichever_call_is_interrupted_each_record_comes_once_and_the_listener_is_told(
    dafka_broker: TestBroker,
    kafka_consumer_factory: Consumers,
    read: Callable[..., None],
    protocol: str,
    modules: Any,
) -> None:
    for batch in range(3):
        dafka_broker.preload("t", [b"%d" % number for number in range(3 * batch, 3 * batch + 3)])
    for number in count(1):
        consumer = kafka_consumer_factory(
            max_poll_records=2,
            group_id=f"g{number}",
            group_protocol=protocol,
            consumer_timeout_ms=100_000,
        )
        listener = Recorder()
        consumer.subscribe(["t"], listener=listener)
        seen: list[Any] = []
        interruption = InterruptedCall(number, *modules, handing_out=HANDING_OUT)
        with suppress(KeyboardInterrupt), interruption:
            read(consumer, seen)
        if interruption.interrupted:
            read(consumer, seen)
        consumer.close()
        assert seen == [b"%d" % value for value in range(9)]
        assert ("assigned", {0}) in listener.told()
        if not interruption.interrupted:
            break
    assert number > (5 if protocol == "consumer" else 20)


@pytest.mark.parametrize(
    "config",
    [
        {"group_protocol": "consumer"},
        {},
        {"partition_assignment_strategy": [CooperativeStickyAssignor]},
    ],
    ids=["consumer", "eager", "cooperative"],
)
def test_listeners_are_told_by_the_next_poll_of_what_ctrl_c_kept_from_them(
    new_member: Members, config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener, interrupted = Recorder(), ["revoked", "assigned"]
    tell = Notices.tell

    def interrupt(notices: Notices, what: str, partitions: set[TopicPartition]) -> None:
        if notices._listener is listener and partitions and what == interrupted[-1]:
            interrupted[-1] = ""
            raise KeyboardInterrupt
        tell(notices, what, partitions)

    def follow(*consumers: KafkaConsumer) -> set[int]:
        """What the first one has been told that it has, when all have what they should."""
        with pytest.raises(KeyboardInterrupt):
            join(*consumers)
            consumers[0].poll(0)
        join(*consumers)
        heard: set[int] = set()
        for what, some in listener.told():
            heard = heard | some if what == "assigned" else heard - some
        return heard

    monkeypatch.setattr(Notices, "tell", interrupt)
    one = new_member(listener=listener, **config)
    assert follow(one) == set(range(PARTITIONS))
    interrupted.pop()
    other = new_member(**config)
    assert follow(one, other) == {partition.partition for partition in one.assignment()}
    assert len(one.assignment()) == PARTITIONS // 2


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_whose_leaving_is_interrupted_joins_again_when_it_subscribes(
    new_member: Members, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = new_member(group_protocol=protocol)
    join(consumer)
    leave = GroupSession.leave

    def leave_interrupted(session: GroupSession, timeout_ms: float | None) -> None:
        leave(session, timeout_ms)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(GroupSession, "leave", leave_interrupted)
        consumer.unsubscribe()
    listener = Recorder()
    consumer.subscribe(["t"], listener=listener)
    join(consumer)
    assert listener.told()[-1] == ("assigned", set(range(PARTITIONS)))


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's"
)
def test_a_poll_that_waits_is_interrupted_at_once_and_can_be_repeated(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.create_topic("t")
    consumer = kafka_consumer_factory("t", group_id="g")
    until(lambda: consumer.poll(50) == {} and consumer.assignment())
    with pytest.raises(KeyboardInterrupt):  # wherever this thread is by then
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        consumer.poll(100_000)
    dafka_broker.preload("t", [b"v"])
    assert until(lambda: consumer.poll(1000))[TopicPartition("t", 0)][0].value == b"v"
