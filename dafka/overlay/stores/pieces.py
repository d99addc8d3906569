"""A content that is given away in pieces, while it changes.

A reader asks for one piece after the other. A piece holds what the entries are at that moment, and
says behind which event that is; so pieces and events together tell the whole content, in whatever order they
arrive. Its keys are noted when a reader comes to them; those that come later are told by events, and may be
in a piece as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dafka.overlay.limits import LOADING_TICKS, MOST_LOADING, PIECE_ENTRIES, PIECE_OCTETS
from dafka.overlay.stores.content import Content, Entry
from dafka.overlay.wire.primitives import EntityId


class Slice(NamedTuple):
    """Entries, and the position behind them; 0: there are no more."""

    entries: list[Entry]
    position: int


class _Reading:
    __slots__ = ("_more", "asked", "finished", "keys", "offset")

    def __init__(self, keys: Iterator[list[bytes]], offset: int, tick: int) -> None:
        self.keys: list[bytes] = []  # that it has come to
        self._more = keys
        self.offset = offset
        self.asked = tick
        self.finished = False

    def has(self, position: int) -> bool:
        """Whether there is a key at this position."""
        while position >= len(self.keys):
            some = next(self._more, None)
            if some is None:
                return False
            self.keys += some
        return True


Reader = tuple[EntityId, int]
"""An endpoint that takes the content, and its attempt."""


class Pieces:
    """The readers that are taking a content at the moment. ``content`` is the master's."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._readings: dict[Reader, _Reading] = {}
        self._ticks = 0

    def begin(self, reader: Reader, offset: int = 0) -> bool:
        """Whether there is room for one more. ``offset`` is kept for it."""
        if len(self._readings) >= MOST_LOADING:
            # A reader that has got the last piece asks again only if that is lost, and begins anew then.
            finished = [one for one, reading in self._readings.items() if reading.finished]
            if not finished:
                return False
            del self._readings[finished[0]]
        self._readings[reader] = _Reading(self._content.octets(), offset, self._ticks)
        return True

    def offset(self, reader: Reader) -> int | None:
        """The offset kept for a reader; None if the reader is not known, or not any more."""
        reading = self._readings.get(reader)
        return None if reading is None else reading.offset

    def is_reading(self, entity: EntityId) -> bool:
        return any(reader == entity for reader, _ in self._readings)

    def cut(self, reader: Reader, position: int) -> Slice:
        """The piece that begins at a position, of a reader that is known."""
        reading = self._readings[reader]
        reading.asked = self._ticks
        entries: list[Entry] = []
        size = 0
        end = position + PIECE_ENTRIES
        while position < end and reading.has(position):
            entry = self._content.entry(reading.keys[position])
            position += 1
            if entry is not None:
                entries.append(entry)
                size += entry.size
                if size > PIECE_OCTETS:
                    break
        reading.finished = not reading.has(position)
        return Slice(entries, 0 if reading.finished else position)

    def forget(self, entity: EntityId) -> None:
        """Somebody takes no more."""
        for reader in [one for one in self._readings if one[0] == entity]:
            del self._readings[reader]

    def tick(self) -> None:
        """To be called ten times a second."""
        self._ticks += 1
        for reader, reading in list(self._readings.items()):
            if self._ticks - reading.asked >= LOADING_TICKS:
                del self._readings[reader]
