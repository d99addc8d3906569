"""Tables: small named values next to the records, written in the same transactions.

The broker keeps its topics and the groups' offsets here. A value is JSON (None, bool, int, float, str, list,
dict with str keys; tuples come back as lists) or bytes; None deletes. The keys are read when the log opens,
a value when it is first asked for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crc32c import crc32c

from dafka.log import shapes
from dafka.log.errors import TableValueError
from dafka.log.limits import PAUSE_KEYS, READ_KEYS, TABLE_VALUE_BYTES
from dafka.log.ordered import OrderedKeys
from dafka.protocol.json_text import check_depth, read_json
from dafka.protocol.parted import PartedDict

TABLE_TAG = b"t"

COMPACTION_TABLE = "log.compaction"
"""The log's own table: how far each partition, by its number, is compacted."""

LOST_TABLE = "log.lost"
"""The offset from which on a partition, by its number, has lost its records in a power cut. The log writes
it; the reader of an entry deletes it."""

_partition_number = re.compile("[0-9]{1,10}").fullmatch
OWN_TABLES = {
    COMPACTION_TABLE: shapes.rows(
        _partition_number,
        shapes.fields(
            {
                "clean": shapes.natural,
                "sections": shapes.list_of(shapes.row_of(shapes.natural, shapes.number, shapes.natural)),
            },
            {"unreadable": shapes.flag},
        ),
    ),
    LOST_TABLE: shapes.rows(_partition_number, shapes.natural),
}
"""The shapes of rows in the log's own tables."""

_JSON, _BYTES = b"j", b"b"


Load = Callable[[str, str, "shapes.RowShape | None"], tuple[bytes, Any]]
LoadSome = Callable[[str, Sequence[str], "shapes.RowShape | None"], dict[str, tuple[bytes, Any]]]


class Table:
    """The values of one table as they were last committed. Write through :meth:`dafka.log.Log.write`.

    ``load(table, key, shape)`` gives the stored and the decoded value of a key, ``load_some`` those of
    several keys at once, without those that ``load`` has to read.
    """

    def __init__(self, name: str, load: Load, load_some: LoadSome = lambda table, keys, shape: {}) -> None:
        self.name = name
        self._load = load
        self._load_some = load_some
        self._shape: shapes.RowShape | None = None
        self._keeps = True  # the values that are committed or read
        self._stored = PartedDict[str, bytes | None]()  # None: on disk, not read yet
        self._order = OrderedKeys()
        self._ahead: dict[str, tuple[bytes, Any] | None] = {}  # rows still on disk; None: to be read alone
        self._kinds: tuple[Callable[[str], str], Counter[str]] | None = None  # once they are asked for

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, each time a fresh object. Raises DamagedError."""
        if key not in self._stored:
            return default
        stored = self._stored[key]
        if stored is not None:
            return decode_value(stored)
        stored, value = self._load(self.name, key, self._shape)
        if self._keeps:
            self._stored[key] = stored
        return value

    def leave_on_disk(self) -> None:
        """From now on values are read each time they are asked for, for an owner that keeps them itself."""
        self._keeps = False

    def expect(self, shape: shapes.RowShape) -> None:
        """Check this shape whenever a row is read from disk."""
        self._shape = shape

    def items(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """(key, value) of all keys that begin with ``prefix``, in the order of the keys.

        Keys may come and go meanwhile; those that are gone when it is their turn are left out.
        """
        for key in self.keys(prefix):
            if self._stored[key] is not None:
                yield key, self.get(key)
                continue
            if key not in self._ahead:
                self._read_ahead(prefix, key)
            stored, value = self._ahead.pop(key) or self._load(self.name, key, self._shape)
            if self._keeps:
                self._stored[key] = stored
            yield key, value

    def _read_ahead(self, prefix: str, first: str) -> None:
        """Read the values of the next keys that are on the disk alone, as many as can be read at once."""
        if len(self._ahead) > 100 * READ_KEYS:  # of those who did not go through to the end
            self._ahead.clear()
        following = islice(self._order.beginning(prefix, first), READ_KEYS)
        unread = [key for key in following if key in self._stored and self._stored[key] is None]
        self._ahead.update(dict.fromkeys(unread))
        self._ahead.update(self._load_some(self.name, unread, self._shape))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys of :meth:`items`."""
        return (key for key in self._order.beginning(prefix) if key in self._stored)

    def unordered(self) -> Iterator[str]:
        """All keys in no order that means anything: the fast way to look at each.

        Keys may come and go meanwhile: some that are gone when it is their turn are given all the same.
        """
        return iter(self._order)

    def kinds(
        self, kind_of: Callable[[str], str], pause: Callable[[], object] | None = None
    ) -> Mapping[str, int]:
        """How many keys are of which kind: looked at once, and kept up to date from then on.

        ``kind_of(key)`` says a key's, always the same. A table is asked about one sort of kinds only. The
        first call may ``pause()`` now and then, if nothing is written to the table meanwhile.
        """
        if self._kinds is None:
            counts: Counter[str] = Counter()
            for number, key in enumerate(self._stored, 1):
                counts[kind_of(key)] += 1
                if pause is not None and not number % PAUSE_KEYS:
                    pause()
            self._kinds = kind_of, counts
        return self._kinds[1]

    def __contains__(self, key: object) -> bool:
        return key in self._stored

    def __iter__(self) -> Iterator[str]:
        """The keys in order."""
        return self.keys()

    def __len__(self) -> int:
        return len(self._stored)

    def open_with(self, keys: Sequence[str], pause: Callable[[], object]) -> None:
        """Note the keys that are on disk, which come in order; the log's own. The table is empty still."""
        for begin in range(0, len(keys), PAUSE_KEYS):
            some = keys[begin : begin + PAUSE_KEYS]
            for key in some:
                self._stored[key] = None
            self._order.extend(some)
            pause()

    def put_stored(self, key: str, stored: bytes | None) -> None:
        """Note a committed value (None: it is on disk); the log's own."""
        if key not in self._stored:
            self._count(key, 1)
            self._order.add(key)
        self._stored[key] = stored if self._keeps else None
        if self._ahead:
            self._ahead.pop(key, None)

    def drop(self, key: str) -> None:
        """Note a committed deletion; the log's own."""
        if key in self._stored:
            del self._stored[key]
            self._ahead.pop(key, None)
            self._count(key, -1)
            self._order.remove(key)

    def _count(self, key: str, change: int) -> None:
        if self._kinds is None:
            return
        kind_of, counts = self._kinds
        kind = kind_of(key)
        counts[kind] += change
        if not counts[kind]:
            del counts[kind]

    def forget_value(self, key: str) -> None:
        """Read the value again from disk when it is next asked for; the log's own."""
        if key in self._stored:
            self._stored[key] = None
            self._ahead.pop(key, None)


