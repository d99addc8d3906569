"""Reading both sides once more: as many records, and the same ones."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kafka.errors import KafkaError

from dafka.broker.interface.broker import FetchFrom
from dafka.migrating.batches import committed
from dafka.migrating.checkpoint import Progress
from dafka.migrating.copying import ATTEMPTS, FETCH_BYTES, FETCH_SECONDS
from dafka.migrating.errors import MigrationError
from dafka.migrating.servers import Side
from dafka.protocol.batch_reader import Columns, decode_batch

_HEAD = struct.Struct(">qiii")
_TEXT = struct.Struct(">ii")


class Sum(NamedTuple):
    """Records and their checksum: BLAKE2 over timestamps, keys, values and headers in their order."""

    records: int
    digest: str


class Verified(NamedTuple):
    """A partition with what the two sides have."""

    topic: str
    number: int
    source: Sum
    destination: Sum

    @property
    def equal(self) -> bool:
        return self.source == self.destination


def verify(
    source: Side, destination: Side, partitions: Sequence[Progress], jobs: int, read: Callable[[int], object]
) -> list[Verified]:
    """Compare everything that was copied; ``read`` is told numbers of records, of both sides."""

    def one(progress: Progress) -> Verified:
        theirs = checksum(
            source, progress.topic, progress.number, progress.source_start, progress.source, read
        )
        ours = checksum(
            destination,
            progress.topic,
            progress.number,
            progress.destination_start,
            progress.destination,
            read,
        )
        return Verified(progress.topic, progress.number, theirs, ours)

    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        try:
            return list(pool.map(one, partitions))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def checksum(
    side: Side,
    topic: str,
    number: int,
    start: int,
    end: int,
    read: Callable[[int], object] = lambda count: None,
) -> Sum:
    """Number and checksum of the committed records of a partition between two offsets."""
    count, digest, position, attempts = 0, hashlib.blake2b(digest_size=16), start, 0
    while position < end:
        before = position
        try:
            (answer,) = side.connection.call(
                "fetch",
                {(topic, number): FetchFrom(position, FETCH_BYTES)},
                max_wait=FETCH_SECONDS,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                read_committed=True,
            ).values()
            error = answer.error and answer.error.__name__
        except KafkaError as failure:
            answer, error = None, str(failure)
        if error == "OffsetOutOfRangeError" and position < answer.log_start_offset:
            position = min(answer.log_start_offset, end)  # the counts will differ and show it
        elif not error:
            for header, batch in committed(answer.batches, answer.aborted):
                if batch is not None and header.count:
                    taken = _add(digest, decode_batch(batch), position, end)
                    count += taken
                    read(taken)
                position = max(position, min(header.next_offset, end))
        attempts = 0 if position > before else attempts + 1
        if attempts > ATTEMPTS:
            raise MigrationError(f"{side.name}: {topic}-{number} cannot be read from {position}: {error}")
    return Sum(count, digest.hexdigest())


def _add(digest: hashlib.blake2b, columns: Columns, start: int, end: int) -> int:
    pieces: list[bytes] = []
    count = 0
    for offset, timestamp, key, value, headers in zip(*columns, strict=True):
        if not start <= offset < end:
            continue
        count += 1
        lengths = (-1 if key is None else len(key), -1 if value is None else len(value), len(headers))
        pieces += (_HEAD.pack(timestamp, *lengths), key or b"", value or b"")
        for name, text in headers:
            data = name.encode()
            pieces += (_TEXT.pack(len(data), -1 if text is None else len(text)), data, text or b"")
    digest.update(b"".join(pieces))
    return count
