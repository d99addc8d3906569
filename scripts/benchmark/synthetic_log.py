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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from time import process_time
from typing import NamedTuple

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
    chunks = ((key.pack(), time, b"") for key, time in _keys(values, size))
    _insert(path, chain(chunks, _blocks(values, size) if blocks else ()))


def make_blocks(path: str, values: int) -> None:
    """The same with small values, without the rows of those that are in blocks."""
    count = values // BLOCK_CHUNKS - 1
    tail = ((key.pack(), time, b"") for key, time in _keys(values, SMALL, count * BLOCK_CHUNKS))
    _insert(path, chain(map(_block_without_chunks, range(count)), tail))


def _insert(path: str, made: Iterable[tuple[bytes, float, bytes]]) -> None:
    """Make a log with one record and these further rows: key, time and value."""
    with Log(path) as log:
        log.write([(log.partition(TOPIC, ADDRESS), [_first()])])
    with closing(sqlite3.connect(os.path.join(path, "cache.db"))) as rows, rows:
        rows.execute("PRAGMA synchronous = OFF")
        columns = "key, raw, store_time, access_time, size, mode, value"
        rows.executemany(f"INSERT INTO Cache ({columns}) VALUES (?, 1, ?, 0, 0, 1, ?)", made)


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


def measure_small(values: int, blocks: bool | None = True) -> tuple[float, float]:
    """Seconds to open and octets of memory, with blocks, without, or with nothing else (None)."""
    return run(partial(open_once, values=values, blocks=blocks))


def open_once(*, values: int, blocks: bool | None) -> tuple[float, float]:
    """As :func:`measure_small`, in this process."""
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
                Path(path, TIDY_NAME).unlink(missing_ok=True)  # a small log has none
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


class Table(NamedTuple):
    """What an option prints: a row for each size in terabytes, of values of ``value`` octets."""

    head: str
    sizes: tuple[float, ...]
    value: int
    row: Callable[[int], str]


def _large(values: int) -> str:
    opened, *places = measure(values)
    return f"{opened:>8.2f} s" + "".join(f"{1e6 * seconds:>8.1f} us" for seconds in places)


def _small(values: int) -> str:
    return "".join(map(_opened, (measure_small(values), measure_small(values, blocks=False))))


def _only_blocks(values: int) -> str:
    return _opened(measure_small(values, blocks=None))


def _opened(measured: tuple[float, float]) -> str:
    seconds, octets = measured
    return f"{seconds:>8.2f} s {octets / 1e6:>7.0f} MB"


def _files(values: int) -> str:
    orderly, killed, swept, step = measure_files(values)
    return f"{orderly:>8.2f} s {killed:>12.2f} s {swept:>9.2f} s {1000 * step:>6.1f} ms"


OPENING = f"{'opening':>10} {'memory':>10}"
TABLES = {
    "": Table(
        f"{'opening':>10} {'offset':>10} {'time':>10} {'retention':>10}", (0.01, 0.1, 1), VALUE, _large
    ),
    "--small": Table(f"{OPENING} {'without blocks':>21}", (0.01, 0.05), SMALL, _small),
    "--blocks": Table(OPENING, (0.1, 1), SMALL, _only_blocks),
    "--files": Table(
        f"{'opening':>10} {'after a kill':>14} {'all files':>11} {'step':>9}", (0.01, 0.05), VALUE, _files
    ),
}


def main() -> None:
    sizes = sys.argv[1:]
    table = TABLES[sizes.pop(0) if sizes and sizes[0] in TABLES else ""]
    print(f"{'TB':>6} {'values':>12} {table.head}")
    for size in map(float, sizes or table.sizes):
        values = int(size * 1e12 / table.value)
        print(f"{size:>6g} {values:>12,} {table.row(values)}", flush=True)


if __name__ == "__main__":
    main()
