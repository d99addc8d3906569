"""What the tests of compaction write into partitions, and what is left of it."""

from __future__ import annotations

from typing import Any

from log.messages import ADDRESS, EVERYTHING

from dafka.log import (
    Log,
    LogPartition,
    compact,
)
from dafka.protocol.batch import (
    check_batch,
)
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

DAY = 24 * 60 * 60 * 1000
Pair = tuple[bytes | None, bytes | None]


def write(
    log: Log, *batches: list[Pair], compression: str | None = None, padding: int = 9000
) -> LogPartition:
    """One chunk for each batch; a large header keeps them from being merged."""
    partition = log.partition(b"table", ADDRESS)
    for pairs in batches:
        base = partition.next_offset
        records = [(base + n, *pair, (("h", bytes(padding)),)) for n, pair in enumerate(pairs)]
        content = encode_batch(records, base_offset=base, compression=compression)
        log.write([(partition, [content])])
    return partition


def run(log: Log, partition: LogPartition, **options: Any) -> None:
    for _ in compact(log, partition, **options):
        pass


def kept(log: Log, partition: LogPartition) -> list[tuple[int, bytes | None, bytes | None]]:
    rows = []
    for _, _, content in log.read_offsets(partition, 0, max_bytes=EVERYTHING):
        check_batch(content)
        columns = decode_batch(content)
        assert columns.timestamps == columns.offsets
        rows += list(zip(columns.offsets, columns.keys, columns.values, strict=True))
    return rows


TAIL: list[Pair] = [(b"tail", b"t")]