Encoded = dict[tuple[str, str], bytes | None]
Rows = tuple[list[bytes], list[tuple[bytes, bytes]]]


def encode_values(path: str, values: Mapping[tuple[str, str], object]) -> tuple[Encoded, Rows]:
    """The values as tables keep them, and the rows to delete and to store. Raises TableValueError."""
    encoded: Encoded = {}
    deleted: list[bytes] = []
    stored: list[tuple[bytes, bytes]] = []
    for (table, key), value in values.items():
        row = row_key(path, table, key)
        if value is None:
            encoded[table, key] = None
            deleted.append(row)
            continue
        try:
            content = encoded[table, key] = encode_value(value)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"table {table!r}, key {key!r} cannot hold this value: {error}"
            raise TableValueError(path, message) from error
        if len(content) > TABLE_VALUE_BYTES:
            raise TableValueError(
                path,
                f"table {table!r}, key {key!r}: a value has at most {TABLE_VALUE_BYTES} bytes, "
                f"this one {len(content)}",
            )
        stored.append((row, seal(row, content)))
    return encoded, (deleted, stored)


def row_key(path: str, table: str, key: str) -> bytes:
    """:func:`pack_key`, raising TableValueError."""
    try:
        return pack_key(table, key)
    except (ValueError, TypeError, AttributeError) as error:
        raise TableValueError(path, f"table {table!r}, key {key!r}: {error}") from error


def pack_key(table: str, key: str) -> bytes:
    """The row of a table's key. Raises ValueError for a name over 255 bytes."""
    name = table.encode("utf-8", "surrogatepass")
    if len(name) > 255:
        raise ValueError(f"the name of a table has at most 255 bytes, {table[:40]!r}... has {len(name)}")
    return TABLE_TAG + bytes([len(name)]) + name + key.encode("utf-8", "surrogatepass")


def unpack_key(row: bytes) -> tuple[str, str]:
    """(table, key); raises ValueError for anything that :func:`pack_key` did not make."""
    if len(row) < 2 or len(row) < 2 + row[1]:
        raise ValueError(f"a table's key of {len(row)} bytes")
    end = 2 + row[1]
    return row[2:end].decode("utf-8", "surrogatepass"), row[end:].decode("utf-8", "surrogatepass")


def encode_value(value: object) -> bytes:
    """A kind octet and the value. Raises TypeError or ValueError for a value that tables do not support."""
    if isinstance(value, bytes):
        return _BYTES + value
    text = json.dumps(value, separators=(",", ":"))
    check_depth(text)
    return _JSON + text.encode("ascii")


def decode_value(stored: bytes) -> Any:
    return stored[1:] if stored[:1] == _BYTES else read_json(stored[1:].decode())


def seal(row: bytes, stored: bytes) -> bytes:
    """The value as it goes to disk: with the CRC-32C of row and value behind it."""
    return stored + crc32c(stored, crc32c(row)).to_bytes(4, "little")


def unseal(row: bytes, value: object) -> bytes:
    """Check and return the value that :func:`seal` wrote; raises ValueError if it is missing or damaged."""
    if type(value) is not bytes or len(value) < 5:
        raise ValueError(f"its value is missing or too short (found {type(value).__name__})")
    stored = value[:-4]
    if crc32c(stored, crc32c(row)).to_bytes(4, "little") != value[-4:] or stored[:1] not in (_JSON, _BYTES):
        raise ValueError("its checksum (CRC-32C) does not match its bytes")
    return stored
