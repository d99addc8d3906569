"""The disk backend of a master: its content, crashes that it survives, and its errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import time

import pytest
from overlay.node.stores.crashes import Crashes
from timing import each_time, no_long_turn

from dafka.hub.hub import get_hub
from dafka.log import Log
from dafka.log.storage import Storage
from dafka.overlay import BackendFailure, Closed, Disk, Endpoint
from dafka.overlay.node import limits
from dafka.overlay.values import NAN, Count, Set, Timespan

WAIT = 100


def until(condition):
    ends = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < ends, "it never happens"
        time.sleep(0.01)


@pytest.fixture
def attach(tmp_path):
    """Attach a master with the folder ``name``; endpoints are closed at the end."""
    opened = []

    def attach(store="st", name="store", durability="process"):
        endpoint = Endpoint()
        opened.append(endpoint)
        return endpoint.attach_master(store, Disk(tmp_path / name, durability))

    yield attach
    for endpoint in opened:
        endpoint.close()


VALUES = [
    (None, NAN),
    (1, float("inf")),
    (Count(1), float("-inf")),
    (True, ""),
    ("text \udcff", ("vector", Set([1]))),
    (("a", 1), Timespan(-1)),
]


@pytest.mark.parametrize("durability", ["process", "power"])
def test_everything_is_there_again(attach, durability):
    with attach(durability=durability) as store:
        for key, value in VALUES:
            store.put(key, value)
        store.put("gone", 1)
        store.erase("gone")
    with attach(durability=durability) as store:
        assert len(store.keys()) == len(VALUES)
        assert [repr(store.get(key)) for key, _ in VALUES] == [repr(value) for _, value in VALUES]
        store.increment("count", Count(1))
    assert attach(durability=durability).get("count") == 1


def test_cleared_entries_stay_away_and_leave_the_disk(attach, tmp_path):
    with attach() as store:
        for number in range(1200):
            store.put(number, number)
        store.clear()
        store.put("after", 1)
    with attach() as store:
        assert list(store.keys()) == ["after"]
        rows = store._hosted._backend._log.table("overlay.rows")
        until(lambda: len(rows) == 1)


def test_keys_expire_by_the_wall_clock_while_nobody_is_there(attach):
    with attach() as store:
        store.put("short", 1, expiry=0.3)
        store.put("long", 1, expiry=1000)
    time.sleep(0.3)
    with attach() as store:
        until(lambda: not store.exists("short"))
        assert store.exists("long")


def test_a_put_unique_is_decided_once_across_lives(attach):
    with attach() as store:
        assert store.put_unique("k", 1)
    assert not attach().put_unique("k", 2)


def test_a_folder_is_private_and_of_one_store_and_one_process(attach, tmp_path):
    store = attach()
    assert os.stat(tmp_path / "store").st_mode & 0o077 == 0
    with pytest.raises(BackendFailure, match="is open in this process"):
        attach("other")
    store.close()
    with pytest.raises(BackendFailure, match="holds the store 'st', not 'other'"):
        attach("other")
    with Log(tmp_path / "log") as log:
        log.write([(log.partition(b"t", b"a"), [b"message"])])
    with pytest.raises(BackendFailure, match="something else"):
        attach(name="log")
    with pytest.raises(BackendFailure, match="not a log"):
        attach(name=".")  # it has other things in it
    attach().close()


def test_damage_is_a_named_error(attach, tmp_path):
    with attach() as store:
        store.put("k", "value")
    database = sqlite3.connect(tmp_path / "store" / "cache.db")
    with database:
        database.execute(
            "UPDATE Cache SET value = CAST(value || 'x' AS BLOB) WHERE substr(key, 3, 12) = ?",
            (b"overlay.rows",),
        )
        changed = database.execute("SELECT changes()").fetchone()[0]
    database.close()
    assert changed == 1
    with pytest.raises(BackendFailure, match=r"overlay\.rows.*is damaged"):
        attach()


def test_nothing_is_lost_while_the_disk_is_full(attach, monkeypatch):
    monkeypatch.setattr(limits, "STORE_RETRY_SECONDS", 0.05)
    full = True
    commit = Storage.commit

    def fails(self, deleted, stored):
        if full:
            raise self._not_written(os.strerror(errno.ENOSPC))
        return commit(self, deleted, stored)

    with attach() as store:
        store.put("before", 1)
        assert store.await_idle(WAIT)
        monkeypatch.setattr(Storage, "commit", fails)
        store.put("k", 1)
        until(lambda: store._hosted.failure)
        for use in (lambda: store.put("other", 1), lambda: store.get("before")):
            with pytest.raises(BackendFailure, match="No space left"):
                use()
        assert not store.await_idle(0.1)
        full = False
        until(lambda: store._hosted.failure is None)
        assert store.get("k") == 1 and store.await_idle(WAIT)
    assert attach().get("k") == 1


def test_writes_wait_for_each_other_in_large_commits(attach):
    store = attach()
    commits = 0
    backend = store._hosted._backend
    commit = backend.commit

    def counted(*arguments):
        nonlocal commits
        commits += 1
        commit(*arguments)

    def put_all():
        for number in range(1000):
            store.put(number, number)

    backend.commit = counted
    get_hub().run(put_all)  # in a thread of its own each may come when the one before is committed
    assert store.await_idle(WAIT)
    assert commits < 500


@each_time
def test_a_large_content_is_loaded_beside_the_hub(attach):
    with attach() as store:
        for number in range(5000):
            store.put(number, "x" * 50)
    get_hub().turns.reset()
    with attach() as store:
        assert len(store.keys()) == 5000
    no_long_turn(get_hub().turns.longest_cpu, 0.05)


def test_a_folder_that_cannot_be_is_refused():
    with Endpoint() as endpoint:
        for wrong, error, named in ((None, TypeError, "path is the"), ("a\0b", ValueError, "none can be")):
            with pytest.raises(error, match=named):
                endpoint.attach_master("st", Disk(wrong))


def test_entries_written_before_the_end_are_there(tmp_path):
    endpoint = Endpoint()
    store = endpoint.attach_master("st", Disk(tmp_path / "store"))
    for number in range(500):
        store.put(number, number)
    endpoint.close()
    with pytest.raises(Closed):
        store.put("k", 1)
    with Endpoint() as other:
        assert len(other.attach_master("st", Disk(tmp_path / "store")).keys()) == 500


def test_acknowledged_entries_survive_kill_9(tmp_path):
    crashes = Crashes(tmp_path, seed=7)
    while crashes.kills < 2 or not crashes.acknowledged:  # on a busy machine it comes to nothing at first
        crashes.crash()
    crashes.check()
