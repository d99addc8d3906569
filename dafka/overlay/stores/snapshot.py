"""A whole content as it is at one moment, encoded in pieces while it changes.

A clone of version 1 gets a content in one message, and to encode a million entries takes a third of a second.
So some of the content's parts are encoded at a time. What an entry was that changes before its part has its
turn is noted, and encoded in the end.
"""

from __future__ import annotations

from itertools import islice

from dafka.overlay.limits import SNAPSHOT_AT_ONCE
from dafka.overlay.stores.content import Content, Entry
from dafka.overlay.values import encode
from dafka.overlay.wire.commands import EncodedState


class Snapshot:
    """``content`` as it is now. It is to be given up if that is cleared before all was encoded."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._parts = content.parts
        self._next = 0  # the part whose turn is next
        self._before: dict[bytes, Entry | None] = {}  # of later parts
        self._octets = bytearray()
        self._count = 0
        content.watcher = self._changes

    def step(self) -> EncodedState | None:
        """Encode some parts of it; the whole after the last one."""
        if self._next < len(self._parts):
            most = self._count + SNAPSHOT_AT_ONCE
            while self._next < len(self._parts) and self._count < most:
                for octets, entry in self._parts[self._next].items():
                    if octets not in self._before:
                        self._add(octets, entry)
                self._next += 1
            return None
        for octets in list(islice(self._before, SNAPSHOT_AT_ONCE)):
            entry_before = self._before.pop(octets)
            if entry_before is not None:
                self._add(octets, entry_before)
        if self._before:
            return None
        self.close()
        return EncodedState(self._count, self._octets)

    def close(self) -> None:
        """It is encoded, or not wanted any more."""
        self._content.watcher = None

    def _changes(self, octets: bytes, before: Entry | None) -> None:
        if self._content.part_of(octets) >= self._next:
            self._before.setdefault(octets, before)

    def _add(self, octets: bytes, entry: Entry) -> None:
        self._octets += octets
        self._octets += encode(entry.value)
        self._count += 1
