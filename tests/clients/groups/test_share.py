"""Share groups with Java's KafkaShareConsumer, beside Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from clients.adapters import Confluent
from clients.adapters.client import SECONDS
from clients.adapters.java import Delivered, Sharing, tools_missing
from clients.conftest import MakeTopic
from clients.groups.settings import set_group
from clients.records import Record
from timing import until

PARTITIONS = 2
VALUES = {b"%d" % number for number in range(60)}

Open = Callable[..., Sharing]


@pytest.fixture
def jobs(servers: str, new_topic: MakeTopic) -> str:
    """A topic with one record of each value."""
    topic = new_topic(PARTITIONS)
    records = [Record(value, partition=int(value) % PARTITIONS) for value in VALUES]
    Confluent().produce(servers, topic, records)
    return topic


@pytest.fixture
def join(servers: str, jobs: str) -> Iterator[Open]:
    """``join(mode)`` is one more consumer of a group that begins with the first record."""
    reason = tools_missing()
    if reason is not None:
        pytest.skip(reason)
    group = f"share-{uuid4().hex[:8]}"
    set_group(servers, group, {"share.auto.offset.reset": "earliest"})
    with ExitStack() as stack:

        def join(mode: str = "implicit") -> Sharing:
            settings = {
                "bootstrap.servers": servers,
                "group.id": group,
                "share.acknowledgement.mode": mode,
            }
            consumer = Sharing(uuid4().hex, jobs, settings)
            stack.callback(consumer.close)
            return consumer

        yield join


def read(consumer: Sharing, done: Callable[[list[Delivered]], bool]) -> list[Delivered]:
    """Poll until what came is enough."""
    came: list[Delivered] = []

    def enough() -> bool:
        came.extend(consumer.poll())
        return done(came)

    until(enough, came, SECONDS)
    return came


def values(delivered: list[Delivered]) -> list[bytes]:
    return [one.record.value or b"" for one in delivered]


def test_records_are_acknowledged_by_the_next_poll_and_come_once(join: Open) -> None:
    consumer = join()
    came = read(consumer, lambda came: len(came) >= len(VALUES))
    assert sorted(values(came)) == sorted(VALUES)
    assert {one.deliveries for one in came} == {1}
    assert not any(consumer.commit().values())
    assert consumer.poll() == []


def test_released_records_come_again_and_accepted_or_rejected_ones_do_not(join: Open) -> None:
    consumer = join("explicit")
    again: set[bytes] = set()
    first: list[Delivered] = []

    def all_came() -> bool:
        came = consumer.poll()
        types = []
        for one in came:
            number = int(one.record.value or b"")
            release = number % 3 == 0 and one.deliveries == 1
            types.append((one, "RELEASE" if release else ("REJECT" if number % 3 == 1 else "ACCEPT")))
            if one.deliveries == 1:
                first.append(one)
            else:
                assert one.deliveries == 2
                again.add(one.record.value or b"")
        if types:
            consumer.acknowledge(types)
            assert not any(consumer.commit().values())
        return len(first) == len(VALUES) and len(again) == len(VALUES) / 3

    until(all_came, (first, again), SECONDS)
    assert again == {value for value in VALUES if int(value) % 3 == 0}
    assert consumer.poll() == []


def test_a_lock_is_renewed_and_what_a_consumer_leaves_comes_to_another_one(join: Open) -> None:
    one = join("explicit")
    came = read(one, bool)
    one.acknowledge((each, "RENEW") for each in came)
    assert not any(one.commit().values())
    renewed = read(one, lambda renewed: len(renewed) >= len(came))  # its next poll has them again
    assert renewed == came
    one.acknowledge((each, "ACCEPT") for each in came[1:])
    assert not any(one.commit().values())
    one.acknowledge([(came[0], "RELEASE")])
    one.close()  # sends it; before that, the consumer could fetch the record once more
    found = read(join(), lambda found: came[0].record.value in values(found))
    assert not set(values(came[1:])).intersection(values(found))
    assert [each.deliveries for each in found if each.record.value == came[0].record.value] == [2]
