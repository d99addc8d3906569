"""A clone that is given a large content in pieces, while events go on.

A piece tells what its entries are behind some event, so it waits until the clone has got that far. Keys that
an event behind that one was about are newer than the piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from dafka.overlay.limits import ASK_TICKS, ERASED_ENTRIES, SWEPT_ENTRIES
from dafka.overlay.stores.content import Content
from dafka.overlay.values import Value, encode
from dafka.overlay.wire.commands import Piece
from dafka.overlay.wire.primitives import EntityId


class Loading:
    """Loads pieces into ``content``, beginning now. Entries that are there already stay until it is known
    that they are gone. ``offset`` is the event from which on others are heard."""

    def __init__(self, content: Content, offset: int) -> None:
        self.offset = offset
        self.position = 0
        """The next piece that is wanted."""
        self._content = content
        self._waiting: Piece | None = None
        self._ticks = 0
        self._asked = 0
        self._touched: dict[bytes, int] = {}
        self._cleared = 0
        self._left: Iterator[bytes] | None = None  # keys that may be in no piece
        content.generation += 1

    def hear(self, sequence: int, key: Value) -> None:
        """The event with this number is about a key."""
        self._touched[encode(key)] = sequence

    def hear_clear(self, sequence: int) -> None:
        """The event with this number has erased everything."""
        self._cleared = sequence
        self._touched.clear()

    def receive(self, piece: Piece) -> None:
        """A piece; one that is known already does no harm."""
        if self._left is None and (piece.position == 0 or piece.position > self.position):
            self._waiting = piece

    def take(self, sequence: int, by: EntityId) -> list[Value] | None:
        """The events of the piece that is here; None: it waits for events behind ``sequence``, the last."""
        piece = self._waiting
        if piece is None or piece.current > sequence:
            return None
        self._waiting = None
        events: list[Value] = []
        for key, value in piece.state if piece.current >= self._cleared else ():
            if self._touched.get(encode(key), 0) <= piece.current:
                event = self._content.take(key, value, by)
                events += [] if event is None else [event]
        self.position = piece.position
        self._asked = self._ticks
        if not piece.position:
            self._left = chain.from_iterable(self._content.octets())
        return events

    @property
    def has_all(self) -> bool:
        """Every piece was taken; entries that are not in any of them may be left."""
        return self._left is not None

    def sweep(self, by: EntityId) -> tuple[list[Value], bool]:
        """The events of erasing some that are in no piece, and whether that was all."""
        assert self._left is not None
        events: list[Value] = []
        for _ in range(SWEPT_ENTRIES):
            octets = next(self._left, None)
            if octets is None:
                return events, True
            entry = self._content.entry(octets)
            if entry is not None and entry.generation != self._content.generation:
                event = self._content.erase(entry.key, by)
                events += [] if event is None else [event]
                if len(events) >= ERASED_ENTRIES:
                    break
        return events, False

    def tick(self) -> bool:
        """To be called ten times a second: whether to ask for the next piece again."""
        self._ticks += 1
        if self.has_all or self._waiting is not None or self._ticks - self._asked < ASK_TICKS:
            return False
        self._asked = self._ticks
        return True
