"""The record batches of one flush."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

from dafka.protocol.batch_writer import encode_columns
from dafka.protocol.raw import message_sizes, records_of_messages
from dafka.zper.envelope import Frames
from dafka.zper.gathering import Run

COPIED = "zper.copied"
"""The header of a message that another node has copied to this one; its replicas do not get it from here."""

RECORD_OCTETS = 64  # a bound of what a record has beside its message in RAW form, and the key of a marked one


class Batch(NamedTuple):
    """Messages as one record batch. ``sizes`` are their octets in RAW form."""

    messages: list[Frames]
    timestamps: list[int]
    sizes: list[int]
    copied: bool = False

    def encode(self) -> bytes:
        """The record batch."""
        keys, values, headers = records_of_messages(self.messages)
        if self.copied:
            headers = [(*some, (COPIED, b"")) for some in headers]
        return encode_columns(self.timestamps, keys, values, headers)

    def halves(self) -> tuple[Batch, Batch]:
        """The first and the second half of it."""
        messages, timestamps, sizes, copied = self
        middle = len(messages) // 2
        return (
            Batch(messages[:middle], timestamps[:middle], sizes[:middle], copied),
            Batch(messages[middle:], timestamps[middle:], sizes[middle:], copied),
        )


def batches(runs: Iterable[Run], limit: int) -> Iterator[Batch]:
    """The messages of the runs, in their order, in batches of ``limit`` octets; a longer one stands alone."""
    batch = Batch([], [], [])
    octets = 0
    for run in runs:
        if not batch.messages:
            batch = batch._replace(copied=run.copied)
        sizes = message_sizes(run.messages)
        total = sum(sizes) + RECORD_OCTETS * len(sizes)
        if max(map(len, run.messages)) > 2:
            total += sum(map(_repeated, run.messages))
        pieces: Iterable[tuple[list[Frames], list[int], int]]
        if octets + total <= limit:
            pieces = [(list(run.messages), sizes, total)]
        else:
            pieces = (
                ([message], [size], size + RECORD_OCTETS + _repeated(message))
                for message, size in zip(run.messages, sizes, strict=True)
            )
        for messages, own_sizes, own in pieces:
            if batch.messages and (octets + own > limit or batch.copied != run.copied):
                yield batch
                batch, octets = Batch([], [], [], run.copied), 0
            batch.messages.extend(messages)
            batch.timestamps.extend(repeat(run.timestamp, len(messages)))
            batch.sizes.extend(own_sizes)
            octets += own
    if batch.messages:
        yield batch


def _repeated(message: Frames) -> int:
    """The octets of the first frame where it is both the key and in the value."""
    return len(message[0]) if len(message) > 2 else 0
