"""Long requests: their buffer grows as octets arrive, and counts in the budget as long as it is held."""

from __future__ import annotations

import random

import gevent
import pytest

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.server import limits
from dafka.broker.server.budget import Budget
from dafka.broker.server.long_request import PRODUCE_KEY, LongRequest
from dafka.broker.server.spare_buffers import SpareBuffers
from dafka.hub.hub import get_hub
from dafka.hub.turns import next_turn


def receiver(octets, most, looked=lambda: None):
    """Gives these octets, at most so many at a time."""
    left = [octets]

    def receive_into(free):
        looked()
        some = left[0][: min(most, len(free))]
        free[: len(some)] = some
        left[0] = left[0][len(some) :]
        return len(some)

    return receive_into


@pytest.mark.parametrize("begun", [0, 1, 70_000])
@pytest.mark.parametrize("most", [977, 1 << 20])
def test_the_buffer_grows_as_octets_arrive_and_holds_what_came(begun, most):
    octets = PRODUCE_KEY + random.Random(3).randbytes(400_000)
    budget = Budget(1 << 30)
    request = LongRequest(len(octets), memoryview(octets)[:begun], budget, SpareBuffers())
    used = []
    request.fill(receiver(octets[begun:], most, lambda: used.append(budget.used)))
    assert request.data == octets
    assert used[0] <= max(limits.FIRST_CHUNK, begun)
    assert max(used) == budget.used == len(octets) - begun
    request.release()
    request.release()
    assert budget.used == 0


def test_a_request_that_ends_too_early_says_how_much_has_come():
    request = LongRequest(100_000, memoryview(b"abc"), Budget(1 << 30), SpareBuffers())
    with pytest.raises(BadRequestError, match="ended after 1003 of 100000 bytes"):
        request.fill(receiver(bytes(1000), 977))


def test_only_produce_may_be_very_large():
    size = limits.SMALL_REQUEST_MAX_BYTES + 1
    request = LongRequest(size, memoryview(b"\0"), Budget(1 << 30), SpareBuffers())
    with pytest.raises(BadRequestError, match=f"a request of {size} bytes"):
        request.fill(receiver(b"\1" + bytes(size), size))


def test_one_that_comes_as_fast_as_it_is_read_takes_several_turns_of_the_hub():
    octets = PRODUCE_KEY + bytes(8 * limits.RECEIVED_AT_ONCE)
    request = LongRequest(len(octets), memoryview(b""), Budget(1 << 30), SpareBuffers())
    turns = []

    def count() -> None:
        while request.data != octets:
            turns.append(1)
            next_turn()

    def both() -> None:
        counting = gevent.spawn(count)
        request.fill(receiver(octets, limits.RECEIVED_AT_ONCE))
        counting.get()

    get_hub().run(both)
    assert len(turns) >= 4


@pytest.mark.parametrize(("first", "second"), [(180_000, 100_000), (100_000, 300_000)])
def test_the_next_request_comes_into_the_same_buffer_and_is_only_what_came(first, second):
    budget, spares = Budget(1 << 30), SpareBuffers()
    seen = []
    for size in (first, second):
        octets = random.Random(size).randbytes(size)
        request = LongRequest(size, memoryview(octets)[:70_000], budget, spares)
        request.fill(receiver(octets[70_000:], 50_000))
        assert request.data == octets and budget.used == size - 70_000
        seen.append(request.data.obj)
        request.release()
    assert seen[0] is seen[1]
