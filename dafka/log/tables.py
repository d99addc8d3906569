"""All tables of a log: rows that are committed to them, and rows that are read from the disk when asked
for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dafka.log.limits import PAUSE_KEYS
from dafka.log.reader import damaged
from dafka.log.shapes import RowShape
from dafka.log.storage import Storage
from dafka.log.table import OWN_TABLES, Table, decode_value, pack_key, row_key, unseal


class Tables:
    """The tables of the log in folder ``path``; ``check_open()`` raises if its rows can be read no longer.

    ``keys`` are those of each table on the disk, in order. Calls ``pause`` now and then.
    """

    def __init__(
        self,
        path: str,
        storage: Storage,
        keys: Mapping[str, Sequence[str]],
        check_open: Callable[[], None],
        pause: Callable[[], object],
    ) -> None:
        self._path = path
        self._storage = storage
        self._check_open = check_open
        self._pause = pause
        self._tables: dict[str, Table] = {}
        for table, stored in keys.items():
            self.get(table).open_with(stored, pause)
        for name, shape in OWN_TABLES.items():
            self.get(name, shape)

    def get(self, name: str, shape: RowShape | None = None) -> Table:
        """:meth:`dafka.log.Log.table`."""
        table = self._tables.get(name)
        if table is None:
            row_key(self._path, name, "")
            table = self._tables[name] = Table(name, self._load, self._load_some)
        if shape is not None:
            self._check_keys(table, shape)
            table.expect(shape)
        return table

    def commit(self, values: Mapping[tuple[str, str], bytes | None]) -> None:
        """These values were committed; None: they were deleted."""
        for (table, key), value in values.items():
            if value is None:
                self.get(table).drop(key)
            else:
                self.get(table).put_stored(key, value)

    def forget(self, places: Iterable[tuple[str, str]]) -> None:
        """Read these values again from the disk when they are asked for."""
        for table, key in places:
            self.get(table).forget_value(key)

    def _check_keys(self, table: Table, shape: RowShape) -> None:
        for number, key in enumerate(table.unordered(), 1):
            if not shape.key(key):
                raise damaged(self._path, _place(table.name, key), ValueError("no such key is ever written"))
            if not number % PAUSE_KEYS:
                self._pause()

    def _load(self, table: str, key: str, shape: RowShape | None) -> tuple[bytes, Any]:
        self._check_open()
        place = _place(table, key)
        row = pack_key(table, key)
        try:
            return _checked(key, row, self._storage.get(row, place), shape)
        except ValueError as error:
            raise damaged(self._path, place, error) from error

    def _load_some(
        self, table: str, keys: Sequence[str], shape: RowShape | None
    ) -> dict[str, tuple[bytes, Any]]:
        """The ones of these keys that can be read together; for damage, too, ``_load`` has the error."""
        self._check_open()
        rows = {key: pack_key(table, key) for key in keys}
        values = self._storage.get_small(list(rows.values()))
        read = {}
        for key, row in rows.items():
            if row in values:
                with suppress(ValueError):
                    read[key] = _checked(key, row, values[row], shape)
        return read


def _checked(key: str, row: bytes, value: object, shape: RowShape | None) -> tuple[bytes, Any]:
    """The stored and the decoded value of a row. Raises ValueError."""
    stored = unseal(row, value)
    decoded = decode_value(stored)
    if shape is not None and not shape.value(key, decoded):
        raise ValueError("its value has another shape than those that are written")
    return stored, decoded


def _place(table: str, key: str) -> str:
    return f"key {key!r} of table {table!r}"
