"""The queue between the nodes of one process: bounded in items and octets; it tells when there is room."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dafka.hub.limits import PACE_ITEMS, PACE_SECONDS
from dafka.mesh import limits
from dafka.mesh.local import LocalQueue
from dafka.mesh.node import Node
from dafka.protocol.commands import GetHeads

ITEM = GetHeads(b"hello", b"C" * 32)


@pytest.fixture
def posted() -> list[Callable[[], object]]:
    return []


@pytest.fixture
def queue(posted: list[Callable[[], object]], monkeypatch: pytest.MonkeyPatch) -> LocalQueue:
    monkeypatch.setattr(limits, "LOCAL_ITEMS", 10)
    monkeypatch.setattr(limits, "LOCAL_BYTES", 100)
    return LocalQueue(posted.append)


def clear() -> None:
    """What a producer has called when it may go on."""


def test_items_come_out_in_their_order_with_the_nodes_that_they_are_from(queue):
    one, other = Node(), Node()
    assert queue.put(one, ITEM, 5)
    assert queue.put(other, ITEM, 6)
    assert (len(queue), queue.octets) == (2, 11)
    assert list(queue.take()) == [(one, ITEM), (other, ITEM)]
    assert (len(queue), queue.octets) == (0, 0)


def test_no_more_items_are_queued_than_there_is_room_for(queue):
    assert [queue.put(None, ITEM, 0) for _ in range(12)] == [True] * 10 + [False] * 2
    assert len(list(queue.take())) == 10


def test_no_more_octets_are_queued_but_for_one_item_that_is_larger(queue):
    assert queue.put(None, ITEM, 500)
    assert not queue.put(None, ITEM, 1)
    assert list(queue.take()) == [(None, ITEM)]
    assert queue.put(None, ITEM, 60)
    assert not queue.put(None, ITEM, 60)


@pytest.mark.parametrize(("items", "size"), [(5, 0), (1, 50)])
def test_it_is_congested_when_it_is_half_full(queue, items, size):
    for _ in range(items):
        assert not queue.congested
        queue.put(None, ITEM, size)
    assert queue.congested


def test_a_producer_is_told_once_when_there_is_room_again(queue, posted):
    for _ in range(6):
        queue.put(None, ITEM, 0)
    queue.when_clear(clear)
    queue.when_clear(clear)
    assert posted == []
    list(queue.take())
    assert posted == [clear]
    list(queue.take())
    assert posted == [clear]


def test_one_round_takes_a_part_of_a_long_queue(queue, posted, monkeypatch):
    monkeypatch.setattr(limits, "ROUND_MESSAGES", 3)
    for _ in range(10):
        queue.put(None, ITEM, 0)
    queue.when_clear(clear)
    assert len(list(queue.take())) == 3
    assert posted == []  # seven are left, and it is half full with five
    assert len(list(queue.take())) == 3
    assert posted == [clear]


def test_items_put_while_others_are_taken_wait_for_the_next_round(queue):
    queue.put(None, ITEM, 0)
    for _ in queue.take():
        queue.put(None, ITEM, 0)
    assert len(queue) == 1


def test_waiting_for_room_ends_when_the_queue_is_closed(queue, posted):
    for _ in range(10):
        queue.put(None, ITEM, 7)
    queue.when_clear(clear)
    queue.close()
    assert (len(queue), queue.octets, posted) == (0, 0, [clear])


def test_a_round_ends_when_its_time_is_over(queue, monkeypatch):
    monkeypatch.setattr(limits, "LOCAL_ITEMS", 3 * PACE_ITEMS)
    for _ in range(3 * PACE_ITEMS):
        queue.put(None, ITEM, 0)
    taken = 0
    for _ in queue.take():
        taken += 1
        if taken == 1:
            time.sleep(2 * PACE_SECONDS)
    assert taken == PACE_ITEMS
