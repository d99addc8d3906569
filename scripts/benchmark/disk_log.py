"""The log on disk, measured against plain diskcache writes of the same records.

A record has 100 octets, a value 1000 records. Rates are records in a second, times are seconds. The folder
of a large log is made once (:func:`large_log`) and used by what asks for one; run as a program, this file
prints all figures::

    python scripts/benchmark/disk_log.py [RECORDS IN THE LARGE LOG]
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from processes import Figures

RECORD = bytes(100)
VALUE_RECORDS = 1000
LARGE = 10_000_000
TOPIC, ADDRESS = b"bench", b"A" * 32


@contextmanager
def folder() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="dafka-bench-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def diskcache_rate(records: int = 1_000_000) -> float:
    """The reference: values of 1000 records (100 kB), one ``set`` each, with diskcache's own settings."""
    import diskcache

    value = RECORD * VALUE_RECORDS
    with folder() as path, diskcache.Cache(path, size_limit=2**40, eviction_policy="none") as cache:
        began = perf_counter()
        for number in range(records // VALUE_RECORDS):
            cache.set(number, value)
        return records / (perf_counter() - began)


def batch() -> bytes:
    from dafka.protocol.batch_writer import encode_batch

    return encode_batch([(0, None, RECORD, ())] * VALUE_RECORDS)


def append_batches(records: int = 1_000_000) -> float:
    """Batches of 1000 records, a write round each."""
    from dafka.log import Log

    with folder() as path, Log(path) as log:
        return records / fill(log, records)


def fill(log: object, records: int) -> float:
    """Append batches to a log; how long it took."""
    from dafka.log import Log
    from dafka.protocol.batch import with_offset

    assert isinstance(log, Log)
    partition, content = log.partition(TOPIC, ADDRESS), batch()
    began = perf_counter()
    for _ in range(records // VALUE_RECORDS):
        log.write([(partition, [with_offset(content, partition.next_offset)])])
    return perf_counter() - began


def append_messages(messages: int = 500_000, in_flight: int = 5000) -> float:
    """Raw messages handed over one by one to the writer, with so many not acknowledged at most."""
    import gevent.event

    from dafka.commit.writer import Writer
    from dafka.hub.hub import get_hub
    from dafka.log import Log

    def measure(path: str) -> float:
        with Log(path) as log:
            writer = Writer(get_hub(), log)
            partition = log.partition(TOPIC, ADDRESS)
            acknowledged = 0
            some = gevent.event.Event()

            def done(error: Exception | None) -> None:
                nonlocal acknowledged
                assert error is None
                acknowledged += 1
                some.set()

            began = perf_counter()
            for sequence in range(messages):
                writer.append(partition, sequence, [RECORD], done)
                while sequence - acknowledged >= in_flight:
                    some.clear()
                    some.wait()
            while acknowledged < messages:
                some.clear()
                some.wait()
            ended = perf_counter()
            writer.close()
        return messages / (ended - began)

    with folder() as path:
        return float(get_hub().run(measure, path))


def read_batches(path: str, records: int = 1_000_000) -> float:
    """Sequential reading of whole batches from disk, a megabyte at a time."""
    from dafka.log import Log

    with Log(path, tail_bytes=0) as log:
        partition = log.partition(TOPIC, ADDRESS)
        offset = 0
        began = perf_counter()
        while offset < min(records, partition.next_offset):
            messages = log.read_offsets(partition, offset, max_bytes=1_000_000)
            offset = messages[-1][0] + VALUE_RECORDS
        return offset / (perf_counter() - began)


def seek_p99(path: str, seeks: int = 2000) -> float:
    """Reading one batch at a random offset: the time that one in a hundred exceeds."""
    from dafka.log import Log

    choice = random.Random(1)
    with Log(path, tail_bytes=0) as log:
        partition = log.partition(TOPIC, ADDRESS)
        times = []
        for _ in range(seeks):
            offset = choice.randrange(partition.next_offset)
            began = perf_counter()
            log.read_offsets(partition, offset, max_bytes=1)
            times.append(perf_counter() - began)
    return sorted(times)[seeks * 99 // 100]


def opening(path: str) -> float:
    """Opening the log."""
    from dafka.log import Log

    began = perf_counter()
    log = Log(path)
    took = perf_counter() - began
    log.close()
    return took


def retention_pause(path: str) -> tuple[float, float]:
    """Half of the log is trimmed while a producer appends a batch at a time, until its space is free: (the
    longest time an append took, how long all of it took). Halves the log."""
    import gevent

    from dafka.commit.writer import Numbered, Writer
    from dafka.hub.hub import get_hub
    from dafka.log import Log
    from dafka.protocol.batch import with_offset

    def measure() -> tuple[float, float]:
        content = batch()
        with Log(path) as log:
            writer = Writer(get_hub(), log)
            partition = log.partition(TOPIC, ADDRESS)
            wanted = partition.sequence_for_retention(keep_bytes=partition.bytes // 2)
            writer.trim(partition, lambda error: None, before_sequence=wanted)
            longest, began = 0.0, perf_counter()
            finished = False
            while not finished:
                outcome = gevent.event.AsyncResult()
                sent = perf_counter()
                writer.append_numbered(
                    partition,
                    lambda sequence, offset: Numbered(
                        sequence, [with_offset(content, offset)], offset + VALUE_RECORDS
                    ),
                    len(content),
                    outcome.set,
                )
                assert outcome.get() is None
                longest = max(longest, perf_counter() - sent)
                trimmed = partition.first_sequence == wanted
                finished = trimmed and not log.space.garbage_bytes and not log.space.spare_bytes
                gevent.sleep(0.002)
            took = perf_counter() - began
            writer.close()
        return longest, took

    result: tuple[float, float] = get_hub().run(measure)
    return result


@contextmanager
def large_log(records: int = LARGE) -> Iterator[str]:
    """The folder of a log with so many records."""
    from dafka.log import Log

    with folder() as path:
        with Log(path) as log:
            fill(log, records)
        yield path


def appending() -> Figures:
    """Rates of plain diskcache, of batches and of raw single messages."""
    return diskcache_rate(), append_batches(), append_messages()


def large(records: int = LARGE) -> Figures:
    """With a log of so many records: the rates of plain diskcache and of reading batches, the p99 of a random
    seek, the time of opening, and the longest append while half of it goes."""
    reference = diskcache_rate()
    with large_log(records) as path:
        reading = read_batches(path), seek_p99(path), opening(path)
        pause, _ = retention_pause(path)  # last: it halves the log
    return reference, *reading, pause


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else LARGE
    reference = diskcache_rate()

    def rate(name: str, value: float) -> None:
        print(f"{name:45} {value:12,.0f}/s   ratio {value / reference:.2f}", flush=True)

    rate("plain diskcache, values of 1000 records", reference)
    rate("appending batches", append_batches())
    rate("raw single messages through write rounds", append_messages())
    with large_log(records) as path:
        rate("sequential read of batches", read_batches(path))
        print(f"{'random seek p99':45} {1000 * seek_p99(path):12,.2f} ms")
        print(f"{'opening':45} {1000 * opening(path):12,.0f} ms", flush=True)
        pause, took = retention_pause(path)
        print(f"{'retention of half: longest append':45} {1000 * pause:12,.0f} ms   ({took:.1f} s in all)")


if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 3)[0])
    main()
