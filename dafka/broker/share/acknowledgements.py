"""What members say of the records that they have acquired, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dafka.broker.interface.share import Acknowledged
from dafka.broker.share.runs import RecordState, Runs


class InvalidRecordStateError(Exception):
    """An acknowledgement of records that the member has not acquired, or whose lock has expired."""


class BeyondError(Exception):
    """An acknowledgement of records behind those in flight, while there are any."""


class RenewalError(Exception):
    """Locks of this group cannot be renewed."""


def by_type(batch: Acknowledged, start: int) -> Iterator[tuple[int, int, int]]:
    """(first, last, type) of the offsets from ``start`` on that follow each other and have one type."""
    if len(batch.types) == 1:
        yield max(batch.first, start), batch.last, batch.types[0]
        return
    at, type_ = batch.first, batch.types[0]
    for offset, other in enumerate(batch.types, batch.first):
        if other != type_:
            if offset > start:
                yield max(at, start), offset - 1, type_
            at, type_ = offset, other
    yield max(at, start), batch.last, type_


def all_by_type(batches: Sequence[Acknowledged], start: int) -> list[tuple[int, int, int]]:
    """The same of all these. There may be ten thousand, most of which have one type."""
    parts: list[tuple[int, int, int]] = []
    for batch in batches:
        if batch.last >= start:
            if len(batch.types) == 1 and batch.first >= start:
                parts.append((batch.first, batch.last, batch.types[0]))
            else:
                parts += by_type(batch, start)
    return parts


def check_acquired(runs: Runs, now: float, member: str, parts: Sequence[tuple[int, int, int]]) -> None:
    """Raise InvalidRecordStateError unless the member has all of these (first, last, type), in order."""
    within = runs.within(parts[0][0], parts[-1][1])
    run = next(within, None)
    for first, last, _ in parts:
        if last >= runs.end:
            raise InvalidRecordStateError(f"no member has acquired the record at offset {last}")
        while run is not None and run.last < first:
            run = next(within, None)
        while run is not None and run.first <= last:
            if run.state is not RecordState.ACQUIRED or run.member != member or run.until <= now:
                raise InvalidRecordStateError(
                    f"the member has not acquired the record of offset {max(run.first, first)}"
                )
            if run.last >= last:
                break
            run = next(within, None)
