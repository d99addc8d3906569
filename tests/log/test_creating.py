"""New databases: what diskcache makes, made once and copied, complete or not there at all."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import diskcache
import pytest
from log.messages import ADDRESS, database

from dafka.log import DamagedError, Log, LogOpenError, creating
from dafka.log.database import Database
from dafka.log.storage import Storage
from dafka.log.values import ValueDisk


@pytest.fixture(autouse=True)
def first_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creating, "_made", {})


def inside(folder: Path) -> tuple[list[object], list[object], list[object]]:
    with database(folder) as rows:
        tables = rows.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        settings = rows.execute("SELECT key, value FROM Settings ORDER BY key").fetchall()
        return tables, settings, rows.execute("SELECT key, value FROM Cache").fetchall()


@pytest.fixture
def opened_by_diskcache(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The folders whose databases diskcache has looked through."""
    folders: list[str] = []
    whole = diskcache.Cache.__init__

    def noted(self: object, directory: str, *args: object, **settings: object) -> None:
        folders.append(directory)
        whole(self, directory, *args, **settings)

    monkeypatch.setattr(diskcache.Cache, "__init__", noted)
    yield folders


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_copied_database_is_what_diskcache_makes(tmp_path: Path, durability: str) -> None:
    for name in ("first", "second"):
        Storage(str(tmp_path / name), durability).close()
    with Database(
        str(tmp_path / "plain"),
        disk=ValueDisk,
        disk_min_file_size=creating_size(durability),
        **creating.SETTINGS,
    ) as plain:
        creating.fill_database(plain)
        plain.reset("sqlite_synchronous", 1 if durability == "process" else 2)
    assert inside(tmp_path / "first") == inside(tmp_path / "second") == inside(tmp_path / "plain")


def creating_size(durability: str) -> int:
    from dafka.log.storage import _FILES_FROM

    return _FILES_FROM[durability]


def test_diskcache_makes_one_database_for_all_new_logs_and_those_that_are_opened_again(
    tmp_path: Path, opened_by_diskcache: list[str]
) -> None:
    for name in ("one", "two", "one", "two"):
        with Log(tmp_path / name) as log:
            log.write([(log.partition(b"hello", ADDRESS), [name.encode()])])
    assert opened_by_diskcache == [str(tmp_path / "one" / "cache.db.new")]
    for name in ("one", "two"):
        with Log(tmp_path / name) as log:
            partition = log.find(b"hello", ADDRESS)
            assert partition is not None and partition.next_sequence == 2


def test_a_log_of_another_durability_gets_the_settings_of_its_own(
    folder: Path, opened_by_diskcache: list[str]
) -> None:
    for durability, size in (("process", 128 * 1024), ("power", 2**62), ("process", 128 * 1024)):
        storage = Storage(str(folder), durability)
        assert storage._cache.disk.min_file_size == size
        assert storage._cache._sql("PRAGMA synchronous").fetchone() == (1 if durability == "process" else 2,)
        storage.close()
        with database(folder) as rows:
            select = "SELECT value FROM Settings WHERE key = 'disk_min_file_size'"
            assert rows.execute(select).fetchone() == (size,)


def test_settings_that_another_program_has_left_are_a_log_s_again(folder: Path) -> None:
    Log(folder).close()
    with diskcache.Cache(folder, cull_limit=10, sqlite_synchronous=0) as cache:
        cache.reset("eviction_policy", "least-recently-stored")
    storage = Storage(str(folder), "process")
    assert (storage._cache.eviction_policy, storage._cache.cull_limit) == ("none", 0)
    storage.close()
    with database(folder) as rows:
        settings = dict(rows.execute("SELECT key, value FROM Settings").fetchall())
    assert settings.items() >= creating.SETTINGS.items()


def test_a_database_is_its_owner_s_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for name in ("first", "second"):
            with Log(tmp_path / name):
                for path in (tmp_path / name).glob("cache.db*"):
                    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("left", ["folder", "file", "link"])
def test_leftovers_of_an_interrupted_making_are_removed(tmp_path: Path, folder: Path, left: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    folder.mkdir(parents=True)
    (folder / "dafka.lock").write_bytes(b"1\n")
    unfinished = folder / "cache.db.new"
    if left == "folder":
        unfinished.mkdir()
        (unfinished / "cache.db").write_bytes(b"SQLite format 3")
    elif left == "file":
        unfinished.write_bytes(b"SQLite format 3")
    else:
        unfinished.symlink_to(elsewhere)
    Log(folder).close()
    assert not unfinished.exists() and not unfinished.is_symlink()
    assert (elsewhere / "kept").exists()


def test_the_journal_of_an_interrupted_making_is_not_played_back_into_the_new_database(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "dafka.lock").write_bytes(b"1\n")
    rows = sqlite3.connect(folder / "cache.db", isolation_level=None)
    rows.execute("PRAGMA cache_size = 5")
    rows.execute("BEGIN")
    rows.execute("CREATE TABLE Settings (value)")
    rows.execute("INSERT INTO Settings VALUES (zeroblob(100000))")
    journal = (folder / "cache.db-journal").read_bytes()
    rows.close()
    assert journal[:1] != b"\0"  # SQLite's sign that it is to be played back
    (folder / "cache.db").write_bytes(b"")
    (folder / "cache.db-journal").write_bytes(journal)
    Log(folder).close()
    assert not (folder / "cache.db-journal").exists()


def test_an_emptied_database_beside_its_wal_is_damage(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
        wal = (folder / "cache.db-wal").read_bytes()
    (folder / "cache.db").write_bytes(b"")
    (folder / "cache.db-wal").write_bytes(wal)
    with pytest.raises(DamagedError, match="is empty and the rest of the log is there"):
        Log(folder)
    assert (folder / "cache.db-wal").read_bytes() == wal
    (folder / "cache.db-wal").write_bytes(b"")
    Log(folder).close()


@pytest.mark.parametrize(
    ("step", "is_first"),
    [((creating, "fill_database"), True), ((os, "fsync"), False)],
    ids=["made", "copied"],
)
def test_a_database_that_a_full_disk_has_no_room_for_leaves_nothing(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[object, str], is_first: bool
) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    if not is_first:
        Log(tmp_path / "first").close()
    with monkeypatch.context() as patch:
        patch.setattr(*step, full)
        with pytest.raises(LogOpenError, match="No space left"):
            Log(folder)
    assert not list(folder.glob("cache.db*"))
    Log(folder).close()


def test_a_setting_that_no_log_has_is_damage_before_diskcache_sees_it(
    folder: Path, opened_by_diskcache: list[str]
) -> None:
    Log(folder).close()
    with database(folder) as rows:
        rows.execute("INSERT INTO Settings VALUES ('sqlite_writable_schema', 1)")
    del opened_by_diskcache[:]
    with pytest.raises(DamagedError, match="sqlite_writable_schema"):
        Log(folder)
    assert not opened_by_diskcache
