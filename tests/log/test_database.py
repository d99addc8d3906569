"""What a log asks of its database: keys by their first octet, from their index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dafka.log.chunk import CHUNK_TAG
from dafka.log.creating import SETTINGS
from dafka.log.database import Database
from dafka.log.values import ForeignKey, ValueDisk


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Database]:
    with Database(str(tmp_path), disk=ValueDisk) as rows:
        yield rows


def test_keys_come_by_their_first_octet_in_order_and_some_at_a_time(
    rows: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.log.database.PAUSE_KEYS", 3)
    expected = [b"c", *(b"c%d" % number for number in range(7)), b"c\xff\xff"]
    for key in [*expected[::-1], b"b\xff", b"d", b""]:
        rows.set(key, b"value")
    pages = list(rows.keys(b"c"))
    assert [len(page) for page in pages] == [3, 3, 3]
    assert [key for page in pages for key in page] == expected
    assert list(rows.keys(b"x")) == []


def test_keys_of_other_kinds_are_told_from_those_of_the_same_octets(rows: Database) -> None:
    rows.set(b"c", b"value")
    add = "INSERT INTO Cache (key, raw, value) VALUES (?, ?, 1)"
    rows._sql(add, (b"c", 0))
    rows._sql(add, ("c", 1))
    (page,) = rows.keys(b"c")
    assert (page[0], page[1]) == (ForeignKey(0, b"c"), b"c")
    assert rows.other_keys([b"c"]) == ["c"]


@pytest.mark.parametrize("key", [None, 7, 1.5, "text", b"", b"a", b"d", b"e", b"\xff"])
def test_keys_besides_those_are_found(rows: Database, key: object) -> None:
    for known in (b"b1", b"c", b"f\xff"):
        rows.set(known, b"value")
    assert rows.other_keys([b"f", b"b", b"c"]) == []
    rows._sql("INSERT INTO Cache (key, raw, value) VALUES (?, 1, 1)", (key,))
    (found,) = rows.other_keys([b"f", b"b", b"c"])
    assert found in (key, ForeignKey(1, key))


def rows_of(cache: Database) -> list[tuple[object, ...]]:
    """All rows without their times and the names of files, and what diskcache counts of them."""
    select = (
        "SELECT key, raw, expire_time, access_count, tag, size, mode, filename IS NULL, value FROM Cache "
        "ORDER BY key"
    )
    counted = "SELECT key, value FROM Settings WHERE key IN ('count', 'size') ORDER BY key"
    return [*cache._sql(select).fetchall(), *cache._sql(counted).fetchall()]


def test_rows_that_are_put_and_dropped_together_are_as_diskcache_stores_and_deletes_them(
    tmp_path: Path,
) -> None:
    """Also over a row that expires, has a tag or a file; and there is no file for a row that has none."""
    settings = {**SETTINGS, "disk": ValueDisk, "disk_min_file_size": 100}
    first, second, third = (CHUNK_TAG + b"%d" % number for number in range(3))
    rounds = [
        [(first, bytes(200)), (b"t1", b"value"), (b"t2", bytes(300))],
        [(first, bytes(150)), (b"t1", b"another")],
        [(first, b"short"), (second, bytes(250)), (third, bytes(270)), (b"t2", b"")],
    ]
    with Database(tmp_path / "one", **settings) as one, Database(tmp_path / "other", **settings) as other:
        for cache in (one, other):
            cache.set(b"t1", b"before", expire=1000, tag=b"tag")
        for number, rows in enumerate(rounds):
            for cache in (one, other):
                cache.disk.begin([])
            with one.transact():
                sizes = one.put(rows)
            assert sizes == [0 if one.disk.takes(*row) else len(row[1]) for row in rows]
            for key, value in rows:
                other.set(key, value)
            assert rows_of(one) == rows_of(other), number
            assert {key: one.get(key) for key, _ in rows} == dict(rows)
            for cache in (one, other):
                cache.disk.committed()
            assert one.disk.removable_bytes == other.disk.removable_bytes
        gone = [second, b"t1", b"nothing", *[b"x%d" % number for number in range(100)]]
        with one.transact():
            one.drop(gone)
        for key in gone:
            other.delete(key)
        assert rows_of(one) == rows_of(other)
        for cache in (one, other):
            cache.disk.committed()
            cache.disk.unlink_removed(3)
            assert cache.check() == []  # neither too few files nor too many
