"""Which folders are opened, and which are refused without touching them."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import diskcache
import pytest
from log.messages import ADDRESS, database

from dafka.log import DamagedError, Log, LogOpenError, LogVersionError, NotALogError
from dafka.log.verify import verify


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_relative_path_stays_the_folder_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Log("here") as log:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        log._storage.close()  # a new connection, as another thread would open
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
        assert log.path == str(tmp_path / "here")


def test_a_folder_with_other_content_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(NotALogError, match=r"letters, notes\.txt"):
        Log(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("filled", [True, False])
def test_another_programs_diskcache_is_refused_and_keeps_its_settings(tmp_path: Path, filled: bool) -> None:
    with diskcache.Cache(tmp_path) as cache:
        if filled:
            cache["theirs"] = 1
    with pytest.raises(NotALogError, match="not one of Dafka's"):
        Log(tmp_path)
    with database(tmp_path) as rows:
        select = "SELECT value FROM Settings WHERE key = 'eviction_policy'"
        assert rows.execute(select).fetchone() == ("least-recently-stored",)
    assert not (tmp_path / "dafka.lock").exists()


def test_a_file_that_is_not_a_database_is_refused(folder: Path) -> None:
    Log(folder).close()
    (folder / "cache.db").write_bytes(b"something else entirely" * 1000)
    with pytest.raises(NotALogError, match="not a SQLite database"):
        Log(folder)
    (folder / "dafka.lock").unlink()
    with pytest.raises(NotALogError, match="not a SQLite database"):
        Log(folder)


def test_a_copy_of_the_database_alone_is_a_log(folder: Path, tmp_path: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
    (tmp_path / "copy").mkdir()
    os.link(folder / "cache.db", tmp_path / "copy" / "cache.db")
    with Log(tmp_path / "copy") as log:
        assert len(log.partitions()) == 1


def test_a_log_whose_making_was_interrupted_is_made(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "dafka.lock").write_bytes(b"1\n")
    Log(folder).close()
    for tables in ("", "CREATE TABLE Settings (key TEXT NOT NULL UNIQUE, value)"):
        for path in folder.glob("cache.db*"):
            path.unlink()
        (folder / "cache.db").touch()
        with database(folder) as rows:
            rows.execute(tables)
        Log(folder).close()
    with database(folder) as rows:  # everything but the layout
        rows.execute("DELETE FROM Cache WHERE key = 'layout'")
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
    Log(folder).close()


def test_a_newer_layout_is_refused_and_not_touched(folder: Path) -> None:
    Log(folder).close()
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = 2 WHERE key = 'layout'")
    before = contents(folder)
    with pytest.raises(LogVersionError, match=r"layout 2 .* reads layout 1; .* upgrade dafka") as caught:
        Log(folder)
    assert (caught.value.found, caught.value.known) == (2, 1)
    before.pop(str(folder / "dafka.lock"))
    after = contents(folder)
    after.pop(str(folder / "dafka.lock"))
    assert after == before


@pytest.mark.parametrize("layout", [0, "'one'", "NULL"])
def test_a_layout_that_never_was_is_refused(folder: Path, layout: object) -> None:
    Log(folder).close()
    with database(folder) as rows:
        rows.execute(f"UPDATE Cache SET value = {layout} WHERE key = 'layout'")
    with pytest.raises(LogVersionError, match="reads layout 1"):
        Log(folder)


def test_a_disk_that_fails_is_named_with_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr("dafka.log.storage.create_database", fail)
        with pytest.raises(LogOpenError, match=r"disk I/O error$") as caught:
            Log(folder)
    assert caught.value.path == str(folder)
    Log(folder).close()


def test_a_full_disk_is_told_from_a_lack_of_rights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("dafka.log.storage.create_database", full)
    with pytest.raises(LogOpenError, match="disk is full; free some space"):
        Log(folder)


def test_too_many_open_files_are_told_from_a_lack_of_rights(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("dafka.log.storage.create_database", refuse)
    with pytest.raises(LogOpenError, match=r"Too many open files; let the process have more"):
        Log(folder)


@pytest.mark.parametrize("gone", [True, False])
def test_a_log_without_its_database_is_damaged_and_keeps_the_files_of_its_values(
    folder: Path, gone: bool
) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"large" * 100_000])])
    kept = {path: path.read_bytes() for path in folder.glob("cache.db*")}
    for path in kept:
        path.unlink()
    if not gone:
        (folder / "cache.db").touch()
    before = contents(folder / "values")
    assert before
    for _ in range(2):
        with pytest.raises(DamagedError, match=r"cache\.db.*bring it back"):
            Log(folder)
    (seen,) = {id(seen): seen for seen in verify(folder)}.values()
    assert [place for place, _ in seen.damages] == ["the database"]
    assert contents(folder / "values") == before
    for path, octets in kept.items():
        path.write_bytes(octets)
    with Log(folder) as log:
        assert log.partition(b"hello", ADDRESS).next_sequence == 1


def test_a_write_ahead_log_without_its_database_is_damaged_and_stays(folder: Path) -> None:
    Log(folder).close()
    (folder / "cache.db").unlink()
    (folder / "cache.db-wal").write_bytes(b"the only copy")
    with pytest.raises(DamagedError, match="is missing"):
        Log(folder)
    assert (folder / "cache.db-wal").read_bytes() == b"the only copy"
