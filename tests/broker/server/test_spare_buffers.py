"""Buffers of long requests are used again when nobody has a view of them, and only few are kept and lent."""

from __future__ import annotations

import random

from dafka.broker.server import limits
from dafka.broker.server.budget import Budget
from dafka.broker.server.long_request import PRODUCE_KEY, LongRequest
from dafka.broker.server.spare_buffers import SpareBuffers

LONG = limits.FIRST_CHUNK


def test_a_buffer_is_given_to_one_request_at_a_time():
    spares, buffer = SpareBuffers(), bytearray(LONG)
    spares.keep(buffer, 0)
    assert spares.take(LONG) is buffer and len(buffer) == LONG
    assert spares.take(LONG) == b""


def test_a_buffer_is_not_used_again_while_somebody_has_a_view_of_it():
    spares, buffer = SpareBuffers(), bytearray(b"batch" * LONG)
    view = memoryview(buffer)[1:3]
    spares.keep(buffer, 0)
    assert spares.take(len(buffer)) == b"" and view == b"at"
    del view
    assert spares.take(len(buffer)) is buffer


def test_only_the_last_long_buffers_are_kept_and_few_octets():
    spares = SpareBuffers()
    for size in (limits.SPARE_BYTES + 1, LONG - 1):
        spares.keep(bytearray(size), 0)
    assert spares.take(limits.SPARE_BYTES) == b""
    for number in range(limits.SPARE_BUFFERS + 3):
        spares.keep(bytearray(LONG + number), 0)
    taken = [len(spares.take(LONG)) - LONG for _ in range(limits.SPARE_BUFFERS + 1)]
    assert taken == [*range(3, limits.SPARE_BUFFERS + 3), -LONG]
    spares = SpareBuffers()
    for size in (limits.SPARE_BYTES // 2, limits.SPARE_BYTES // 2, LONG):
        spares.keep(bytearray(size), 0)
    assert [len(spares.take(limits.SPARE_BYTES)) for _ in range(3)] == [limits.SPARE_BYTES // 2, LONG, 0]


def test_a_request_is_lent_no_buffer_that_is_much_longer_than_itself():
    spares, buffer = SpareBuffers(), bytearray(4 * LONG)
    spares.keep(buffer, 0)
    assert spares.take(100) == b"" and spares.take(2 * LONG - 1) == b""
    assert spares.take(2 * LONG) is buffer


def test_requests_that_wait_hold_little_more_than_what_the_budget_counts():
    chance, budget, spares = random.Random(7), Budget(1 << 40), SpareBuffers()
    waiting: list[tuple[LongRequest, memoryview]] = []
    for _ in range(300):
        size = chance.choice((100, 5000, LONG, 1 << 20, 6 << 20))
        request = LongRequest(size, memoryview(PRODUCE_KEY), budget, spares)
        buffer = request.data.obj
        if chance.random() < 0.6:  # it has been announced, and waits for its octets
            waiting.append((request, memoryview(buffer)))
            counted = 2 * budget.used + 100 * len(waiting)
            assert sum(len(view) for _, view in waiting) <= limits.SPARE_BYTES + counted
        else:
            request.fill(len)
            assert len(buffer) <= max(2 * size, LONG)
            request.release()
        if len(waiting) > 30:
            request, view = waiting.pop(chance.randrange(len(waiting)))
            view.release()
            request.release()
    for request, view in waiting:
        view.release()
        request.release()
    assert budget.used == 0
    spares.keep(bytearray(limits.SPARE_BYTES), 0)
    assert len(spares.take(limits.SPARE_BYTES)) == limits.SPARE_BYTES  # nothing counts as lent any more
