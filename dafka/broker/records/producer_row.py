"""A row about a producer in a partition: its epoch, its last appends, and where its transaction begins."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from dafka.broker.interface.transactions import NO_EPOCH
from dafka.log import shapes
from dafka.protocol.batch import SEQUENCES, BatchHeader

PRODUCERS = "producers"
NO_TRANSACTION = -1

_OLD_HEAD = struct.Struct(">hqq")
_HEAD = struct.Struct(">hqqq")
_APPEND = struct.Struct(">iiq")

PRODUCER_ROWS = shapes.rows(
    re.compile("[0-9a-f]{32}/[0-9]{1,6}/[0-9]{1,19}").fullmatch,
    shapes.octets(lambda size: _head_of(size) is not None),
)


def _head_of(size: int) -> struct.Struct | None:
    """How a row of so many octets begins: rows of older releases have no ``last_timestamp``."""
    for head in (_HEAD, _OLD_HEAD):
        if size >= head.size and not (size - head.size) % _APPEND.size:
            return head
    return None


class Append(NamedTuple):
    """Records that were appended together: the first one's sequence and offset, and their number."""

    first: int
    records: int
    base_offset: int


class ProducerState(NamedTuple):
    """One producer in one partition. ``time`` (ms) is when it last wrote; the appends are the last ones.

    ``last_timestamp`` is the largest in its last batch, or that of its last marker.
    """

    epoch: int
    time: int
    transaction_start: int
    appends: tuple[Append, ...]
    last_timestamp: int

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record; -1 if its epoch has none."""
        if not self.appends:
            return -1
        last = self.appends[-1]
        return (last.first + last.records - 1) % SEQUENCES

    def duplicate(self, header: BatchHeader) -> int | None:
        """The offset that a batch was given when it came for the first time, or None."""
        for append in reversed(self.appends):
            distance = (header.base_sequence - append.first) % SEQUENCES
            if distance + header.count <= append.records:
                return append.base_offset + distance
        return None

    def pack(self) -> bytes:
        """The value of its row."""
        appends = b"".join([_APPEND.pack(*append) for append in self.appends])
        head = _HEAD.pack(self.epoch, self.time, self.transaction_start, self.last_timestamp)
        return head + appends


UNKNOWN = ProducerState(NO_EPOCH, 0, NO_TRANSACTION, (), -1)


def unpack(stored: bytes) -> ProducerState:
    """Parse what :meth:`ProducerState.pack` has made."""
    head = _head_of(len(stored))
    assert head is not None, "the shape of its table"
    epoch, at, start, *timestamp = head.unpack_from(stored)
    appends = map(Append._make, _APPEND.iter_unpack(stored[head.size :]))
    return ProducerState(epoch, at, start, tuple(appends), timestamp[0] if timestamp else at)
