"""Buffers of long requests are used again when nobody has a view of them, and only few are kept."""

from __future__ import annotations

from dafka.broker.server import limits
from dafka.broker.server.spare_buffers import SpareBuffers


def test_a_buffer_is_given_to_one_request_at_a_time():
    spares, buffer = SpareBuffers(), bytearray(10)
    spares.keep(buffer)
    assert spares.take() is buffer and len(buffer) == 10
    assert spares.take() == b""


def test_a_buffer_is_not_used_again_while_somebody_has_a_view_of_it():
    spares, buffer = SpareBuffers(), bytearray(b"batch")
    view = memoryview(buffer)[1:3]
    spares.keep(buffer)
    assert spares.take() == b"" and view == b"at"
    del view
    assert spares.take() is buffer


def test_only_the_last_buffers_are_kept_and_few_octets():
    spares = SpareBuffers()
    spares.keep(bytearray(limits.SPARE_BYTES + 1))
    assert spares.take() == b""
    for number in range(1, limits.SPARE_BUFFERS + 4):
        spares.keep(bytearray(number))
    assert [len(spares.take()) for _ in range(limits.SPARE_BUFFERS + 1)] == [*range(4, 20), 0]
    for size in (limits.SPARE_BYTES // 2, limits.SPARE_BYTES // 2, 1):
        spares.keep(bytearray(size))
    assert [len(spares.take()) for _ in range(3)] == [limits.SPARE_BYTES // 2, 1, 0]
