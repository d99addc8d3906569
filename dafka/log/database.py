"""Statements of a log for its database that diskcache has no methods for."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import diskcache

from dafka.log.chunk import CHUNK_TAG
from dafka.log.limits import PAUSE_KEYS, SWEPT_ROWS

_SOME_ROWS = 1000  # looked at before a pause may be taken: some two milliseconds
_OTHER_KEYS = 10
_BYTES, _RAW = {bytes}, {1}
_SMALL = 4096  # octets of a value that is read together with others
_DELETED_AT_ONCE = 64
_INSERT = (
    "INSERT INTO Cache (key, raw, store_time, access_time, access_count, size, mode, filename, value) "
    "VALUES (?, 1, ?, ?, 0, ?, ?, ?, ?)"
)
_UPSERT = _INSERT + (
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, expire_time = NULL, "
    "access_time = excluded.access_time, access_count = 0, tag = NULL, size = excluded.size, "
    "mode = excluded.mode, filename = excluded.filename, value = excluded.value"
)


class _Held:
    """The connection of a thread, which ends with it."""

    __slots__ = ("__weakref__", "connection")

    def __init__(self, connection: object) -> None:
        self.connection = connection


def _own_of_each_thread(local: Any, held: list[weakref.ref[_Held]]) -> Any:
    """A ``threading.local`` whose connections, in the attribute ``con``, are in ``held`` as well."""

    class OfThread(local):  # type: ignore[misc]
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "con":
                own = _Held(value)
                super().__setattr__("held", own)
                held.append(weakref.ref(own, held.remove))

        def __delattr__(self, name: str) -> None:
            super().__delattr__(name)
            if name == "con":
                super().__delattr__("held")

    return OfThread()


class Database(diskcache.Cache):  # type: ignore[misc]  # diskcache has no types
    """A cache with one connection for each OS thread, even where gevent has patched ``threading``.

    diskcache keeps its connection in a ``threading.local``. Where gevent has patched that, it is one for each
    green thread: every first read of one would open the database (0.35 ms) and keep two files open.
    """

    def at(self, directory: str) -> Database:
        """The cache in another folder, whose database has the same tables and settings; writes nothing.

        diskcache looks for the tables and writes each setting twice whenever it opens a database.
        """
        other = object.__new__(Database)
        other.__dict__.update(self.__dict__)
        other._directory = directory
        other._local = None
        other._disk = type(self._disk)(
            directory, **{key[5:]: value for key, value in vars(self).items() if key.startswith("disk_")}
        )
        return other

    def settings(self) -> dict[str, object]:
        """The settings that the database has, without what diskcache counts."""
        stored = dict(self._sql("SELECT key, value FROM Settings").fetchall())
        return {key: value for key, value in stored.items() if key not in diskcache.core.METADATA}

    @property
    def _local(self) -> object:
        return self._of_thread

    @_local.setter
    def _local(self, _: object) -> None:
        monkey = sys.modules.get("gevent.monkey")
        local = threading.local if monkey is None else monkey.get_original("threading", "local")
        self._held: list[weakref.ref[_Held]] = []
        self._of_thread = _own_of_each_thread(local, self._held)

    def connections(self) -> list[object]:
        """Those of all threads that run."""
        held = [one() for one in list(self._held)]
        return [one.connection for one in held if one is not None]

    def keys(self, tag: bytes, begin: bytes = b"", end: bytes = b"") -> Iterator[list[object]]:
        """Keys in order, PAUSE_KEYS at a time, from the index ``Cache_key_raw``, which holds nothing else.

        From ``begin`` on and up to ``end``, if they are given.
        """
        get = self.disk.get
        select = (
            "SELECT key, raw FROM Cache WHERE (key, raw) > (?, ?) AND key < ? "
            f"ORDER BY key, raw LIMIT {PAUSE_KEYS}"
        )
        rows: list[tuple[Any, Any]] = [(begin or tag, -1)]
        while rows := self._sql(select, (*rows[-1], end or _behind(tag))).fetchall():
            keys = [key for key, _ in rows]
            if set(map(type, keys)) != _BYTES or {raw for _, raw in rows} != _RAW:
                keys = [get(key, raw) for key, raw in rows]  # in which there is something foreign
            yield keys

    def other_keys(self, tags: Iterable[bytes]) -> list[object]:
        """A few keys of no tag, from the same index."""
        begins, ends = [b"", *map(_behind, sorted(tags))], sorted(tags)
        wheres = ["key IS NULL", "key < ?", *["key >= ? AND key < ?"] * len(ends), "key >= ?"]
        places = [place for pair in zip(begins, ends, strict=False) for place in pair]
        select = f"SELECT key, raw FROM Cache WHERE {' OR '.join(wheres)} LIMIT {_OTHER_KEYS}"
        return [self.disk.get(*row) for row in self._sql(select, (b"", *places, begins[-1])).fetchall()]

    def transact(self, retry: bool = False) -> AbstractContextManager[object]:
        """As diskcache has it, of one context manager instead of two."""
        return self._transact(retry)  # type: ignore[no-any-return]

    def put(self, rows: Iterable[tuple[bytes, object]]) -> list[int]:
        """Store rows in the transaction that is under way; they are then as ``set`` would have stored them.
        How many octets of each value are in the database.

        ``set`` looks for a row of that key first, in a transaction within this one. Here only values of
        chunks may have files, and their keys are new: a row that is there all the same is looked for then.
        """
        sql, store, now = self._sql, self.disk.store, time.time()
        sizes: list[int] = []
        for key, value in rows:
            size, mode, name, octets = store(value, False, key=key)
            row = key, now, now, size, mode, name, octets
            if key[:1] != CHUNK_TAG:
                sql(_UPSERT, row)
            else:
                try:
                    sql(_INSERT, row)
                except sqlite3.IntegrityError:
                    self._remove_files_of([key])
                    sql(_UPSERT, row)
            sizes.append(0 if octets is None else len(octets))
        return sizes

    def drop(self, keys: Sequence[bytes]) -> None:
        """Delete rows in the transaction that is under way, as ``delete`` does it, but many at once."""
        for begin in range(0, len(keys), _DELETED_AT_ONCE):
            some = keys[begin : begin + _DELETED_AT_ONCE]
            self._remove_files_of(some)
            self._sql(f"DELETE FROM Cache WHERE key IN ({_marks(some)}) AND raw = 1", some)

    def _remove_files_of(self, keys: Sequence[bytes]) -> None:
        select = (
            f"SELECT filename FROM Cache WHERE key IN ({_marks(keys)}) AND raw = 1 AND filename IS NOT NULL"
        )
        for (name,) in self._sql(select, keys).fetchall():
            self.disk.remove(name)

    def young_files(self, seconds: float, pause: Callable[[], object]) -> list[tuple[str, int, bytes]]:
        """(name, size, key) of the values with files that were stored in the last ``seconds``.

        Looks at the rows from the last one on, some at a time with a ``pause`` behind them, as far as some of
        them hold messages that were stored in that time: before the latest of those that were stored later,
        which is not the latest of all where the clock was set back.
        """
        select = (
            "SELECT rowid, CAST(filename AS TEXT), size, CAST(key AS BLOB), "
            "CAST(IFNULL(store_time, 0) AS REAL), substr(CAST(key AS BLOB), 1, 1) = ? "
            f"FROM Cache WHERE rowid <= ? ORDER BY rowid DESC LIMIT {_SOME_ROWS}"
        )
        found: list[tuple[str, int, bytes]] = []
        newest, until = float("-inf"), 2**63 - 1
        while rows := self._sql(select, (CHUNK_TAG, until)).fetchall():
            latest = float("-inf")  # of these rows
            for _, name, size, key, stored, is_chunk in rows:
                if is_chunk:
                    latest = max(latest, stored)
                    newest = max(newest, stored)
                if name is not None and stored >= newest - seconds:
                    found.append((name, size, key))
            if float("-inf") < latest < newest - seconds or rows[-1][0] == -(2**63):
                break
            until = rows[-1][0] - 1
            pause()
        return found

    def file_names(self) -> Iterator[list[str]]:
        """The names of all files of values, those of SWEPT_ROWS rows at a time: SQLite has to look at all.

        Rows that are there from beginning to end are among them; rounds may go on meanwhile.
        """
        select = (
            "SELECT CAST(filename AS TEXT) FROM Cache WHERE rowid > ? AND rowid <= ? AND filename IS NOT NULL"
        )
        some = f"SELECT rowid FROM Cache WHERE rowid > ? ORDER BY rowid LIMIT 1 OFFSET {SWEPT_ROWS}"
        after = -(2**63)
        while True:
            ends = self._sql(some, (after,)).fetchall()
            until = ends[0][0] if ends else 2**63 - 1
            yield [name for (name,) in self._sql(select, (after, until)).fetchall()]
            if not ends:
                return
            after = until

    def last_row(self) -> int:
        """The number of the row that was stored last, -1 if there is none."""
        (last,) = self._sql("SELECT MAX(rowid) FROM Cache").fetchall()[0]
        return -1 if last is None else int(last)

    def file_of(self, key: bytes) -> str | None:
        """The name of the file that holds the value of ``key``."""
        rows = self._sql("SELECT filename FROM Cache WHERE key = ? AND raw = 1", (key,)).fetchall()
        return rows[0][0] if rows else None

    def small(self, keys: Sequence[bytes]) -> dict[bytes, object]:
        """The values of ``keys`` that have at most _SMALL octets and no file."""
        select = (
            f"SELECT CAST(key AS BLOB), value FROM Cache WHERE key IN ({_marks(keys)}) AND raw = 1 "
            "AND mode = ? AND filename IS NULL AND expire_time IS NULL AND length(value) <= ?"
        )
        return dict(self._sql(select, (*keys, diskcache.core.MODE_RAW, _SMALL)).fetchall())

    def index_what_expires(self) -> None:
        """Restrict diskcache's index of expiry times to rows that expire; a log has none.

        diskcache indexes every row. Without them a commit of a small value writes four pages, not five.
        """
        self._sql("DROP INDEX Cache_expire_time")
        self._sql("CREATE INDEX Cache_expire_time ON Cache (expire_time) WHERE expire_time IS NOT NULL")

    def pragma(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a PRAGMA."""
        return self._sql(f"PRAGMA {text}").fetchall()  # type: ignore[no-any-return]

    def vacuum(self, pages: int) -> None:
        """Cut so many free pages off the file."""
        # SQLite cuts off one page a step, and ``execute`` of Python 3.11 makes a single step of it.
        self._con.executescript(f"PRAGMA incremental_vacuum({pages})")


def _marks(keys: Sequence[bytes]) -> str:
    """Places for the keys in a statement."""
    return ",".join("?" * len(keys))


def _behind(tag: bytes) -> bytes:
    """The first octet that no key with this tag begins with."""
    return bytes([tag[0] + 1])
