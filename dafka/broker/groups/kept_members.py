"""The members of groups over restarts: the log's table ``members``, a row for each member and each group.

Kafka keeps the members of a group in __consumer_offsets, and so they go on after a restart without joining
again; their sessions begin anew. Here a group's own row, under its name alone, has what concerns all of them,
and that of a member what the member has said and what it has been given. Rows are written when that changes,
which heartbeats hardly ever do; all that changes meanwhile is one commit. A member is answered when its row
is on the disk (:meth:`KeptMembers.wait`), so that no member has a partition that the broker does not know of
after a crash. A group that is written in pieces has its own row again when they are all of one state.

Clients in the broker's own process end with it: their members are not kept (``client_host`` is empty).

A group of the classic protocol is written when its members have their assignments, as in Kafka. Of a newer
group the target of each member is kept, too, so that it goes on towards that (``restoring``).

A folder in which there are no members, or those of an older time, is as good: members join again, or are
removed when their sessions end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from dafka.broker.groups.kept_rows import Format, Row, Saved, kept_row, row_of_octets
from dafka.broker.interface.groups import GroupType
from dafka.broker.limits import (
    KEPT_ITEMS_AT_ONCE,
    KEPT_MEMBERS_AT_ONCE,
    KEPT_MEMBERS_IN_A_ROUND,
)
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.hub.pool import Aside
from dafka.hub.turns import Pace, in_pieces
from dafka.log import DamagedError, Log, LogClosedError, LogError, shapes
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

MEMBERS = "members"
WHOLE = ""
"""Stands for the group itself where others have a member id."""

_LONGEST_ID = 200  # characters in a key; of longer ids the key has a digest

MADE_AT_ONCE = 300  # partitions and the like in a row that is made in a turn

_ASIDE = Aside(1)


class KeptGroup(Protocol):
    """The interface of a group whose members are kept."""

    @property
    def type(self) -> GroupType:
        """Which protocol its members speak."""

    @property
    def occupied(self) -> bool:
        """Whether it has members."""

    def take_unsaved(self) -> Iterable[str] | None:
        """The members of which something else may have to be kept since this was last asked; None: all."""

    def member_ids(self) -> Iterable[str]:
        """The ids of its members."""

    def saved_member(self, member_id: str) -> Saved | None:
        """The state of a member to keep; None if there is nothing to keep, or no member of that id."""

    def saved_whole(self) -> Saved:
        """The state of the group itself to keep."""


class _Written:
    """The rows of a group that are written, or handed over to be."""

    def __init__(self, group: KeptGroup | None) -> None:
        self.group = group
        self.rows: dict[str, Saved] = {}
        self.too_large: dict[str, Saved] = {}  # not written
        self.deleted: set[str] = set()  # members whose rows the next round deletes, or the one under way
        self.later: set[str] = set()  # members whose rows a green thread writes
        self.is_busy = False  # it does
        self.asked = self.done = 0  # how many writes were asked for, and how many of these are over
        self.failures = 0
        self.changes = Changes()


class _OutdatedError(LogError):
    """Rows follow others that were not written: the disk would have parts of two states."""


class _Change(NamedTuple):
    """What is to be written of a member, or of the group: ``saved``, by ``encode``; None if nothing is.

    ``items``: how many partitions and the like are in it. Nothing of it changes.
    """

    which: str
    kind: GroupType
    saved: Saved | None
    encode: Callable[[Any], Row]
    items: int


def _changed(
    known: _Written,
    which: str,
    saved: Saved | None,
    encode: Callable[[Any], Row],
    items: Callable[[Any], int],
) -> _Change | None:
    """What is to be written, if it is not as it was written."""
    before = known.too_large.get(which, known.rows.get(which))
    if saved == before and type(saved) is type(before):
        return None
    assert known.group is not None
    return _Change(which, known.group.type, saved, encode, 0 if saved is None else items(saved))


def _encoded(change: _Change | None) -> Row | bytes | None:
    """The row of a change, packed if it is large; None if it is too large, or there is to be none."""
    if change is None or change.saved is None:
        return None
    row = [change.kind.value, *change.encode(change.saved)]
    return kept_row(row, is_large=change.items > MADE_AT_ONCE)


class KeptMembers:
    """The members of one broker's groups. Hub side."""

    def __init__(self, hub: Hub, log: Log, writer: Writer) -> None:
        self._hub = hub
        self._writer = writer
        self._path = log.path
        self.formats: dict[GroupType, Format] = {}
        """How the rows of groups of each type are written and read."""
        self._table = log.table(MEMBERS, shapes.RowShape(_is_key, self._is_row))
        self._table.leave_on_disk()
        self._written: dict[str, _Written] = {}
        # Rows of before the start that no group has yet, by key: it goes through all in pieces.
        self._unclaimed = dict.fromkeys(Pace().over(self._table.keys()))

    # -- writing --------------------------------------------------------------------------------

    def note(self, name: str, group: KeptGroup) -> None:
        """Have written what has changed of a group. Does not wait for the commit."""
        ids = group.take_unsaved()
        known = self._written.get(name)
        if known is None:
            if not group.occupied:
                return
            known = self._written[name] = _Written(group)
            ids = None
        elif known.group is not group:  # another one has its place
            known.group, ids = group, None
        if ids is None:
            ids = {*group.member_ids(), *known.rows} - {WHOLE}
        elif not ids:
            return
        ids = list(ids)
        late = known.is_busy or len(ids) > KEPT_MEMBERS_AT_ONCE
        changes = [] if late else [self._change(known, one) for one in ids]
        if late or self._is_large(known, changes):
            known.asked += 1
            known.later.update(ids)
            if not known.is_busy:
                known.is_busy = True
                self._hub.spawn(self._write_in_pieces, name, known)
            return
        rows: Rows = {}
        for change in changes:
            rows.update(self._row(name, known, change, _encoded(change)))
        own = self._own_change(known, is_whole=True)
        rows.update(self._row(name, known, own, _encoded(own)))
        if rows:
            known.asked += 1
            self._put(name, known, rows, known.asked)
        self._forget_if_empty(name, known)

    def wait(self, name: str) -> None:
        """Wait as a green thread until everything is on the disk that was noted of a group, or has failed."""
        known = self._written.get(name)
        if known is not None:
            asked = known.asked
            while known.done < asked:
                known.changes.wait()

    def _is_large(self, known: _Written, changes: Iterable[_Change | None]) -> bool:
        """Whether the rows of these members, and the group's own, take long to be made."""
        own = self._own_change(known, is_whole=True, with_members=any(changes))
        all_changes = (*changes, own)
        return sum(change.items for change in all_changes if change is not None) > KEPT_ITEMS_AT_ONCE

    def _change(self, known: _Written, member_id: str) -> _Change | None:
        """The row that a member is to have, if it is not as it was written."""
        group = known.group
        assert group is not None
        form = self.formats[group.type]
        return _changed(known, member_id, group.saved_member(member_id), form.member, form.member_items)

    def _own_change(self, known: _Written, *, is_whole: bool, with_members: bool = False) -> _Change | None:
        """The same of the group's own row; there is none unless ``is_whole``, and the group has members.

        ``with_members``: there will be rows of some.
        """
        group = known.group
        assert group is not None
        has_members = with_members or len(known.rows) > (WHOLE in known.rows)
        saved = group.saved_whole() if has_members and is_whole else None
        form = self.formats[group.type]
        return _changed(known, WHOLE, saved, form.whole, form.whole_items)

    def _row(self, name: str, known: _Written, change: _Change | None, row: Row | bytes | None) -> Rows:
        """Note that a change is to be written, as this row; None: it is too large, or there is to be none."""
        if change is None:
            return {}
        which, saved = change.which, change.saved
        known.too_large.pop(which, None)
        if saved is not None and row is not None:
            known.rows[which] = saved
        else:
            if saved is not None:
                known.too_large[which] = saved
            if known.rows.pop(which, None) is None:
                return {}
            known.deleted.add(which)
        key = key_of(name, which)
        self._unclaimed.pop(key, None)
        return {(MEMBERS, key): row}

    def _put(self, name: str, known: _Written, rows: Rows, number: int) -> None:
        deleted, known.deleted = known.deleted, set()

        def done(error: Exception | None) -> None:
            if error is not None:
                self._failed(name, known, deleted, error)
            known.done = max(known.done, number)
            known.changes.tell()
            self._forget_if_empty(name, known)

        self._writer.put(rows, done, self._check(known))

    def _put_and_wait(self, known: _Written, rows: Rows, check: Callable[[], None]) -> None:
        self._writer.put_and_wait(rows, check)
        known.deleted.clear()

    def _check(self, known: _Written) -> Callable[[], None]:
        """A check that no write of the group has failed since now."""
        failures = known.failures

        def check() -> None:
            if known.failures != failures:
                raise _OutdatedError(self._path, "rows before these were not written")

        return check

    def _failed(self, name: str, known: _Written, deleted: Iterable[str], error: Exception) -> None:
        known.failures += not isinstance(error, _OutdatedError)
        known.group = None  # the next change has everything written, and again deleted
        known.rows = dict.fromkeys((*known.rows, *deleted), ())
        known.too_large.clear()
        if not isinstance(error, (LogClosedError, _OutdatedError)):
            log.warning(
                "members of group %r were not written; after a restart they join again: %s", name, error
            )

    def _write_in_pieces(self, name: str, known: _Written) -> None:
        """Write what is to be written later, until there is nothing more."""
        try:
            while known.later:
                number = known.asked
                self._write_what_is_later(name, known)
                known.done = max(known.done, number)
                known.changes.tell()
        except LogError as error:
            self._failed(name, known, known.deleted, error)
            known.deleted.clear()
        finally:
            known.is_busy = False
            known.done = known.asked
            known.changes.tell()
            self._forget_if_empty(name, known)

    def _write_what_is_later(self, name: str, known: _Written) -> None:
        """Write the members that are to be written by now, in as many rounds as it takes.

        As long as rows are of several states of the group, its own one is not there: after a crash members
        join again, and do not go on with parts of two assignments.
        """
        ids, known.later, check = list(known.later), set(), self._check(known)
        for rows, is_last in self._rounds(name, known, ids):
            rows.update(self._own_row(name, known, is_last))
            if rows:
                self._put_and_wait(known, rows, check)

    def _rounds(self, name: str, known: _Written, ids: Iterable[str]) -> Iterator[tuple[Rows, bool]]:
        """The rows of each round, of those of these members that have changed; and whether it is the last."""
        rows: Rows = {}
        pace = Pace()
        for member_id in ids:
            if known.group is None:  # a write has failed: this one will be refused, too
                break
            rows.update(self._made(name, known, self._change(known, member_id)))
            if len(rows) >= KEPT_MEMBERS_IN_A_ROUND:
                yield rows, False
                rows = {}
            pace.rest()
        yield rows, True

    def _own_row(self, name: str, known: _Written, is_last: bool) -> Rows:
        """The group's own row for a round; it is deleted unless all is of one state after this one."""
        rows: Rows = {}
        is_whole = is_last and not known.later
        if known.group is not None:
            rows.update(self._made(name, known, self._own_change(known, is_whole=is_whole)))
        if is_whole and known.later and known.group is not None:  # something has changed meanwhile
            rows.update(self._made(name, known, self._own_change(known, is_whole=False)))
        return rows

    def _made(self, name: str, known: _Written, change: _Change | None) -> Rows:
        """The row of a change, made beside the hub if it is large; none if the group is another one then."""
        group = known.group
        if change is None or change.items <= MADE_AT_ONCE:
            return self._row(name, known, change, _encoded(change))
        row = _ASIDE.run(_encoded, change)
        return self._row(name, known, change, row) if known.group is group else {}

    def _forget_if_empty(self, name: str, known: _Written) -> None:
        group = known.group
        if known.rows or known.is_busy or known.done < known.asked or group is None or group.occupied:
            return
        if self._written.get(name) is known:
            del self._written[name]

    # -- reading --------------------------------------------------------------------------------

    def stored(self) -> Iterator[tuple[str, GroupType, Saved, list[Saved]]]:
        """Each group of which members are kept: its name, type, its own row and those of its members."""
        for name in dict.fromkeys(map(_name_of, Pace().over(list(self._unclaimed)))):
            found = self._read(name)
            if found is not None:
                yield name, *found

    def _read(self, name: str) -> tuple[GroupType, Saved, list[Saved]] | None:
        whole: tuple[str, Saved] | None = None
        members: list[tuple[str, Saved]] = []
        try:
            for key, stored in Pace().over(self._table.items(key_of(name, WHOLE)), every=1):
                is_large = type(stored) is bytes
                read = _ASIDE.run(self._decoded, key, stored) if is_large else self._decoded(key, stored)
                if key == key_of(name, WHOLE):
                    whole = read
                else:
                    members.append(read)
        except DamagedError as error:
            log.error("the members of group %r join again: %s", name, error)
            return None
        if whole is None:
            return None
        return GroupType(whole[0]), whole[1], [saved for kind, saved in members if kind == whole[0]]

    def _decoded(self, key: str, stored: Any) -> tuple[str, Saved]:
        """The type of the group, and what was kept in a row. Raises DamagedError."""
        try:
            row = row_of_octets(stored)
            if type(stored) is bytes and not self._is_row_of(key, row):
                raise ValueError("it has another shape than rows that are written")
        except ValueError as error:
            place = f"key {key!r} of table {MEMBERS!r}"
            raise DamagedError(self._path, f"{place}: {error}", place) from error
        form = self.formats[GroupType(row[0])]
        read = form.read_whole if key == key_of(_name_of(key), WHOLE) else form.read_member
        return row[0], read(row[1:])

    def begin_with(self, name: str, group: KeptGroup) -> None:
        """These are the rows of a group that was read.

        Waits as a green thread; nobody else calls yet.
        """
        known = self._written[name] = _Written(group)
        for member_id in Pace().over(list(group.member_ids()), every=1):
            change = self._change(known, member_id)
            if change is None or change.saved is None:
                continue
            is_large = change.items > MADE_AT_ONCE
            if (_ASIDE.run(_encoded, change) if is_large else _encoded(change)) is not None:
                known.rows[member_id] = change.saved
                self._unclaimed.pop(key_of(name, member_id), None)
        group.take_unsaved()
        known.rows[WHOLE] = group.saved_whole()
        self._unclaimed.pop(key_of(name, WHOLE), None)

    def forget_others(self) -> None:
        """Delete the rows of before the start that no group goes on with; waits as a green thread.

        A group may write one of them meanwhile, which stays. Its own row goes before those of its members.
        """
        unclaimed = self._unclaimed
        try:
            for some in in_pieces(list(unclaimed), KEPT_MEMBERS_IN_A_ROUND):
                gone: Rows = {(MEMBERS, key): None for key in some if key in unclaimed}
                if gone:
                    self._writer.put_and_wait(gone)
            unclaimed.clear()
        except LogError as error:
            log.warning("rows of members that are gone were not deleted: %s", error)

    def _is_row(self, key: str, value: object) -> bool:
        # Octets are large rows, which are looked at beside the hub when they are decoded.
        return type(value) is bytes or self._is_row_of(key, value)

    def _is_row_of(self, key: str, value: object) -> bool:
        if type(value) is not list or not value:
            return False
        known = {kind.value: form for kind, form in self.formats.items()}
        form = known.get(value[0]) if type(value[0]) is str else None
        if form is None:
            return False
        is_whole = key == key_of(_name_of(key), WHOLE)
        return bool((form.is_whole if is_whole else form.is_member)(value[1:]))


def key_of(name: str, member_id: str) -> str:
    """The key of a member's row, or with WHOLE of the group's own."""
    if len(member_id) > _LONGEST_ID:
        octets = member_id.encode("utf-8", "surrogatepass")
        member_id = "#" + hashlib.blake2b(octets, digest_size=32).hexdigest()
    return f"{len(name)}:{name}{member_id}"


def _name_of(key: str) -> str:
    length, _, rest = key.partition(":")
    return rest[: int(length)]


def _is_key(key: str) -> bool:
    length, colon, rest = key.partition(":")
    is_number = length.isascii() and length.isdecimal() and len(length) < 10
    return bool(colon) and is_number and str(int(length)) == length and int(length) <= len(rest)
