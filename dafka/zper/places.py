"""Where the messages of a topic's partition are, for OFFSET, FETCH, streams and the relay.

The positions are the broker's. Here are ZPER's rules for them: segments, a topic that does not exist yet, how
much is read at once; and the chunks that several streams read one behind the other.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from gevent.lock import BoundedSemaphore
from kafka.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import LATEST, BrokerInterface, TopicPartition
from dafka.broker.interface.positions import (
    DamagedPositionError,
    PartitionPositions,
    PositionOutOfRangeError,
)
from dafka.protocol.raw import count_messages
from dafka.zper import limits
from dafka.zper.identity import Identity
from dafka.zper.segments import Segments

_LAST_TIME = 2**63 - 1


class Chunk(NamedTuple):
    """Whole messages in RAW form: how many, and the position behind them."""

    octets: bytes
    messages: int
    stop: int


class Places:
    """The places of all partitions."""

    def __init__(self, broker: BrokerInterface, segment_size: int) -> None:
        self.broker = broker
        self.chunks = Chunks()
        self.reading = BoundedSemaphore(limits.READS_AT_ONCE)
        self._segment_size = segment_size
        self._known: dict[TopicPartition, Known] = {}

    def of(self, identity: Identity) -> Place:
        """Where the messages of this partition are; looked up when it is asked for something."""
        return Place(self, identity)

    def known(self, key: TopicPartition) -> Known | None:
        """The positions of a partition, and what is remembered of it; None if there is no such topic.

        Waits as a green thread when positions begin. Raises what the positions' ``open`` raises besides.
        """
        known = self._known.get(key)
        try:
            positions = self.broker.positions.open(*key)
        except UnknownTopicOrPartitionError:
            self._known.pop(key, None)
            return None
        if known is None or known.positions is not positions:
            known = Known(positions, self._segment_size)
            if len(self._known) >= limits.PARTITIONS_KNOWN:
                del self._known[next(iter(self._known))]
        else:
            del self._known[key]
        self._known[key] = known  # the last one to be forgotten
        return known


class Known:
    """The positions of a partition, as long as its topic exists, and its segments."""

    def __init__(self, positions: PartitionPositions, segment_size: int) -> None:
        self.positions = positions
        self.segments = Segments(self, segment_size)

    @property
    def first(self) -> int:
        """The position of the first message that exists."""
        return self.positions.first

    @property
    def end(self) -> int:
        """The position behind the last message that was measured."""
        return self.positions.end

    def bounds(self, position: int) -> tuple[int, int]:
        """The message that has an octet at ``position``: its first octet, and the octet behind it."""
        return self.positions.bounds(position)


class Chunks:
    """The chunks that streams have read last: those at the end of a partition all want the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[PartitionPositions, int], Chunk] = OrderedDict()  # the oldest first
        self._octets = 0

    def get(self, positions: PartitionPositions, position: int) -> Chunk | None:
        """The chunk at a position, if it is kept."""
        return self._kept.get((positions, position))

    def keep(self, positions: PartitionPositions, position: int, chunk: Chunk) -> None:
        """Keep a chunk in place of the oldest ones."""
        before = self._kept.pop((positions, position), None)
        self._octets += _weight(chunk) - (0 if before is None else _weight(before))
        self._kept[positions, position] = chunk
        while self._octets > limits.CHUNKS_OCTETS:
            self._octets -= _weight(self._kept.popitem(last=False)[1])


def _weight(chunk: Chunk) -> int:
    """The memory of a chunk, about: at the end of a partition most are one small message each."""
    return len(chunk.octets) + limits.CHUNK_BESIDE


