"""All tables of a log: values are read from the disk when they are used, and checked against their shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dafka.log import DamagedError, Log, LogClosedError, shapes
from dafka.log.shapes import RowShape
from dafka.log.storage import Storage
from dafka.log.table import unpack_key
from dafka.log.tables import Tables

NUMBERS = shapes.rows(str.isalpha, shapes.natural)


@pytest.fixture
def tables(folder: Path) -> Iterator[Tables]:
    """The tables of a folder with two rows of the table t."""
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): 2})
    storage = Storage(str(folder), "process")
    keys = [unpack_key(key) for key in storage if isinstance(key, bytes) and key[:1] == b"t"]
    yield Tables(str(folder), storage, keys, lambda: None, lambda: None)
    assert keys == []
    storage.close()


def test_rows_of_the_folder_are_there_and_read_when_they_are_used(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    get = Storage.get
    monkeypatch.setattr(Storage, "get", lambda *args: (read.append(args[-1]), get(*args))[1])
    table = tables.get("t")
    assert (sorted(table), read) == (["a", "b"], [])
    assert [table.get("a"), table.get("a")] == [1, 1]
    assert read == ["key 'a' of table 't'"]


def test_the_same_name_is_the_same_table(tables: Tables) -> None:
    assert tables.get("t") is tables.get("t")
    assert list(tables.get("new")) == []


def test_a_key_of_another_shape_is_damage_when_the_shape_is_declared(tables: Tables) -> None:
    digits = RowShape(str.isdigit, lambda key, value: True)
    with pytest.raises(DamagedError, match=r"key 'a' of table 't'.* no such key is ever written"):
        tables.get("t", digits)


def test_a_value_of_another_shape_is_damage_when_it_is_read(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): "two"})
    with Log(folder) as log:
        table = log.table("t", NUMBERS)
        assert table.get("a") == 1
        with pytest.raises(DamagedError, match=r"key 'b' of table 't'.* another shape"):
            table.get("b")


def test_values_of_a_closed_log_that_were_not_read_are_not_read(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", "a"): 1})
    log = Log(folder)
    table = log.table("t")
    log.close()
    with pytest.raises(LogClosedError):
        table.get("a")
