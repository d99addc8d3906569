"""Batches that a topic refuses for good, such as records without keys where it is compacted.

They are written in another way, or left out, so that those behind them go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kafka.errors import InvalidRecordError, MessageSizeTooLargeError, RecordListTooLargeError

from dafka.broker.interface.broker import Produced, TopicPartition
from dafka.hub.pool import BATCHES
from dafka.log.repeating import bounded_logger
from dafka.protocol.batch import CODEC_NAMES, COMPRESSION_MASK, HEADER_OCTETS, BatchError, read_header
from dafka.protocol.batch_reader import Columns, decode_batch
from dafka.protocol.batch_writer import encode_columns

log = bounded_logger(__name__)


class Refusals:
    """Hub side. ``discarded`` counts the records that are left out, by cause.

    ``allow(topic, octets)`` has a topic take batches of that size; whether it does now.
    """

    def __init__(
        self, discarded: Counter[str], allow: Callable[[str, int], bool] = lambda topic, octets: False
    ) -> None:
        self._discarded = discarded
        self._allow = allow
        self._allowed: dict[TopicPartition, bytes] = {}  # the header of what is written again

    def instead(self, key: TopicPartition, batches: Sequence[bytes], refusal: Produced) -> list[bytes] | None:
        """Batches to write instead of refused ones; None: the same, again."""
        if refusal.error in (MessageSizeTooLargeError, RecordListTooLargeError):
            return self._smaller(key, batches)
        if refusal.error is InvalidRecordError:
            return self._with_keys(key, batches)
        return None

    def _smaller(self, key: TopicPartition, batches: Sequence[bytes]) -> list[bytes] | None:
        largest = max(map(len, batches))
        found: list[bytes] = []
        for batch in batches:
            if 2 * len(batch) <= largest:
                found.append(batch)
                continue
            halves = BATCHES.run(halves_of, batch)
            if not halves and self._may_try_again(key, batch):
                halves = [batch]
            if not halves:
                count = read_header(batch).count
                what = "a record" if count == 1 else f"a batch of {count} records that cannot be cut"
                self._leave_out("size", key, count, f"{what}, of {len(batch)} octets, is too large")
            found += halves
        return found

    def _may_try_again(self, key: TopicPartition, batch: bytes) -> bool:
        """Whether the topic may take the batch now. It may refuse it whatever its settings, so once."""
        header = batch[:HEADER_OCTETS]
        if self._allowed.pop(key, None) == header or not self._allow(key[0], len(batch)):
            return False
        self._allowed[key] = header
        return True

    def _with_keys(self, key: TopicPartition, batches: Sequence[bytes]) -> list[bytes] | None:
        found: list[bytes] = []
        left_out = 0
        for batch in batches:
            try:
                kept, without = BATCHES.run(keyed, batch)
            except BatchError:  # nobody can say which of its records have keys
                kept, without = [], read_header(batch).count
            found += kept
            left_out += without
        if not left_out:
            return None
        self._leave_out("key", key, left_out, "records without a key, where the topic is compacted")
        return found

    def _leave_out(self, cause: str, key: TopicPartition, count: int, why: str) -> None:
        self._discarded[cause] += count
        log.error("left out of %s-%d: %d: %s", *key, count, why)


def halves_of(batch: bytes) -> list[bytes]:
    """The records of a batch in two; nothing if there is only one, or the batch cannot be read."""
    try:
        columns = decode_batch(batch)
    except BatchError:  # another site's brokers may store what they cannot read
        return []
    count = len(columns.offsets)
    if count < 2:
        return []
    codec = _codec(batch)
    return [_encoded(columns.part(*part), codec) for part in ((0, count // 2), (count // 2, count))]


def keyed(batch: bytes) -> tuple[list[bytes], int]:
    """A batch without its records that have no key, and how many those are."""
    columns = decode_batch(batch)
    kept = [row for row in zip(*columns, strict=True) if row[2] is not None]
    without = len(columns.offsets) - len(kept)
    if not without:
        return [batch], 0
    if not kept:
        return [], without
    return [_encoded(Columns(*map(list, zip(*kept, strict=True))), _codec(batch))], without


def _codec(batch: bytes) -> str | None:
    return CODEC_NAMES[read_header(batch).attributes & COMPRESSION_MASK]


def _encoded(records: Columns, codec: str | None) -> bytes:
    return encode_columns(
        records.timestamps, records.keys, records.values, records.headers, compression=codec
    )
