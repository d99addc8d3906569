"""A log larger than the disk: only its index, of values of a megabyte, whose octets are missing.

    python scripts/benchmark/synthetic_log.py [TERABYTES ...]        # 0.01 0.1 1

prints for each size how long it takes to open the log, to find a value by its offset and one by its time, and
to decide what retention lets go, each as processor time. Opening reads a row of the index for each value; the
others stay nearly the same from line to line.

    python scripts/benchmark/synthetic_log.py --small [TERABYTES ...]        # 0.01 0.05

has values of 36 kB, as rounds of few records leave them: how long opening takes and how much memory, with the
blocks that the log writes of an index, and without them.

    python scripts/benchmark/synthetic_log.py --blocks [TERABYTES ...]       # 0.1 1

has them as well, but of the index only the rows that opening reads: so a terabyte of them can be opened here.

    python scripts/benchmark/synthetic_log.py --files [TERABYTES ...]        # 0.01 0.05

makes the files as well, which take no space, and prints how long opening takes after an orderly end, and
after a kill; and how long it then takes, beside other work, to go through all files, and its longest step.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from time import process_time

from disk_log import ADDRESS, TOPIC, folder
from diskcache.core import MODE_BINARY
from processes import run

from dafka.log import Log
from dafka.log.chunk import BATCH, ChunkKey
from dafka.log.limits import BLOCK_CHUNKS
from dafka.log.sealed import BlockKey, pack_block
from dafka.log.sweeping import TIDY_NAME
from dafka.log.values import VALUES

VALUE = 1_000_000  # octets
SMALL = 36_000
RECORDS = 1000  # of a value
SECONDS = 10.0  # from one value to the next
SEEKS = 1000
AT_ONCE = 500  # values that retention lets go at a time


def make(path: str, values: int, size: int = VALUE, blocks: bool = True) -> None:
    """A log whose one partition has so many values, in its index; with the blocks that a log writes."""
    with Log(path) as log:
        log.write([(log.partition(TOPIC, ADDRESS), [_first()])])
    with closing(sqlite3.connect(os.path.join(path, "cache.db"))) as rows, rows:
        rows.execute("PRAGMA synchronous = OFF")
        columns = "key, raw, store_time, access_time, size, mode, value"
        insert = f"INSERT INTO Cache ({columns}) VALUES (?, 1, ?, 0, 0, 1, ?)"
        rows.executemany(insert, ((key.pack(), time, b"") for key, time in _keys(values, size)))
        if blocks:
            rows.executemany(insert, _blocks(values, size))


def make_blocks(path: str, values: int) -> None:
    """The same with small values, without the rows of those that are in blocks."""
    with Log(path) as log:
        log.write([(log.partition(TOPIC, ADDRESS), [_first()])])
    count = values // BLOCK_CHUNKS - 1
    with closing(sqlite3.connect(os.path.join(path, "cache.db"))) as rows, rows:
        rows.execute("PRAGMA synchronous = OFF")
        columns = "key, raw, store_time, access_time, size, mode, value"
        insert = f"INSERT INTO Cache ({columns}) VALUES (?, 1, ?, 0, 0, 1, ?)"
        rows.executemany(insert, (_block_without_chunks(number) for number in range(count)))
        tail = _keys(values, SMALL, count * BLOCK_CHUNKS)
        rows.executemany(insert, ((key.pack(), time, b"") for key, time in tail))


def _block_without_chunks(number: int) -> tuple[bytes, float, bytes]:
    begin, end = number * BLOCK_CHUNKS, (number + 1) * BLOCK_CHUNKS
    sequences, offsets = (1 + begin, 1 + end), (1 + begin * RECORDS, 1 + end * RECORDS)
    size = SMALL * BLOCK_CHUNKS
    key = BlockKey(0, *sequences, *offsets, 1000 * (end - 1), size, BLOCK_CHUNKS, BATCH)
    return key.pack(), 0.0, b""


def _first() -> bytes:
    from dafka.protocol.batch_writer import encode_batch

    return encode_batch([(0, None, b"", ())])


def _keys(values: int, size: int, begin: int = 0) -> Iterator[tuple[ChunkKey, float]]:
    for number in range(begin, values):
        first, offset = 1 + number, 1 + number * RECORDS
        key = ChunkKey(0, first, first + 1, offset, offset + RECORDS, 1000 * number, size, BATCH)
        yield key, SECONDS * number


def _blocks(values: int, size: int) -> Iterator[tuple[bytes, float, bytes]]:
    keys = (key for key, _ in _keys(values, size))
    for _ in range(values // BLOCK_CHUNKS - 1):
        row, value = pack_block([next(keys) for _ in range(BLOCK_CHUNKS)])
        yield row, 0.0, value


def measure(values: int) -> tuple[float, float, float, float]:
    """Seconds to open, to find an offset, to find a time, to decide what goes."""
    choice = random.Random(1)
    places = [choice.randrange(values) for _ in range(SEEKS)]
    with folder() as path:
        make(path, values)
        began = process_time()
        log = Log(path)
        opened = process_time() - began
        with log:
            partition = log.partition(TOPIC, ADDRESS)
            index = partition.index
            began = process_time()
            for place in places:
                assert index.at_offset(1 + place * RECORDS) == 1 + place
            by_offset = (process_time() - began) / SEEKS
            began = process_time()
            for place in places:
                assert index.at_timestamp(1000 * place) == (1 + place if place else 0)
            by_time = (process_time() - began) / SEEKS
            began = process_time()
            for old, keep in ((1000 * values // 2, None), (None, VALUE * values // 2)):
                partition.sequence_for_retention(older_than_ms=old, keep_bytes=keep, max_values=AT_ONCE)
            deciding = (process_time() - began) / 2
    return opened, by_offset, by_time, deciding


def measure_small(values: int) -> tuple[float, ...]:
    """Seconds to open and octets of memory, with blocks and without."""
    with_blocks = run(partial(open_once, values=values, blocks=True))
    return with_blocks + run(partial(open_once, values=values, blocks=False))


def open_once(*, values: int, blocks: bool | None) -> tuple[float, float]:
    """``blocks`` None: there is nothing else."""
    import psutil

    with folder() as path:
        if blocks is None:
            make_blocks(path, values)
        else:
            make(path, values, SMALL, blocks)
        before = psutil.Process().memory_info().rss
        began = process_time()
        log = Log(path)
        opened = process_time() - began
        grown = psutil.Process().memory_info().rss - before
        with log:
            index = log.partition(TOPIC, ADDRESS).index
            assert blocks is None or index.at_offset(1 + values // 2 * RECORDS) == 1 + values // 2
            assert len(index) == 1 + values
    return opened, grown


def make_files(path: str, values: int) -> None:
    """Give the values files of their size, which have no blocks on the disk."""
    os.makedirs(os.path.join(path, VALUES), exist_ok=True)
    with closing(sqlite3.connect(os.path.join(path, "cache.db"))) as rows, rows:
        rows.execute("PRAGMA synchronous = OFF")
        wanted = rows.execute("SELECT rowid FROM Cache WHERE access_time = 0 LIMIT ?", (values,)).fetchall()
        for (number,) in wanted:
            name = os.path.join(VALUES, f"{number:032x}.val")
            os.close(os.open(os.path.join(path, name), os.O_CREAT | os.O_WRONLY, 0o600))
            os.truncate(os.path.join(path, name), VALUE)
            row = (MODE_BINARY, name, VALUE, number)
            rows.execute("UPDATE Cache SET mode=?, filename=?, size=? WHERE rowid = ?", row)


def measure_files(values: int) -> tuple[float, ...]:
    """Seconds to open after an orderly end and after a kill, to go through the files, of the longest step."""
    with folder() as path:
        make(path, values)
        make_files(path, values)
        taken = []
        for note in (True, False):
            with Log(path) as log:
                log.space.tidy()
            if not note:
                os.unlink(os.path.join(path, TIDY_NAME))
            began = process_time()
            log = Log(path)
            taken.append(process_time() - began)
            steps = [0.0]
            while log.space.sweeps:
                began = process_time()
                log.space.sweep()
                steps.append(process_time() - began)
            log.close()
    return *taken, sum(steps), max(steps)


def main() -> None:
    if sys.argv[1:2] == ["--files"]:
        print(f"{'TB':>6} {'files':>12} {'opening':>10} {'after a kill':>14} {'all files':>11} {'step':>9}")
        for size in map(float, sys.argv[2:] or ("0.01", "0.05")):
            values = int(size * 1e12 / VALUE)
            orderly, killed, swept, step = measure_files(values)
            row = f"{orderly:>8.2f} s {killed:>12.2f} s {swept:>9.2f} s {1000 * step:>6.1f} ms"
            print(f"{size:>6g} {values:>12,} {row}", flush=True)
        return
    if sys.argv[1:2] == ["--blocks"]:
        print(f"{'TB':>6} {'values':>12} {'opening':>10} {'memory':>10}")
        for size in map(float, sys.argv[2:] or ("0.1", "1")):
            values = int(size * 1e12 / SMALL)
            opened, memory = run(partial(open_once, values=values, blocks=None))
            print(f"{size:>6g} {values:>12,} {opened:>8.2f} s {memory / 1e6:>7.0f} MB", flush=True)
        return
    if sys.argv[1:2] == ["--small"]:
        print(f"{'TB':>6} {'values':>12} {'opening':>10} {'memory':>10} {'without blocks':>21}")
        for size in map(float, sys.argv[2:] or ("0.01", "0.05")):
            values = int(size * 1e12 / SMALL)
            opened, memory, plain, more = measure_small(values)
            row = f"{opened:>8.2f} s {memory / 1e6:>7.0f} MB {plain:>8.2f} s {more / 1e6:>7.0f} MB"
            print(f"{size:>6g} {values:>12,} {row}", flush=True)
        return
    print(f"{'TB':>6} {'values':>12} {'opening':>10} {'offset':>10} {'time':>10} {'retention':>10}")
    for size in map(float, sys.argv[1:] or ("0.01", "0.1", "1")):
        values = int(size * 1e12 / VALUE)
        opened, *places = measure(values)
        row = "".join(f"{1e6 * seconds:>8.1f} us" for seconds in places)
        print(f"{size:>6g} {values:>12,} {opened:>8.2f} s{row}", flush=True)


if __name__ == "__main__":
    main()
