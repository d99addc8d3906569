"""A program that writes to a log until it is killed, and says after each commit what it was promised.

    python killed_writer.py FOLDER SEED DURABILITY

Every message says its partition and its sequence, so that whoever reopens the log can tell whether each is
there once, whole and in order. One line on standard output for each acknowledged round: the next sequence of
each partition, separated by blanks, and the value that the round left in the table.
"""

from __future__ import annotations

import os
import random
import sys

from dafka.log import Log
from dafka.protocol.batch_writer import encode_batch

PARTITIONS = 4  # the last one holds record batches


def content(number: int, sequence: int) -> bytes:
    """Message ``sequence`` of partition ``number``; its size follows from both."""
    text = b"partition %d sequence %d " % (number, sequence)
    size = (0, 10, 100, 3000)[number]
    if number == PARTITIONS - 1:
        return encode_batch([(sequence, None, text + bytes(size), ())] * 2, base_offset=2 * sequence)
    return text + b"." * size


def main(folder: str, seed: str, durability: str) -> None:
    choice = random.Random(seed)
    log = Log(folder, durability=durability)  # type: ignore[arg-type]
    partitions = [log.partition(b"hello", b"%032d" % number) for number in range(PARTITIONS)]
    rounds = log.table("rounds").get("count", 0)
    while True:
        appends = []
        for number, partition in enumerate(partitions):
            first = partition.next_sequence
            count = choice.choice((0, 1, 1, 1, 2, 30))
            appends.append((partition, [content(number, first + n) for n in range(count)]))
        rounds += 1
        log.write(appends, {("rounds", "count"): rounds})
        line = " ".join(str(partition.next_sequence) for partition in partitions)
        os.write(1, f"{line} {rounds}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
