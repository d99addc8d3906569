"""The record batches of one flush."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import NamedTuple

from dafka.protocol.batch_writer import encode_columns
from dafka.protocol.raw import Records, message_sizes, records_of_messages, value_sizes
from dafka.zper.gathering import Run
from dafka.zper.singles import Frames, Singles

COPIED = "zper.copied"
"""The header of a message that another node has copied to this one; its replicas do not get it from here."""

RECORD_OCTETS = 64  # a bound of what a record has beside its message in RAW form, and the key of a marked one


class Batch(NamedTuple):
    """Messages as one record batch. ``sizes`` are their octets in RAW form; the first has the place ``first``
    in its flush."""

    messages: Sequence[Frames]
    timestamps: list[int]
    sizes: list[int]
    copied: bool = False
    first: int = 0

    @property
    def places(self) -> range:
        """The places that the messages have in their flush."""
        return range(self.first, self.first + len(self.messages))

    def encode(self) -> bytes:
        """The record batch."""
        keys, values, headers = _records_of(self.messages)
        if self.copied:
            headers = [(*some, (COPIED, b"")) for some in headers]
        return encode_columns(self.timestamps, keys, values, headers)

    def halves(self) -> tuple[Batch, Batch]:
        """The first and the second half of it."""
        messages, timestamps, sizes, copied, first = self
        middle = len(messages) // 2
        return (
            Batch(messages[:middle], timestamps[:middle], sizes[:middle], copied, first),
            Batch(messages[middle:], timestamps[middle:], sizes[middle:], copied, first + middle),
        )


def batches(runs: Iterable[Run], limit: int) -> Iterator[Batch]:
    """The messages of the runs, in their order, in batches of ``limit`` octets; a longer one stands alone."""
    gathered = _Gathered(0, False)
    for run in runs:
        sizes = _sizes_of(run.messages)
        ends = list(accumulate(_bounds(run.messages, sizes), initial=0))
        begin = 0
        while begin < len(sizes):
            fitting = bisect_right(ends, ends[begin] + limit - gathered.octets) - 1
            if run.copied != gathered.copied or fitting <= begin:
                if gathered.sizes:
                    yield gathered.batch()
                    gathered = _Gathered(gathered.first + len(gathered.sizes), run.copied)
                    continue
                gathered.copied = run.copied
                fitting = max(fitting, begin + 1)
            gathered.add(run.messages[begin:fitting], run.timestamp, sizes[begin:fitting])
            gathered.octets += ends[fitting] - ends[begin]
            begin = fitting
    if gathered.sizes:
        yield gathered.batch()


class _Gathered:
    """Messages that will be one batch."""

    def __init__(self, first: int, copied: bool) -> None:
        self.first = first
        self.copied = copied
        self.octets = 0
        self.sizes: list[int] = []
        self._parts: list[Sequence[Frames]] = []
        self._timestamps: list[int] = []

    def add(self, messages: Sequence[Frames], timestamp: int, sizes: list[int]) -> None:
        self._parts.append(messages)
        self._timestamps.extend(repeat(timestamp, len(messages)))
        self.sizes += sizes

    def batch(self) -> Batch:
        messages: Sequence[Frames]
        singles = [part for part in self._parts if isinstance(part, Singles)]
        if len(singles) == len(self._parts):
            messages = Singles(list(chain.from_iterable(part.frames for part in singles)))
        else:
            messages = list(chain.from_iterable(self._parts))
        return Batch(messages, self._timestamps, self.sizes, self.copied, self.first)


def _records_of(messages: Sequence[Frames]) -> Records:
    if isinstance(messages, Singles):
        count = len(messages)
        return Records([None] * count, [*messages.frames], [()] * count)
    return records_of_messages(messages)


def _sizes_of(messages: Sequence[Frames]) -> list[int]:
    return value_sizes(messages.frames) if isinstance(messages, Singles) else message_sizes(messages)


def _bounds(messages: Sequence[Frames], sizes: list[int]) -> Iterable[int]:
    """The octets that each message adds to a batch at most."""
    if isinstance(messages, Singles) or max(map(len, messages)) <= 2:
        return [size + RECORD_OCTETS for size in sizes]
    return [size + RECORD_OCTETS + _repeated(message) for message, size in zip(messages, sizes, strict=True)]


def _repeated(message: Frames) -> int:
    """The octets of the first frame where it is both the key and in the value."""
    return len(message[0]) if len(message) > 2 else 0
