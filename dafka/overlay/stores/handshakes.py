"""The contents that a master gives to clones of version 1 with their handshakes.

Each is kept until the clone has said that it has it, if there is room. A large one is made over many ticks
(:mod:`dafka.overlay.stores.snapshot`), for one event of the master at a time: clones that come behind another
one meanwhile ask again.
"""

from __future__ import annotations

from collections.abc import Callable

from dafka.overlay.limits import SNAPSHOT_AT_ONCE, SNAPSHOT_ENTRIES
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.snapshot import Snapshot
from dafka.overlay.wire.commands import AckClone
from dafka.overlay.wire.primitives import EntityId


class _Making:
    def __init__(self, clone: EntityId, offset: int, interval: int, snapshot: Snapshot) -> None:
        self.clones = [clone]
        self.offset = offset
        self.interval = interval
        self.snapshot = snapshot


class Handshakes:
    """Those of one ``content``. ``drop(clone)``: it is to begin anew."""

    def __init__(self, content: Content, drop: Callable[[EntityId], object]) -> None:
        self._content = content
        self._drop = drop
        self._given: dict[EntityId, AckClone] = {}
        self._making: _Making | None = None

    def __contains__(self, clone: EntityId) -> bool:
        return clone in self._given

    def has_room(self, clone: EntityId, offset: int) -> bool:
        """Whether a clone that wants the content behind this event need not ask again."""
        making = self._making
        return making is None or clone in self or (making.offset == offset and clone not in making.clones)

    def give(self, clone: EntityId, offset: int, interval: int) -> AckClone | None:
        """The content for a clone that there is room for; None: :meth:`tick` has it, after a while."""
        known = self._given.get(clone)
        if known is not None:
            return known
        latest = next(reversed(self._given.values()), None)
        if latest is None or latest.offset != offset:  # otherwise nothing has changed since
            if self._making is not None:
                self._making.clones.append(clone)
                return None
            self._make_room()
            if len(self._content) > SNAPSHOT_AT_ONCE:
                self._making = _Making(clone, offset, interval, Snapshot(self._content))
                return None
            latest = AckClone(offset, interval, tuple(self._content))
        self._given[clone] = latest
        return latest

    def tick(self) -> list[tuple[EntityId, AckClone]]:
        """Go on with what is made; the clones that get it now."""
        making = self._making
        state = None if making is None else making.snapshot.step()
        if making is None or state is None:
            return []
        self._making = None
        given = AckClone(making.offset, making.interval, state)
        self._given.update(dict.fromkeys(making.clones, given))
        return [(clone, given) for clone in making.clones]

    def forget(self, clone: EntityId) -> None:
        """A clone has its content, or has gone."""
        self._given.pop(clone, None)
        if self._making is not None and clone in self._making.clones:
            self._making.clones.remove(clone)

    def clear(self) -> None:
        """The content will be cleared: those that wait for it begin anew."""
        making, self._making = self._making, None
        if making is not None:
            making.snapshot.close()
            for clone in making.clones:
                self._drop(clone)

    def _make_room(self) -> None:
        kept = {one.offset: len(one.state) for one in self._given.values()}
        while kept and sum(kept.values()) + len(self._content) > SNAPSHOT_ENTRIES:
            gone = min(kept)
            del kept[gone]
            for clone in [clone for clone, one in self._given.items() if one.offset == gone]:
                del self._given[clone]
                self._drop(clone)
