"""The database of a log: its settings, its connections, and its files after a death."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import diskcache
import forking
import pytest
from log.messages import ADDRESS, database

from dafka.log import Log
from dafka.log import database as database_module
from dafka.log.limits import FILE_BYTES
from dafka.log.storage import Storage


def test_the_database_is_set_up_to_keep_everything(folder: Path) -> None:
    storage = Storage(str(folder.parent), "power")
    cache = storage._cache
    assert (cache.eviction_policy, cache.cull_limit, cache.statistics) == ("none", 0, 0)
    assert cache.disk_min_file_size > 10**12
    assert cache._sql("PRAGMA journal_mode").fetchone() == ("wal",)
    assert cache._sql("PRAGMA auto_vacuum").fetchone() == (2,)
    storage.close()


def test_a_database_that_was_not_finished_is_made_anew(folder: Path) -> None:
    Log(folder).close()
    (folder / "cache.db").rename(folder / "cache.db.new")  # as a power cut may leave it, or worse:
    with (folder / "cache.db.new").open("r+b") as unfinished:
        unfinished.truncate(1000)
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
    assert not (folder / "cache.db.new").exists()
    with database(folder) as rows:
        assert rows.execute("PRAGMA auto_vacuum").fetchall() == [(2,)]
        assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_rows_that_never_expire_are_in_no_index_of_expiry(folder: Path) -> None:
    for _ in range(2):
        with Log(folder) as log:
            log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
    with diskcache.Cache(folder) as cache:
        cache.set("theirs", 1, expire=0)
        assert cache.expire() == 1
    with database(folder) as rows:
        plan = rows.execute("SELECT sql FROM sqlite_master WHERE name = 'Cache_expire_time'").fetchone()
        assert plan[0].endswith("WHERE expire_time IS NOT NULL")
        assert rows.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    with Log(folder) as log:
        assert log.find(b"hello", ADDRESS).next_sequence == 2  # type: ignore[union-attr]


def test_no_log_is_a_program_s_business_after_its_death(folder: Path) -> None:
    """The files left behind by a process that never closed do not matter."""
    program = f"""if True:
        import os
        from dafka.log import Log
        log = Log({str(folder)!r})
        log.write([(log.partition(b"hello", b"A"), [b"1"])])
        os._exit(0)
    """
    forking.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)
    assert (folder / "cache.db-wal").stat().st_size
    with Log(folder) as log:
        assert len(log.partitions()) == 1


def test_green_threads_share_the_connection_of_their_thread_where_gevent_has_patched_everything(
    folder: Path,
) -> None:
    program = f"""if True:
        from gevent import monkey
        monkey.patch_all()
        import gevent
        from gevent.threadpool import ThreadPool
        from dafka.log import Log
        with Log({str(folder)!r}, tail_bytes=0) as log:
            partition = log.partition(b"hello", b"A")
            log.write([(partition, [b"1"])])
            def read():
                assert log.read(partition, 0, count=1, max_bytes=1) == (0, [b"1"])
                return log._storage._cache._con
            green = [gevent.spawn(read) for _ in range(5)]
            gevent.joinall(green, raise_error=True)
            assert {{thread.value for thread in green}} == {{log._storage._cache._con}}
            round_ = log.begin([(partition, [b"2"])])
            pool = ThreadPool(1)
            pool.apply(round_.commit)
            round_.finish()
            assert log.read(partition, 0, count=9, max_bytes=9) == (0, [b"1", b"2"])
            assert pool.apply(lambda: log._storage._cache._con) is not log._storage._cache._con
            pool.kill()
    """
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=True)


def test_the_files_are_found_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "_SOME_ROWS", 3)
    with Log(tmp_path) as log:
        partition = log.partition(b"t", b"A" * 32)
        for number in range(5):
            log.write([(partition, [bytes(FILE_BYTES)])], {("table", str(number)): number})
        log.write([], {("table", "2"): None, ("table", "3"): None})
    (tmp_path / "values" / f"{0:032}.val").write_bytes(b"named by no row")
    pauses: list[bool] = []
    with Log(tmp_path, pause=lambda: pauses.append(True)) as log:
        assert len(pauses) >= 3
        _, contents = log.read(log.partition(b"t", b"A" * 32), 0, count=10, max_bytes=10 * FILE_BYTES)
        assert len(contents) == 5
    assert len(list((tmp_path / "values").iterdir())) == 5
