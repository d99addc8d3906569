"""Record batches in the files of values, for those who send them without reading them.

A value of FILE_BYTES and more is a file (:mod:`dafka.log.values`), in which its batches stand one behind the
other as clients want them. So a broker can have the kernel send them. Where a batch begins is in the *layout*
of the value, which is made when this process writes the value, or reads and checks it. A layout stands for a
right checksum: it counts for CHECKED_SECONDS and for the file as it was then. Afterwards the value is read
and checked again.
"""

from __future__ import annotations

import os
import resource
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from dafka.log.limits import CHECKED_SECONDS, LAYOUT_BATCHES, OPEN_VALUES
from dafka.protocol.batch import BatchHeader, read_header

_SHARE = 4  # of the descriptors that the process may have


class ValueFile(NamedTuple):
    """A file, and how it was told from others: device, inode, size, time of its last change in ns."""

    name: str
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, name: str, descriptor: int) -> ValueFile:
        status = os.fstat(descriptor)
        return cls(name, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))


NOWHERE = (0, 0, 0, 0)
"""The state of a file that is not written yet."""


class Layout:
    """Where the batches of a value are. ``file`` is as it was when its checksum was right.

    A value with batches that have no records, which are not for clients, has none here: it is to be loaded.
    """

    __slots__ = ("_bases", "_ends", "_places", "checked", "file")

    def __init__(
        self, file: ValueFile, places: Sequence[int], headers: Sequence[BatchHeader], checked: float
    ) -> None:
        if any(not header.count for header in headers):
            headers = ()
        self.file = file
        self.checked = checked
        self._places = array("Q", places)
        self._bases = array("q", [header.base_offset for header in headers])
        self._ends = array("q", [header.next_offset for header in headers])

    def __len__(self) -> int:
        return len(self._bases)

    def cut(self, offset: int, end: int, room: int, at_least_one: bool) -> tuple[int, int, int]:
        """(place, octets, next offset) of the batches from the one that holds ``offset`` on.

        They begin before ``end``, and take ``room`` octets at most; no octets if none does.
        """
        places = self._places
        first = bisect_right(self._ends, offset)
        stop = bisect_left(self._bases, end, lo=first)
        begin = places[first]
        fitting = bisect_right(places, begin + max(room, 0), lo=first, hi=stop + 1) - 1
        if fitting == first and at_least_one and first < stop:
            fitting += 1
        return begin, places[fitting] - begin, self._ends[fitting - 1] if fitting > first else offset


def layout_of(file: ValueFile, places: Sequence[int], value: bytes | memoryview, now: float) -> Layout:
    """The layout of a value that was read and checked."""
    return Layout(file, places, [read_header(value, place) for place in places[:-1]], now)


def layout_of_written(file: ValueFile, contents: Sequence[bytes], behind: int, now: float) -> Layout:
    """The layout of a value that was just written, with so many octets ``behind`` its contents."""
    first = file.state[2] - behind - sum(map(len, contents))
    places = list(accumulate(map(len, contents), initial=first))
    return Layout(file, places, list(map(read_header, contents)), now)


class Layouts:
    """The layouts of the values used last, by their keys: LAYOUT_BATCHES batches at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._layouts: OrderedDict[bytes, Layout] = OrderedDict()
        self._batches = 0

    def get(self, key: bytes) -> Layout | None:
        layout = self._layouts.get(key)
        if layout is None:
            return None
        if self.clock() - layout.checked > CHECKED_SECONDS:
            self.drop(key)
            return None
        self._layouts.move_to_end(key)
        return layout

    def put(self, key: bytes, layout: Layout) -> None:
        self.drop(key)
        self._layouts[key] = layout
        self._batches += max(1, len(layout))
        while self._batches > LAYOUT_BATCHES:
            _, oldest = self._layouts.popitem(last=False)
            self._batches -= max(1, len(oldest))

    def drop(self, key: bytes) -> None:
        layout = self._layouts.pop(key, None)
        if layout is not None:
            self._batches -= max(1, len(layout))

    def clear(self) -> None:
        self._layouts.clear()
        self._batches = 0


class StoredBatches:
    """Neighbouring batches in a file, which stays open until :meth:`close`; ``len()`` are their octets."""

    __slots__ = ("_size", "descriptor", "position")

    opened = 0  # of all logs of the process

    def __init__(self, descriptor: int, position: int, size: int) -> None:
        StoredBatches.opened += 1
        self.descriptor = descriptor
        self.position = position
        self._size = size

    @classmethod
    def may_open(cls) -> bool:
        """Whether there are few enough open ones; of few descriptors for all (macOS has 256) most are for
        others."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls.opened < (min(OPEN_VALUES, soft // _SHARE) if soft >= 0 else OPEN_VALUES)

    def __len__(self) -> int:
        return self._size

    def read(self) -> bytes:
        """The batches. Raises OSError, and EOFError if the file has become shorter."""
        octets = os.pread(self.descriptor, self._size, self.position)
        if len(octets) < self._size:
            raise EOFError(f"a value's file ends {self._size - len(octets)} octets before its batches do")
        return octets

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            StoredBatches.opened -= 1
            os.close(descriptor)

    __del__ = close
