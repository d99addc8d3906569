"""Streams of records: a search, what comes from now on, and downloads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from dafka.broker.looking.places import bounds, offsets_of
from dafka.console import limits
from dafka.console.api.records import DECODE, PARTITIONS, PLACE, decoder_of, partitions_named
from dafka.console.api.topics import THE_TOPIC, place_of
from dafka.console.decoding.decoder import Decoded, Decoder
from dafka.console.decoding.plain import text_of
from dafka.console.desk import Desk
from dafka.console.records import long_values
from dafka.console.records.batches import fetched, records, size_of
from dafka.console.records.expressions import parse
from dafka.console.records.long_values import PIECE, json_of, octets_of
from dafka.console.records.searching import UNREADABLE, follow, search
from dafka.console.records.shown import Record
from dafka.console.routes import EVENTS, FLAG, Parameter, Routes
from dafka.console.turns import in_turns

routes = Routes()

_FROM = Parameter("from", PLACE, "From where: earliest, an offset, -10, a time (UTC), 2h", default="earliest")
_TO = Parameter("to", PLACE, "Up to where, which is not in it", default="latest")
_EXPRESSION = Parameter(
    "expression", {"type": "string", "maxLength": limits.EXPRESSION}, "What to look for", default=""
)
_COLUMNS = ["partition", "offset", "timestamp", "key", "value", "headers"]
_TO_QUOTE = re.compile('[",\\r\\n]')
_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # with which a formula may begin


@routes.add(
    "GET",
    "/topics/{topic}/search",
    "Records that an expression matches, with progress; closing the stream ends it",
    THE_TOPIC,
    PARTITIONS,
    _FROM,
    _TO,
    _EXPRESSION,
    *DECODE,
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": limits.FOUND}, "At most", default=100),
    stream=EVENTS,
)
def search_records(
    desk: Desk, topic: str, partitions: str | None, expression: str, limit: int, **where: Any
) -> Iterator[bytes]:
    decoder = decoder_of(desk, where)
    matches = parse(expression, decoder)
    starts, ends = _range(desk, topic, partitions, where["from"], where["to"])
    return search(desk, topic, starts, ends, matches, decoder, limit)


@routes.add(
    "GET",
    "/topics/{topic}/follow",
    "Records from now on, the newest if they come too fast",
    THE_TOPIC,
    PARTITIONS,
    _EXPRESSION,
    *DECODE,
    stream=EVENTS,
)
def follow_records(
    desk: Desk, topic: str, partitions: str | None, expression: str, **choices: Any
) -> Iterator[bytes]:
    decoder = decoder_of(desk, choices)
    matches = parse(expression, decoder)
    return follow(desk, topic, partitions_named(desk, topic, partitions), matches, decoder)


@routes.add(
    "GET",
    "/topics/{topic}/download",
    "Records as JSON lines or CSV",
    THE_TOPIC,
    PARTITIONS,
    _FROM,
    _TO,
    _EXPRESSION,
    *DECODE,
    Parameter("decoded", FLAG, "Also what keys and values are decoded to", default=False),
    Parameter("format", {"enum": ["jsonl", "csv"]}, "As what", required=True),
    stream="application/octet-stream",
)
def download_records(
    desk: Desk,
    topic: str,
    partitions: str | None,
    expression: str,
    format: str,
    decoded: bool,
    **where: Any,
) -> Iterator[bytes]:
    decoder = decoder_of(desk, where)
    matches = parse(expression, decoder)
    starts, ends = _range(desk, topic, partitions, where["from"], where["to"])
    row = _json_row if format == "jsonl" else _csv_row
    columns = [*_COLUMNS, "key_decoded", "value_decoded"] if decoded else _COLUMNS
    head = b"" if format == "jsonl" else _csv_line(columns)
    by = decoder if decoded else None
    return _download(desk, topic, starts, ends, head, lambda one: row(topic, one, by) if matches(one) else ())


def _range(
    desk: Desk, topic: str, partitions: str | None, start: str, end: str
) -> tuple[dict[int, int], dict[int, int]]:
    keys = [(topic, one) for one in partitions_named(desk, topic, partitions)]
    starts, ends = (offsets_of(desk, place_of(place), keys) for place in (start, end))
    last = bounds(desk, keys)[1]
    return (
        {key[1]: starts[key] for key in keys},
        {key[1]: min(ends[key], last[key]) for key in keys},
    )


def _download(
    desk: Desk,
    topic: str,
    starts: dict[int, int],
    ends: dict[int, int],
    head: bytes,
    row: Callable[[Record], Iterable[bytes]],
) -> Iterator[bytes]:
    """Pieces of the file. An unreadable record ends it: every browser shows a connection that breaks."""
    with desk.streaming():
        yield head
        for partition, start in starts.items():
            offset = start
            while offset < ends[partition]:
                try:
                    reached = yield from _part(desk, topic, partition, offset, ends[partition], row)
                except UNREADABLE as error:
                    raise OSError(f"{topic}-{partition} cannot be read at {offset}: {error}") from error
                if reached <= offset:
                    break
                offset = reached


def _part(
    desk: Desk,
    topic: str,
    partition: int,
    offset: int,
    end: int,
    row: Callable[[Record], Iterable[bytes]],
) -> Generator[bytes, None, int]:
    """Pieces of what one fetch brings; returns where to go on."""
    with fetched(desk, topic, partition, offset, marks=False) as some:
        yield from _pieces(map(row, records(partition, some, offset, end)))
        return some.next_offset


def _pieces(rows: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """Rows put together to pieces of a bounded size, with turns of others in between."""
    piece = bytearray()
    for row in in_turns(rows):
        for part in row:
            piece += part
            if len(piece) > limits.FETCH_OCTETS:
                yield bytes(piece)
                piece.clear()
    yield bytes(piece)


def _json_row(topic: str, record: Record, decoder: Decoder | None) -> Iterator[bytes]:
    """A line as ``dafka kafka consume --json`` prints it and ``produce --json`` takes it.

    Decoded values stand beside the octets that they were decoded from.
    """
    row: dict[str, Any] = {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **octets_of("key", record.key),
        **octets_of("value", record.value),
        "headers": [{"name": name, **octets_of("value", value)} for name, value in record.headers],
    }
    line = ""  # the last piece so far; the brace at the end of the row comes after all
    for piece in [json.dumps(row)] if size_of(record) <= PIECE else json_of(row):
        yield line.encode()
        line = piece
    yield line[:-1].encode()
    for name, found in _decoded(record, decoder):
        if found is not None:
            yield f', "{name}_decoded": {text_of(found.value)}'.encode()
    yield b"}\n"


def _csv_row(topic: str, record: Record, decoder: Decoder | None) -> Iterator[bytes]:
    decoded = ["" if found is None else _safe(text_of(found.value)) for _, found in _decoded(record, decoder)]
    places = [record.partition, record.offset, record.timestamp]
    if size_of(record) <= PIECE:
        headers = json.dumps([[name, _cell(value)] for name, value in record.headers])
        yield _csv_line([*places, _cell(record.key), _cell(record.value), headers, *decoded])
        return
    yield _csv_line(places).removesuffix(b"\r\n")
    for content in (record.key, record.value):
        yield b","
        yield from _long_cell(content)
    yield b',"'
    for piece in json_of([[name, _cell(value)] for name, value in record.headers]):
        yield piece.replace('"', '""').encode()
    yield b'"'
    yield b"," + _csv_line(decoded) if decoded else b"\r\n"


def _decoded(record: Record, decoder: Decoder | None) -> list[tuple[str, Decoded | None]]:
    if decoder is None:
        return []
    return [(name, decoder.found(name, getattr(record, name))) for name in ("key", "value")]


def _cell(content: bytes | None) -> str:
    return _safe("" if content is None else long_values.text_of(content, "backslashreplace"))


def _long_cell(content: bytes | None) -> Iterator[bytes]:
    """The same cell as of :func:`_cell`, in quotes."""
    content = content or b""
    if content[:1].decode("ascii", "replace") in _SIGNS:
        content = b"'" + content
    for piece in long_values.csv_cell(content):
        yield piece.encode()


def _safe(text: str) -> str:
    """Text for a spreadsheet: a leading sign would make a formula of it."""
    return f"'{text}" if text[:1] in _SIGNS and text else text


def _csv_line(cells: list[Any]) -> bytes:
    # Not by csv.writer: that of Python 3.10 refuses a NUL.
    line = ",".join(map(_csv_cell, map(str, cells))) + "\r\n"
    return line.encode("utf-8", "backslashreplace")


def _csv_cell(text: str) -> str:
    if not _TO_QUOTE.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
