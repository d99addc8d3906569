"""A request that does not fit into what is read at a time: the buffer that it comes into.

The announced length takes no memory: the buffer grows as octets arrive.
"""

from __future__ import annotations

from collections.abc import Callable

from dafka.broker.codec.errors import BadRequestError
from dafka.broker.server import limits
from dafka.broker.server.budget import Budget
from dafka.broker.server.spare_buffers import SpareBuffers
from dafka.hub.turns import next_turn

PRODUCE_KEY = b"\0\0"
"""The first octets of a Produce request."""

_ZEROS = memoryview(bytes(limits.FIRST_CHUNK))  # growth of a buffer: new zeros each time would cost more


class LongRequest:
    """A request of ``size`` octets of which some have come. :meth:`release` gives back what it has taken from
    the budget, and its buffer."""

    def __init__(self, size: int, begun: memoryview, budget: Budget, spares: SpareBuffers) -> None:
        self._size = size
        self._begun = len(begun)
        self._budget = budget
        self._spares = spares
        self._held = 0
        self._buffer = spares.take(size)
        self._lent = len(self._buffer)
        self._buffer[: len(begun)] = begun

    @property
    def data(self) -> memoryview:
        """The whole request, once it is there."""
        return memoryview(self._buffer)[: self._size]

    def fill(self, receive_into: Callable[[memoryview], int]) -> None:
        """Receive the rest. Waits as a green thread. Raises BadRequestError."""
        buffer, size = self._buffer, self._size
        filled = room = self._begun
        rested = filled
        while filled < size:
            if size > limits.SMALL_REQUEST_MAX_BYTES and filled >= 2 and buffer[:2] != PRODUCE_KEY:
                detail = f"a request of {size} bytes; {limits.SMALL_REQUEST_MAX_BYTES} are the most"
                raise BadRequestError("size", detail)
            if filled == room:
                room = min(size, max(limits.FIRST_CHUNK, 2 * filled))
                self._hold(room - filled)
                _grow(buffer, room)
            with memoryview(buffer) as view, view[filled:room] as free:
                count = receive_into(free)
            if not count:
                raise BadRequestError("short", f"it ended after {filled} of {size} bytes of a request")
            filled += count
            if filled - rested > limits.RECEIVED_AT_ONCE:
                rested = filled
                next_turn()

    def release(self) -> None:
        """Give the memory back to the budget."""
        self._budget.give(self._held)
        self._held = 0
        self._spares.keep(self._buffer, self._lent)
        self._buffer, self._lent = bytearray(), 0

    def _hold(self, room: int) -> None:
        self._budget.wait(self._held)
        self._budget.take(room)
        self._held += room


def _grow(buffer: bytearray, length: int) -> None:
    while len(buffer) < length:
        buffer += _ZEROS[: length - len(buffer)]
