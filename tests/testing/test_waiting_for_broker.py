"""The waiting methods of a TestBroker: for records, for lag and for members."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable
from typing import Any

import pytest

from compat.kafka.share import ShareConsumer
from dafka.testing import NotInTimeError, TestBroker


def test_waiting_for_records_returns_them_when_they_are_there(dafka_broker, kafka_producer):
    later = threading.Timer(0.05, lambda: [kafka_producer.send("t", b"%d" % n) for n in range(3)])
    later.start()
    assert [r.value for r in dafka_broker.wait_for_records("t", 3)] == [b"0", b"1", b"2"]
    later.join()


def test_a_wait_that_ends_fails_the_test_and_names_the_present_state(dafka_broker):
    dafka_broker.preload("t", [b"a"])
    with pytest.raises(AssertionError, match="3 records in topic 't', there are 1"):
        dafka_broker.wait_for_records("t", 3, timeout=0.02)
    with pytest.raises(NotInTimeError, match="group 'g', there is nothing committed yet"):
        dafka_broker.wait_for_lag("g", timeout=0.02)
    with pytest.raises(NotInTimeError, match=r"not within 0\.01 s: the moon"):
        dafka_broker.wait_until(lambda: False, 0.01, "the moon")


def test_waiting_for_a_group_to_catch_up(dafka_broker, kafka_consumer_factory):
    dafka_broker.preload("t", [b"x"] * 100)

    def consume() -> None:
        consumer = kafka_consumer_factory("t", group_id="g", consumer_timeout_ms=100_000)
        for _ in range(100):
            next(consumer)
        consumer.commit()

    thread = threading.Thread(target=consume)
    thread.start()
    dafka_broker.wait_for_lag("g")
    assert dafka_broker.committed("g") == {("t", 0): 100}
    thread.join()


def test_a_wait_for_members_that_ends_names_the_present_state(dafka_broker: TestBroker) -> None:
    with pytest.raises(NotInTimeError, match="3 members of group 'g', it is Dead with 0"):
        dafka_broker.wait_for_members("g", 3, timeout=0.05)


def test_an_event_loop_goes_on_while_a_test_waits() -> None:
    async def test() -> None:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        with TestBroker() as broker:
            ticking = asyncio.create_task(tick())

            async def goes_on(waiting: Awaitable[object]) -> bool:
                before = turns
                with pytest.raises(AssertionError, match=r"not within 0\.1 s: "):
                    await waiting
                return turns > before + 10

            for wait in (
                lambda: broker.async_wait_for_records("orders", timeout=0.1),
                lambda: broker.async_wait_for_lag("billing", timeout=0.1),
                lambda: broker.async_wait_for_members("billing", timeout=0.1),
                lambda: broker.async_wait_until(lambda: False, 0.1),
            ):
                outcomes = [await goes_on(wait())]
                while not outcomes[-1] and len(outcomes) < 8:  # a machine that stands still
                    outcomes.append(await goes_on(wait()))
                assert outcomes[-1]
            ticking.cancel()

            async def there() -> str:
                await asyncio.sleep(0)
                return "there"

            assert await broker.async_wait_until(there) == "there"

    asyncio.run(test())


@pytest.mark.parametrize("no_name", [math.nan, None, 5])
def test_names_and_counts_that_are_none_are_refused_at_once(dafka_broker, no_name):
    for wait, named in (
        (dafka_broker.wait_for_members, "group"),
        (dafka_broker.wait_for_lag, "group"),
        (dafka_broker.wait_for_records, "topic"),
    ):
        with pytest.raises(TypeError, match=f"{named} is a str, not {no_name}"):
            wait(no_name)
        with pytest.raises(TypeError, match=r"(count|at_most) is an int, not nan"):
            wait("name", math.nan)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_groups_of_both_protocols_are_waited_for(
    dafka_broker: TestBroker, kafka_consumer_factory: Any, protocol: str
) -> None:
    dafka_broker.preload("orders", [b"a"])
    with pytest.raises(NotInTimeError, match="it is Dead with 0"):
        dafka_broker.wait_for_members("g", timeout=0.01)
    consumer = kafka_consumer_factory("orders", group_id="g", group_protocol=protocol)
    assert next(consumer).value == b"a"
    (member,) = dafka_broker.wait_for_members("g")
    assert member.partitions == {("orders", 0)}
    consumer.close()
    assert dafka_broker.wait_for_members("g", 0) == []


def test_members_and_lag_of_a_share_group_are_waited_for(dafka_broker: TestBroker) -> None:
    dafka_broker.create_topic("orders", 2)
    servers = dafka_broker.bootstrap_servers
    with ShareConsumer("orders", group_id="g", bootstrap_servers=servers) as consumer:
        (member,) = dafka_broker.wait_for_members("g")
        assert member.partitions == {("orders", 0), ("orders", 1)}
        consumer.poll(100)
        with pytest.raises(NotInTimeError, match="nothing committed yet"):
            dafka_broker.wait_for_lag("g", topic="others", timeout=0.01)
        dafka_broker.preload("orders", [b"a", b"b", b"c"])
        found = 0
        while found < 3:
            assert sum(dafka_broker.lag("g").values()) > 0
            with pytest.raises(NotInTimeError, match="a lag of at most 0 of group 'g', there is "):
                dafka_broker.wait_for_lag("g", timeout=0.01)
            found += sum(map(len, consumer.poll(60_000).values()))
        consumer.commit()
        dafka_broker.wait_for_lag("g")
        assert dafka_broker.lag("g", "orders") == {("orders", 0): 0, ("orders", 1): 0}
    assert dafka_broker.wait_for_members("g", 0) == []
