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

_HEAD = struct.Struct(">hqq")
_APPEND = struct.Struct(">iiq")

PRODUCER_ROWS = shapes.rows(
    re.compile("[0-9a-f]{32}/[0-9]{1,6}/[0-9]{1,19}").fullmatch,
    shapes.octets(lambda size: size >= _HEAD.size and not (size - _HEAD.size) % _APPEND.size),
)


class Append(NamedTuple):
    """Records that were appended together: the first one's sequence and offset, and their number."""

    first: int
    records: int
    base_offset: int


class ProducerState(NamedTuple):
    """One producer in one partition. ``time`` (ms) is when it last wrote; the appends are the last ones."""

    epoch: int
    time: int
    transaction_start: int
    appends: tuple[Append, ...]

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
        appends = b"".join(_APPEND.pack(*append) for append in self.appends)
        return _HEAD.pack(self.epoch, self.time, self.transaction_start) + appends


UNKNOWN = ProducerState(NO_EPOCH, 0, NO_TRANSACTION, ())


def unpack(stored: bytes) -> ProducerState:
    """Parse what :meth:`ProducerState.pack` has made."""
    epoch, at, start = _HEAD.unpack_from(stored)
    appends = map(Append._make, _APPEND.iter_unpack(stored[_HEAD.size :]))
    return ProducerState(epoch, at, start, tuple(appends))
