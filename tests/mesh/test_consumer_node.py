"""The hub side of a consumer: who waits, who is woken, and what counts as room."""

from __future__ import annotations

import threading
import time

import pytest
from timing import SECONDS, until

from dafka import Consumer, Producer, Tower


def test_the_end_of_a_consumer_wakes_who_waits():
    with Tower() as tower:
        consumer = Consumer(["t"], tower=tower)
        waiting = threading.Thread(target=consumer._node.wait, args=(None,))
        waiting.start()
        until(lambda: consumer._node._waiter is not None)
        consumer.close()
        waiting.join(SECONDS)
        assert not waiting.is_alive()
        assert consumer._node._waiter is None


@pytest.mark.parametrize("timeout", [0, 0.02])
def test_a_wait_ends_with_its_time(timeout: float):
    with Tower() as tower, Consumer(["t"], tower=tower) as consumer:
        began = time.monotonic()
        consumer._node.wait(timeout)
        assert timeout <= time.monotonic() - began < 10
        assert consumer._node._waiter is None


def test_a_look_says_whether_there_is_a_run():
    with (
        Tower() as tower,
        Consumer(["t"], tower=tower) as consumer,
        Producer("t", tower=tower, min_stores=0) as producer,
    ):
        node = consumer._node
        assert not node.look()
        producer.send(b"hello")
        until(node.look)
        assert [record.value for record in consumer.poll()] == [b"hello"]
        assert not node.look()


def test_records_that_the_user_has_taken_are_room_again():
    with (
        Tower() as tower,
        Consumer(["t"], tower=tower) as consumer,
        Producer("t", tower=tower, min_stores=0) as producer,
    ):
        for _ in range(3):
            producer.send(bytes(100))
        until(lambda: consumer.metrics()["inbox_records"] == 3)
        assert consumer.metrics()["inbox_bytes"] == 300
        taken = 0
        while taken < 3:
            taken += len(consumer.poll(SECONDS))
        metrics = consumer.metrics()
        assert (metrics["inbox_records"], metrics["inbox_bytes"]) == (0, 0)
