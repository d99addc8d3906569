"""What members say of the records that they have acquired, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from dafka.broker.interface.share import Acknowledged


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
