"""Items that are handed to a writer, and their place in a round."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, chain
from types import MappingProxyType
from typing import NamedTuple

from dafka.log import LogPartition, LogWriteError, Rewrite, TableValues, Trim
from dafka.log.repeating import bounded_logger
from dafka.protocol.errors import DafkaError

logger = bounded_logger(__name__)

Done = Callable[[Exception | None], None]

CHUNK_BYTES = 1024 * 1024  # contents that go into one stored value at most; reading costs whole values
CHUNK_MESSAGES = 65536

ITEM_WEIGHT = 48 * 1024  # a round takes 341 items at most,
ROW_WEIGHT = 16 * 1024  # or 1024 rows of tables, however short they are


class Numbered(NamedTuple):
    """Messages with their place: the first one's sequence, the contents, and the offset behind the last."""

    first: int
    contents: list[bytes]
    next_offset: int


Number = Callable[[int, int], Numbered]


class OutOfSequenceError(DafkaError):
    """Messages that do not continue their partition."""


class WriterStoppedError(LogWriteError):
    """The writer has stopped: the log may not show what is on the disk, and has to be opened again."""


class Item:
    """Items that were handed over, with the functions that wait for them."""

    partition: LogPartition | None = None  # None: nothing is appended
    values: Mapping[tuple[str, str], object] = MappingProxyType({})
    behind: Collection[LogPartition] = ()  # the round's appends to these have to work, or this fails, too
    trim: Trim | None = None
    drops: Sequence[LogPartition] = ()
    rewrites: Sequence[Rewrite] = ()
    size = 0
    checked = False  # whether its messages are record batches that were compared with their checksums
    dones: list[Done]

    @property
    def weight(self) -> int:
        """Its weight in a round: its octets, and an allowance for the time of each item and row."""
        return self.size + ITEM_WEIGHT + ROW_WEIGHT * (len(self.values) + len(self.drops))

    def check(self) -> None:
        """Raise what is to keep it out of the round that is being put together."""

    @property
    def stands_alone(self) -> bool:
        """Whether it changes what others in its round may be about."""
        return bool(self.drops or self.rewrites)

    def number(self, sequence: int, offset: int) -> Numbered:
        return Numbered(sequence, [], offset)

    def failure(self, failed: Mapping[LogPartition | None, Exception]) -> Exception | None:
        """The error of the item in a round that has failed for these partitions (None: for all that appends
        nothing)."""
        found = failed.get(self.partition)
        if found is None and self.behind:
            found = next((failed[partition] for partition in self.behind if partition in failed), None)
        return found

    def tell(self, error: Exception | None) -> None:
        """Call the functions that wait for it, now that its round is over."""
        for done in self.dones:
            try:
                done(error)
            except Exception:
                logger.exception("a callback after a commit failed")

    def split(self) -> Sequence[Item]:
        """The same in pieces, if some may be right where the whole is not."""
        return ()


class Other(Item):
    def __init__(
        self,
        done: Done,
        *,
        values: Mapping[tuple[str, str], object] | None = None,
        trim: Trim | None = None,
        drops: Sequence[LogPartition] = (),
        rewrites: Sequence[Rewrite] = (),
        check: Callable[[], None] | None = None,
        behind: Collection[LogPartition] = (),
    ) -> None:
        self.dones = [done]
        self.behind = behind
        if check is not None:
            self.check = check  # type: ignore[method-assign]
        self.values = values or {}
        self.trim = trim
        self.drops = drops
        self.rewrites = rewrites
        self.size = sum(rewrite.size for rewrite in rewrites)


class Numbering(Item):
    """Record batches, checked by who hands them over, that get their numbers from the round."""

    checked = True

    def __init__(
        self, partition: LogPartition, number: Number, size: int, done: Done, values: TableValues
    ) -> None:
        self.partition = partition
        self.number = number  # type: ignore[method-assign, assignment]
        self.size = size
        self.dones = [done]
        self.values = values


class Run(Item):
    """Messages that carry their numbers, from calls of :meth:`Writer.append` that continue each other.

    Most callers hand over a message at a time, and what an item costs in a round they then share.
    """

    partition: LogPartition

    def __init__(
        self, partition: LogPartition, first: int, contents: list[bytes], size: int, done: Done, skip: bool
    ) -> None:
        self.partition = partition
        self.first = first
        self.next = first + len(contents)
        self.parts = [contents]
        self.size = size
        self.dones = [done]
        self.skip = skip

    def number(self, sequence: int, offset: int) -> Numbered:
        if sequence > self.first or (sequence < self.first and not self.skip):
            raise OutOfSequenceError(
                f"messages from {self.first} on cannot be appended to {self.partition!r}, "
                f"which stands at {sequence}"
            )
        return Numbered(self.first, list(chain.from_iterable(self.parts)), offset)

    def split(self) -> Sequence[Item]:
        if len(self.parts) == 1:
            return ()
        firsts = accumulate(map(len, self.parts), initial=self.first)
        return [
            Run(self.partition, first, contents, sum(map(len, contents)), done, self.skip)
            for first, contents, done in zip(firsts, self.parts, self.dones, strict=False)
        ]


class Rest(NamedTuple):
    """Further work of a round, besides appending and writing values."""

    trims: list[Trim]
    drops: list[LogPartition]
    rewrites: list[Rewrite]


class Growth:
    """The appends to one partition in a round, and its end behind them."""

    __slots__ = ("checked", "offset", "segments", "sequence")

    def __init__(self, sequence: int, offset: int) -> None:
        self.checked = True
        """Whether all are record batches that were compared with their checksums."""
        self.segments: list[tuple[int, list[bytes]]] = []
        self.sequence = sequence
        self.offset = offset

    def add(self, number: Number, checked: bool = False) -> None:
        first, contents, self.offset = number(self.sequence, self.offset)
        self.checked = self.checked and checked
        if self.segments and first == self.sequence:
            self.segments[-1][1].extend(contents)
        else:
            self.segments.append((first, list(contents)))
        self.sequence = first + len(contents)

    def chunks(self, partition: LogPartition) -> list[tuple[LogPartition, list[bytes], int]]:
        """The values for the log to write, of about CHUNK_BYTES each."""
        return [
            (partition, contents[start:end], first + start)
            for first, contents in self.segments
            for start, end in _cuts(contents)
        ]


def _cuts(contents: list[bytes]) -> list[tuple[int, int]]:
    """Where to cut for values of CHUNK_BYTES at most, or of one message. Little is done for each message."""
    ends = list(accumulate(map(len, contents)))
    cuts: list[tuple[int, int]] = []
    start = before = 0
    while start < len(contents):
        end = bisect_right(ends, before + CHUNK_BYTES, start)
        end = min(max(end, start + 1), start + CHUNK_MESSAGES)
        cuts.append((start, end))
        start, before = end, ends[end - 1]
    return cuts or [(0, 0)]
