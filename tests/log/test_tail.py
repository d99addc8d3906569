"""Recent messages come from memory, and memory has a bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, numbered

from dafka.log import Log
from dafka.log.chunk import RAW, Chunk
from dafka.log.tail import ChunkCache


def chunk(size: int) -> Chunk:
    return Chunk(RAW, 0, [], [], size)


def test_the_one_not_used_for_the_longest_time_goes_first() -> None:
    cache = ChunkCache(100)
    for key in (b"a", b"b", b"c"):
        cache.put(key, chunk(30))
    assert cache.get(b"a") is not None
    cache.put(b"d", chunk(40))
    assert [cache.get(key) is not None for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert cache.bytes == 100


def test_a_chunk_larger_than_the_bound_is_not_kept() -> None:
    cache = ChunkCache(100)
    cache.put(b"a", chunk(60))
    cache.put(b"a", chunk(101))
    assert (cache.get(b"a"), cache.bytes) == (None, 0)


def test_putting_dropping_and_clearing_keep_the_account() -> None:
    cache = ChunkCache(100)
    cache.put(b"a", chunk(60))
    cache.put(b"a", chunk(50))
    assert cache.bytes == 50
    cache.drop(b"a")
    cache.drop(b"a")
    assert cache.bytes == 0
    cache.put(b"b", chunk(50))
    cache.clear()
    assert (cache.get(b"b"), cache.bytes) == (None, 0)


def test_memory_stays_within_tail_bytes(folder: Path) -> None:
    with Log(folder, tail_bytes=100_000) as log:
        partition = log.partition(b"hello", ADDRESS)
        for first in range(0, 10_000, 100):
            log.write([(partition, numbered(first, 100, 100))])
            log.read(partition, first // 2, count=100, max_bytes=EVERYTHING)
        assert 40_000 < log._reader._written.bytes <= 50_000
        assert 40_000 < log._reader._read.bytes <= 50_000


def test_the_newest_messages_and_those_just_read_do_not_touch_the_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"old", ADDRESS), numbered(0, 100))])
    with Log(folder) as log:
        old, new = log.partition(b"old", ADDRESS), log.partition(b"new", ADDRESS)
        log.write([(new, numbered(0, 100))])
        log.read(old, 0, count=1, max_bytes=1)
        monkeypatch.setattr(log._storage, "get", None)
        assert log.read(new, 5, count=95, max_bytes=EVERYTHING)[1] == numbered(5, 95)
        assert log.read(old, 5, count=95, max_bytes=EVERYTHING)[1] == numbered(5, 95)
