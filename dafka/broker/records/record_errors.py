"""Which records of a refused batch are wrong, and why: in Produce responses from version 8 on (KIP-467).

A batch with one wrong record is refused as a whole. A client that knows the wrong record fails it with its
reason, and the others with an error that says that another record of their batch was refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from kafka.errors import InvalidRecordError, InvalidTimestampError

from dafka.broker.interface.broker import Error, Produced, RecordError
from dafka.broker.topics.configs import TopicSettings
from dafka.protocol.batch import BatchError, BatchHeader, read_header
from dafka.protocol.batch_walk import walk_records

RECORD_ERRORS = 10_000  # named in an answer at most

_UNBOUNDED = LAST_TIMESTAMP = 2**63 - 1
NO_TIMESTAMP = -1
APPEND_TIME = "the producer says LogAppendTime, which is the broker's to say (message.timestamp.type)"
_NO_KEY = "a record without a key, and the topic is compacted (cleanup.policy)"


def refusal(settings: TopicSettings, batches: Iterable[bytes], now: int, otherwise: Produced) -> Produced:
    """The answer for ``batches`` of which a topic with these ``settings`` refuses some record.

    ``otherwise`` is the answer if the records cannot be read.
    """
    wrong: list[RecordError] = []
    found: set[Error] = set()
    count = 0
    for count, (header, timestamp, has_key) in enumerate(_records(batches), 1):
        error: Error = InvalidRecordError
        message = "" if has_key or not settings.compacted else _NO_KEY
        if not message and no_append_time(settings, header):
            error, message = InvalidTimestampError, APPEND_TIME
        elif not message and not settings.log_append_time:
            error, message = InvalidTimestampError, timestamp_error(settings, timestamp, now)
            if header.timestamp_type and not message:
                message = timestamp_error(settings, header.max_timestamp, now)
        if message:
            found.add(error)
            if len(wrong) < RECORD_ERRORS:
                wrong.append(RecordError(count - 1, message))
    if not wrong:
        return otherwise
    first, detail = wrong[0]
    if count > 1:
        more = "" if len(wrong) < RECORD_ERRORS else " or more"
        detail = f"{len(wrong)}{more} of {count} records are wrong, the first is record {first}: {detail}"
    top = InvalidTimestampError if InvalidTimestampError in found else InvalidRecordError
    return Produced(top, detail=detail, record_errors=tuple(wrong))


def no_append_time(settings: TopicSettings, header: BatchHeader) -> bool:
    """Whether a batch says LogAppendTime where it may not: the broker gives the times, or it has none."""
    return bool(header.timestamp_type) and (settings.log_append_time or header.max_timestamp == NO_TIMESTAMP)


def timestamp_error(settings: TopicSettings, timestamp: int, now: int) -> str:
    """The fault of the timestamp of a record that comes ``now``, in words; both in ms."""
    if timestamp > min(now + settings.timestamp_after_max_ms, LAST_TIMESTAMP):
        return (
            f"timestamp {timestamp} is {timestamp - now} ms from now, "
            f"message.timestamp.after.max.ms is {settings.timestamp_after_max_ms}"
        )
    before = settings.timestamp_before_max_ms
    if before != _UNBOUNDED and timestamp < now - before and timestamp != NO_TIMESTAMP:
        return (
            f"timestamp {timestamp} is {now - timestamp} ms ago, message.timestamp.before.max.ms is {before}"
        )
    return ""


def _records(batches: Iterable[bytes]) -> Iterator[tuple[BatchHeader, int, bool]]:
    """Header and timestamp of each record, and whether it has a key; ends where a batch cannot be read."""
    with suppress(BatchError):
        for content in batches:
            header = read_header(content)
            for _, timestamp, has_key in walk_records(content):
                yield header, timestamp, has_key
