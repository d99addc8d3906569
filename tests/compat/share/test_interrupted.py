"""Ctrl-C in a share consumer, in whichever of its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from kafka.structs import TopicPartition
from timing import until

from compat.kafka.consumer._records import ConsumerRecord
from compat.kafka.share import AcknowledgeType, ShareConsumer, _acknowledgements, _records, consumer
from compat.kafka.share._acknowledgements import Acknowledgements
from compat.kafka.share._member import Request
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.testing import TestBroker
from tests.compat.interrupting import InterruptedCall

HANDING_OUT = (ShareConsumer.poll.__code__, ShareConsumer.__next__.__code__)
STEP = 19  # of some 600 calls


def test_outcomes_are_told_once_and_renewed_records_come_once_whichever_call_is_interrupted() -> None:
    for number in count(1):
        told: list[Any] = []
        acks = Acknowledgements(False)
        acks.callback = lambda offsets, error, told=told: told.append((offsets, error))  # type: ignore[misc]
        for name, type_, error in (
            ("a", AcknowledgeType.RENEW, None),
            ("b", AcknowledgeType.RENEW, KeyError),
            ("c", AcknowledgeType.ACCEPT, None),
        ):
            acks.sent.append(request(name, type_, error))
            acks.renewing[TopicPartition(name, 0), 7] = record(name)
        with suppress(KeyboardInterrupt), InterruptedCall(number, _acknowledgements) as interruption:
            acks.learn()
        acks.learn()
        assert [(offsets, type(error)) for offsets, error in told] == [
            ({TopicPartition("a", 0): {7}}, type(None)),
            ({TopicPartition("b", 0): {7}}, KeyError),
            ({TopicPartition("c", 0): {7}}, type(None)),
        ]
        assert acks.renewed == {TopicPartition("a", 0): [record("a")]}
        assert not acks.sent
        if not interruption.interrupted:
            break
    assert number > 20


def request(topic: str, type_: int, error: Any) -> Request:
    made = Request({TopicPartition(topic, 0): {7: type_}})
    made.outcome, made.is_over = [(TopicPartition(topic, 0), error)], True
    return made


def record(topic: str) -> Any:
    return ConsumerRecord(topic, 0, -1, 7, 0, 0, None, b"", [], None, -1, 0, -1)


def test_a_failure_that_is_found_by_an_interrupted_call_is_kept() -> None:
    for number in count(1):
        acks = Acknowledgements(False)
        acks.sent.append(request("a", AcknowledgeType.ACCEPT, None))
        failure = acks.sent[0].error = ValueError()
        with suppress(KeyboardInterrupt), InterruptedCall(number, _acknowledgements) as interruption:
            acks.learn()
        acks.learn()
        assert acks.failure is failure
        if not interruption.interrupted:
            break
    assert number > 5


@pytest.mark.parametrize("first", range(1, STEP, 6))
def test_each_record_comes_once_and_the_callback_is_told_once_whichever_call_is_interrupted(
    dafka_broker: TestBroker, first: int
) -> None:
    connection = connect(dafka_broker.bootstrap_servers, 60.0)
    for number in count(first, STEP):
        left, right = f"left-{number}", f"right-{number}"
        dafka_broker.create_topic(left)
        dafka_broker.create_topic(right)
        dafka_broker.preload(left, [b"%d" % value for value in range(8)])
        dafka_broker.preload(right, [b"8", b"9"])
        earliest = [ConfigChange("share.auto.offset.reset", 0, "earliest")]
        connection.call("alter_configs", {Resource(ResourceType.GROUP, f"g{number}"): earliest})
        reader = ShareConsumer(
            group_id=f"g{number}",
            bootstrap_servers=dafka_broker.bootstrap_servers,
            max_poll_records=3,
            share_acquire_mode="record_limit",
            consumer_timeout_ms=60_000,
            fetch_max_wait_ms=20,
        )
        seen: Counter[tuple[str, int, int]] = Counter()
        told: Counter[tuple[str, int]] = Counter()
        reader.set_acknowledgement_commit_callback(
            lambda offsets, error, told=told: told.update(  # type: ignore[misc]
                [(key.topic, offset) for key, some in offsets.items() for offset in some if error is None]
            )
        )
        interruption = InterruptedCall(number, consumer, _acknowledgements, _records, handing_out=HANDING_OUT)
        with suppress(KeyboardInterrupt), interruption:
            live(reader, left, right, seen)
        if interruption.interrupted:
            live(reader, left, right, seen)
        reader.close()
        expected = {(left, offset, 1) for offset in range(8)} | {(right, offset, 1) for offset in range(2)}
        assert dict(seen) == dict.fromkeys(expected, 1)
        assert dict(told) == dict.fromkeys({one[:2] for one in expected}, 1)
        if not interruption.interrupted:
            break
    connection.close()


def live(reader: ShareConsumer, left: str, right: str, seen: Counter[tuple[str, int, int]]) -> None:
    """Read both topics in different ways; a second time it goes on where it was interrupted."""

    def read(some: Callable[[], list[Any]], enough: int) -> None:
        def reads() -> bool:
            for one in some():
                seen[one.topic, one.offset, one.delivery_count] += 1
            return len(seen) >= enough

        if len(seen) < enough:
            until(reads)

    def poll() -> list[Any]:
        return [one for some in reader.poll(30, max_records=2).values() for one in some]

    if len(seen) < 8:
        reader.subscribe([left])
        read(poll, 3)
        reader.commit()
        read(lambda: [next(reader)], 6)
        read(poll, 8)
    reader.subscribe([left, right])
    read(poll, 10)
    reader.commit_async()
    reader.commit()
    reader.subscribe([right])
