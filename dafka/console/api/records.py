"""Records: pages, one of them, and new ones."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka.partitioner.default import murmur2

from dafka.broker.looking.outcomes import check
from dafka.broker.looking.places import offsets_of
from dafka.broker.looking.rows import NewRecord, RowError, row_of
from dafka.console import limits
from dafka.console.api.topics import THE_TOPIC, chosen, existing, place_of
from dafka.console.decoding.decoder import CHOICE, Decoder
from dafka.console.desk import Desk
from dafka.console.errors import ApiError, NotThereError
from dafka.console.records.batches import fetch, records
from dafka.console.records.pages import page_after, page_before, read_cursor, write_cursor
from dafka.console.records.shown import Record, shown
from dafka.console.routes import OFFSET, PARTITION, Parameter, Routes, list_of, thing
from dafka.console.turns import in_turns
from dafka.protocol.batch import CODECS
from dafka.protocol.batch_writer import encode_batch, record_size_bound

routes = Routes()

PARTITIONS = Parameter(
    "partitions",
    {"type": "string", "maxLength": 4000, "pattern": "^[0-9]{1,10}(,[0-9]{1,10})*$"},
    "Only these, as 0,2,5; otherwise all, the first 256 of them",
)
PLACE = {"type": "string", "minLength": 1, "maxLength": 100}
DECODE = (
    Parameter(
        "decode",
        {"type": "string", "maxLength": 300, "pattern": CHOICE},
        "What values are: auto, none, msgpack, schema:ID or schema:ID:MESSAGE of the registry",
        default="auto",
    ),
    Parameter("decode-key", {"type": "string", "maxLength": 300, "pattern": CHOICE}, "Keys", default="auto"),
)
_THE_PARTITION = Parameter("partition", PARTITION, "The partition", required=True)
_THE_OFFSET = Parameter("offset", OFFSET, "The offset", required=True)
_CURSOR = {"type": "string", "maxLength": 6000}
_BATCH_OCTETS = 512 * 1024  # that are put into one batch, unless one record alone is larger


@routes.add(
    "GET",
    "/topics/{topic}/records",
    "A page of records in the order of their times",
    THE_TOPIC,
    PARTITIONS,
    Parameter(
        "from", PLACE, "earliest, latest (the last ones), an offset, -10, a time (UTC), 2h", default="latest"
    ),
    Parameter("after", _CURSOR, "Go on here: `next` of another page"),
    Parameter("before", _CURSOR, "What is before this: `previous` of another page"),
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": limits.PAGE}, "At most", default=50),
    *DECODE,
)
def get_records(desk: Desk, topic: str, partitions: str | None, limit: int, **where: Any) -> dict[str, Any]:
    start, after, before = where["from"], where["after"], where["before"]
    numbers = partitions_named(desk, topic, partitions)
    decoder = decoder_of(desk, where, limits.DECODING_SECONDS)
    with desk.reading():
        if after is not None and before is not None:
            raise ApiError("a page is after something or before it")
        if after is not None or before is not None:
            cursor = read_cursor(after or before or "")
            chosen(desk, topic, cursor)
            page = (page_after if before is None else page_before)(desk, topic, cursor, limit)
        else:
            place = place_of(start)
            at = offsets_of(desk, place, [(topic, one) for one in numbers])
            offsets = {number: offset for (_, number), offset in at.items()}
            page = (page_before if place.kind == "latest" else page_after)(desk, topic, offsets, limit)
        return {
            "records": [shown(one, decoder) for one in in_turns(page.records)],
            "previous": write_cursor(page.start) if _more(page.first, page.start) else None,
            "next": write_cursor(page.end) if _more(page.end, page.last) else None,
            "first": {str(one): offset for one, offset in page.first.items()},
            "end": {str(one): offset for one, offset in page.last.items()},
        }


@routes.add(
    "GET",
    "/topics/{topic}/records/{partition}/{offset}",
    "One record, with up to four megabytes of its value",
    THE_TOPIC,
    _THE_PARTITION,
    _THE_OFFSET,
    *DECODE,
)
def get_record(desk: Desk, topic: str, partition: int, offset: int, **choices: Any) -> dict[str, Any]:
    decoder = decoder_of(desk, choices)
    with desk.reading():
        return shown(_one(desk, topic, partition, offset), decoder, limits.WHOLE_OCTETS)


@routes.add(
    "GET",
    "/topics/{topic}/records/{partition}/{offset}/value",
    "The octets of a value, whole, as a download",
    THE_TOPIC,
    _THE_PARTITION,
    _THE_OFFSET,
    stream="application/octet-stream",
)
def get_value(desk: Desk, topic: str, partition: int, offset: int) -> list[bytes]:
    with desk.reading():
        return [_one(desk, topic, partition, offset).value or b""]


@routes.add(
    "POST",
    "/topics/{topic}/records",
    "Write records: key, value, headers, partition and timestamp, each of which may be missing",
    THE_TOPIC,
    body=thing(
        ["records"],
        records=list_of({"type": "object"}, limits.PRODUCED, 1),
        compression={"enum": [None, *(name for name in CODECS if name)]},
    ),
)
def produce(desk: Desk, topic: str, body: Any) -> dict[str, Any]:
    """Text stands for its octets in UTF-8, ``key_base64`` and ``value_base64`` for any others."""
    numbers = [one.number for one in existing(desk, topic).partitions if one.writable]
    if not numbers:
        raise ApiError(f"only native producers write to {topic}")
    now = time.time_ns() // 1_000_000
    rows: dict[int, list[Any]] = {}
    for position, given in enumerate(body["records"]):
        try:
            record = row_of(given)
        except RowError as error:
            raise ApiError(f"record {position}: {error}") from None
        number = _partition(record, position, numbers)
        timestamp = now if record.timestamp is None else record.timestamp
        rows.setdefault(number, []).append((timestamp, record.key, record.value, record.headers))
    written = []
    for number, some in sorted(rows.items()):
        for batch in _batches(some):
            encoded = encode_batch(batch, compression=body.get("compression"))
            outcome = desk.call("produce", {(topic, number): [encoded]})[topic, number]
            check({(topic, number): outcome})
            written.append({"partition": number, "offset": outcome.base_offsets[0], "records": len(batch)})
    return {"written": written}


def decoder_of(desk: Desk, choices: Mapping[str, Any], seconds: float | None = None) -> Decoder:
    """The decoder of keys and values that the parameters DECODE ask for."""
    return desk.decoder(choices["decode_key"], choices["decode"], seconds)


def partitions_named(desk: Desk, topic: str, partitions: str | None) -> list[int]:
    """The partitions that are named, or all, within a bound. Raises ApiError."""
    wanted = None if partitions is None else [int(one) for one in partitions.split(",")]
    found = [number for _, number in chosen(desk, topic, wanted)]
    if partitions is not None and len(found) > limits.PARTITIONS_READ:
        raise ApiError(f"at most {limits.PARTITIONS_READ} partitions are read together")
    return found[: limits.PARTITIONS_READ]


def _more(lower: dict[int, int], upper: dict[int, int]) -> bool:
    return any(lower[one] < upper[one] for one in lower if one in upper)


def _one(desk: Desk, topic: str, partition: int, offset: int) -> Record:
    chosen(desk, topic, [partition])
    some = fetch(desk, topic, partition, offset)
    for record in records(partition, some, offset, offset + 1):
        return record
    raise NotThereError(f"there is no record at offset {offset} of {topic}-{partition}")


def _partition(record: NewRecord, position: int, numbers: list[int]) -> int:
    if record.partition is not None:
        return record.partition
    place = position if record.key is None else murmur2(record.key) & 0x7FFFFFFF
    return numbers[place % len(numbers)]


def _batches(rows: list[Any]) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    size = 0
    for row in rows:
        octets = record_size_bound(row[1], row[2], row[3])
        if found[-1] and size + octets > _BATCH_OCTETS:
            found.append([])
            size = 0
        found[-1].append(row)
        size += octets
    return found
