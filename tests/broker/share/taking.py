"""An acquisition from batches that were all read together."""

from __future__ import annotations

from collections.abc import Iterable

from dafka.broker.interface.share import Acquired
from dafka.broker.share.acquisition import Terms
from dafka.broker.share.partition import LogBatch, SharePartition


def acquire(
    partition: SharePartition,
    now: float,
    member: str,
    read_from: int,
    batches: Iterable[LogBatch],
    terms: Terms,
    *,
    records: int,
    strict: bool = False,
    batch_size: int = 0,
) -> list[Acquired]:
    taking = partition.begin(member, read_from, terms, records=records, strict=strict, batch_size=batch_size)
    partition.acquire(now, taking, read_from, batches)
    return taking.acquired
