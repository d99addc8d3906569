"""A program that writes to a log until it is killed, and says after each commit what it was promised.

    python killed_writer.py FOLDER SEED DURABILITY

Every message says its partition and its sequence, so that a reader of the log can tell whether each is there
once, whole and in order. Besides appending it trims, compacts, deletes a partition and begins it anew, copies
the WAL and gives space back. One line of JSON on standard output for each acknowledged round.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator

from dafka.log import Log, LogPartition, Trim, compact, compaction, database, storage, sweeping, values
from dafka.log.limits import FILE_BYTES
from dafka.protocol.batch_writer import encode_batch

PARTITIONS = 6
BATCHES, COMPACTED, TEMPORARY = 3, 4, 5  # the others hold raw messages of some size
LARGE = (2, TEMPORARY)  # some of their values are files
KEPT = 40  # messages that trimming leaves at least
KEYS = 30
RECORDS = 4  # in each batch of the compacted partition
DELETE_RETENTION_MS = 50
GAP = 20  # batches without records that compaction leaves one after the other


def content(number: int, sequence: int, generation: int = 0) -> bytes:
    """Message ``sequence`` of partition ``number``; its size follows from both."""
    generation = generation if number == TEMPORARY else 0
    text = b"partition %d sequence %d generation %d " % (number, sequence, generation)
    if number == BATCHES:
        return encode_batch([(sequence, None, text + bytes(3000), ())] * 2, base_offset=2 * sequence)
    if number == COMPACTED:
        records = [(sequence, *keyed(RECORDS * sequence + place), ()) for place in range(RECORDS)]
        codec = "gzip" if sequence % 3 == 0 else None
        return encode_batch(records, base_offset=RECORDS * sequence, compression=codec)
    if number in LARGE and sequence % 16 == 0:
        return text + bytes(FILE_BYTES)
    return text + b"." * (0, 10, 100, 0, 0, 500)[number]


def keyed(offset: int) -> tuple[bytes, bytes | None]:
    """Key and value of a record of the compacted partition; some are tombstones."""
    key = b"key %d" % (offset * 7919 % 10007 % KEYS)
    return key, None if offset % 11 == 0 else b"value %d" % offset


def partitions(log: Log) -> list[LogPartition]:
    return [log.partition(b"hello", b"%032d" % number) for number in range(PARTITIONS)]


def main(folder: str, seed: str, durability: str) -> None:
    choice = random.Random(seed)
    compaction.COMPACTION_GAP = GAP
    storage.NOTED_ROWS = sweeping.NOTED_ROWS = choice.choice((1, 10_000))  # what is large, and opened so
    database.SWEPT_ROWS = values.SWEPT_FILES = choice.choice((1, 10))
    log = Log(folder, durability=durability)  # type: ignore[arg-type]
    rounds = log.table("rounds").get("count", 0)
    generation = log.table("rounds").get("generation", 0)
    compacting: Iterator[object] | None = None
    while True:
        known = partitions(log)
        appends = []
        for number, partition in enumerate(known):
            first = partition.next_sequence
            count = choice.choice((0, 1, 1, 1, 2, 30))
            appends.append((partition, [content(number, first + n, generation) for n in range(count)]))
        trims, drops = [], []
        chance = choice.random()
        if chance < 0.1:
            number = choice.randrange(BATCHES + 1)
            partition = known[number]
            behind = max(0, partition.next_sequence - KEPT - choice.randrange(20))
            if number == BATCHES:
                trims = [Trim(partition, before_offset=max(0, 2 * behind - 1))]
            else:
                trims = [Trim(partition, before_sequence=behind)]
        elif chance < 0.15:
            generation += 1
            drops = [known[TEMPORARY]]
            del appends[TEMPORARY]
        elif chance < 0.3:
            log.space.checkpoint()
            log.space.vacuum(64 * 1024)
        for _ in range(choice.randrange(4)):
            log.space.sweep()
        rounds += 1
        table = {("rounds", "count"): rounds, ("rounds", "generation"): generation}
        collect = choice.choice((0, 0, 10_000, 1_000_000))
        log.write(appends, table, trims=trims, drops=drops, collect_bytes=collect)
        said = {
            "next": [partition.next_sequence for partition in partitions(log)],
            "first": [partition.first_sequence for partition in partitions(log)],
            "rounds": rounds,
            "generation": generation,
        }
        os.write(1, json.dumps(said).encode() + b"\n")
        if compacting is None and choice.random() < 0.2:
            now = int(time.time() * 1000)
            retention = DELETE_RETENTION_MS
            compacting = compact(
                log,
                known[COMPACTED],
                now_ms=now,
                delete_retention_ms=retention,
                max_keys=choice.choice((8, 99)),
            )
        if compacting is not None and next(compacting, None) is None:
            compacting = None


if __name__ == "__main__":
    main(*sys.argv[1:])
