"""How long compaction takes: partitions in which every record has a key of its own.

    python scripts/benchmark/compacting.py [MEGABYTES ...]        # 50 100 200 400

prints the processor time of one run over each, and of it for 100 MB: the same in each line, if the work for a
key is the same however many there are. Values have 100 octets, keys 16.
"""

from __future__ import annotations

import sys
from functools import partial
from time import process_time

from disk_log import ADDRESS, TOPIC, folder
from processes import Figures, run

VALUE = bytes(100)
RECORDS = 1000  # of a batch
BATCHES = 8  # of a stored value


def compacted(*, octets: int) -> Figures:
    """Seconds of processor time to compact so many octets of values, and how many records they are."""
    from dafka.log import Log, compact
    from dafka.protocol.batch_writer import encode_batch

    records = octets // len(VALUE)
    with folder() as path, Log(path) as log:
        partition = log.partition(TOPIC, ADDRESS)
        while partition.next_offset < records:
            begin = partition.next_offset
            contents = [
                encode_batch(
                    [(0, b"%016d" % key, VALUE, ()) for key in range(at, at + RECORDS)], base_offset=at
                )
                for at in range(begin, begin + RECORDS * BATCHES, RECORDS)
            ]
            log.write([(partition, contents)])
        began = process_time()
        for _ in compact(log, partition):
            pass
        return process_time() - began, float(partition.next_offset)


def main() -> None:
    print(f"{'MB':>6} {'keys':>12} {'compacted in':>14} {'for 100 MB':>12}")
    for megabytes in map(int, sys.argv[1:] or ("50", "100", "200", "400")):
        seconds, keys = run(partial(compacted, octets=megabytes * 1_000_000))
        print(
            f"{megabytes:>6} {keys:>12,.0f} {seconds:>12.2f} s {100 * seconds / megabytes:>10.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
