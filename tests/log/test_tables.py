"""All tables of a log: values are read from the disk when they are used, and checked against their shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dafka.log import DamagedError, Log, LogClosedError, shapes
from dafka.log.shapes import RowShape
from dafka.log.storage import Storage
from dafka.log.tables import Tables

NUMBERS = shapes.rows(str.isalpha, shapes.natural)


@pytest.fixture
def tables(folder: Path) -> Iterator[Tables]:
    """The tables of a folder with two rows of the table t."""
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): 2})
    storage = Storage(str(folder), "process")
    yield Tables(str(folder), storage, {"t": ["a", "b"]}, lambda: None, lambda: None)
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


def test_going_through_a_table_reads_many_small_values_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {f"{number:04}": number for number in range(300)}
    with Log(folder) as log:
        log.write([], {("t", key): value for key, value in written.items()})
        log.write([], {("t", "0100"): "long" * 2000})
    asked: list[int] = []
    some = Storage.get_small
    monkeypatch.setattr(Storage, "get_small", lambda *args: (asked.append(len(args[1])), some(*args))[1])
    with Log(folder) as log:
        table = log.table("t")
        table.get("0007")
        assert dict(table.items()) == {**written, "0100": "long" * 2000}
        assert sum(asked) <= 300 and len(asked) < 10
        table.leave_on_disk()
        assert dict(table.items("00")) == {key: written[key] for key in written if key[:2] == "00"}


def test_rows_read_ahead_are_not_given_after_a_change(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", key): 1 for key in "abcd"})
    for keeps in (True, False):
        with Log(folder) as log:
            table = log.table("t")
            if not keeps:
                table.leave_on_disk()
            through, beside = table.items(), table.items()
            assert (next(through), next(beside)) == (("a", 1), ("a", 1))
            log.write([], {("t", "b"): 2, ("t", "c"): None, ("t", "e"): 5})
            assert list(through) == list(beside) == [("b", 2), ("d", 1), ("e", 5)]
            log.write([], {("t", "b"): 1, ("t", "c"): 1, ("t", "e"): None})


def test_damage_is_told_when_it_is_the_turn_of_its_key(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): "two", ("t", "c"): 3})
    with Log(folder) as log:
        through = log.table("t", NUMBERS).items()
        assert next(through) == ("a", 1)
        with pytest.raises(DamagedError, match=r"key 'b' of table 't'.* another shape"):
            next(through)