class Place:
    """One partition. Methods may wait as a green thread, and raise what the positions raise."""

    def __init__(self, places: Places, identity: Identity) -> None:
        self._places = places
        self._key = identity.name, identity.partition
        self.name = identity.topic

    def known(self) -> Known | None:
        """The partition as it is now; None if there is no such topic."""
        return self._places.known(self._key)

    # -- OFFSET ---------------------------------------------------------------------------------

    def earliest(self) -> list[int]:
        """The first position."""
        known = self._caught_up()
        return [0] if known is None else known.segments.earliest()

    def latest(self) -> list[int]:
        """The start of the last segment, and the end."""
        known = self._caught_up()
        return [0, 0] if known is None else known.segments.latest()

    def before(self, time: int, entries: int | None) -> list[int]:
        """The starts of the segments with nothing newer than ``time`` (ms), and the end if that is all."""
        if time < 0:
            return []
        known = self._caught_up()
        if known is None:
            return [0, 0]
        offset = self._list_offset(min(time + 1, _LAST_TIME))
        if offset < 0:
            return known.segments.before(None, entries)
        try:
            position = known.positions.position_of(offset)
        except OffsetOutOfRangeError:  # removed meanwhile, with all before it
            position = known.first
        return known.segments.before(position, entries)

    def _caught_up(self) -> Known | None:
        known = self.known()
        if known is not None:
            known.positions.catch_up()
        return known

    def _list_offset(self, time: int) -> int:
        listed = self._places.broker.list_offsets({self._key: time}, read_committed=True)[self._key]
        if listed.error is not None:
            raise listed.error(f"looking for an offset of {self.name!r}")
        return listed.offset

    # -- FETCH ----------------------------------------------------------------------------------

    def fetch_size(self, position: int, size: int) -> int:
        """How much of ``size`` octets from a position on is there, and served at once.

        Raises PositionOutOfRangeError.
        """
        known = self.known()
        end = 0 if known is None else known.end
        if known is not None and position + size > end:
            known.positions.catch_up()
            end = known.end
        if not 0 <= position <= end:
            raise PositionOutOfRangeError(position, 0, end)
        if known is None or position == end:
            return 0
        if position < known.first:
            raise PositionOutOfRangeError(position, known.first, end)
        stop = min(known.segments.stop(position), end)
        return min(size, stop - position, limits.SUPER_FRAME_OCTETS)

    def read(self, position: int, size: int) -> bytes:
        """As many octets in RAW form, or fewer."""
        known = self.known() if size else None
        return b"" if known is None else known.positions.read(position, size)

    def reading(self, size: int) -> AbstractContextManager[object]:
        """For a ``with`` block that reads so many octets and hands them on; waits while others do, if they
        are many."""
        return self._places.reading if size > limits.CHUNK_OCTETS else nullcontext()

    # -- streams --------------------------------------------------------------------------------

    def check_start(self, position: int) -> None:
        """Raise PositionOutOfRangeError unless a message begins there, or the next one will."""
        self.fetch_size(position, 1)
        known = self.known()
        if known is None or position >= known.end:
            return
        start, stop = known.bounds(position)
        if start != position:
            raise PositionOutOfRangeError(position, start, stop)

    def end(self) -> int:
        """The position of the next message that is written."""
        known = self.known()
        if known is None:
            return 0
        offset = self._list_offset(LATEST)
        known.positions.catch_up()
        return known.positions.position_of(offset)

    def chunk(self, known: Known, position: int, size: int) -> Chunk:
        """Whole messages from a position on, of so many octets at most; none if the first one is longer."""
        positions = known.positions
        kept = self._places.chunks.get(positions, position)
        if kept is not None and len(kept.octets) <= size:
            return kept
        pieces: list[bytes] = []
        read = 0
        while read < size:
            try:
                piece = positions.read(position + read, size - read)
            except (DamagedPositionError, PositionOutOfRangeError):
                if not pieces:
                    raise
                break  # those in front of it are there
            if not piece:
                break
            pieces.append(piece)
            read += len(piece)
        octets = b"".join(pieces)
        messages, whole = count_messages(octets)
        chunk = Chunk(octets[:whole], messages, position + whole)
        if messages:
            self._places.chunks.keep(positions, position, chunk)
        return chunk
