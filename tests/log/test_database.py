"""What a log asks of its database: keys by their first octet, from their index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
