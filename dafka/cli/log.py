"""``dafka log verify`` and ``dafka log dump``: looking into the folder of a log that is not open."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click

from dafka.broker.looking.rows import octets
from dafka.broker.topics.numbers import partition_numbers
from dafka.log import Log, LogError, LogPartition, NotALogError
from dafka.log.verify import Verification, verify
from dafka.protocol.batch import BatchError, read_header
from dafka.protocol.batch_reader import decode_batch

Numbers = dict[tuple[bytes, bytes], int]

_SHOWN = 100  # characters of a key or value that are shown
_READ_BYTES = 1024 * 1024
_FOLDER = click.Path(exists=True, file_okay=False)


@click.group()
def log() -> None:
    """Look into the folder of a log: a store's, or a broker's."""


@log.command("verify")
@click.argument("folder", metavar="DIR", type=_FOLDER)
def verify_folder(folder: str) -> None:
    """Check everything in the log DIR: all values, their order, record batches, tables.

    Each damage is printed with its place, and the exit status is 1 if there is any.
    """
    seen, told = Verification(), 0
    for _ in verify(folder, seen):
        for place, cause in seen.damages[told:]:
            click.echo(f"{place}: {cause}")
        told = len(seen.damages)
    count = len(seen.damages)
    click.echo(
        f"{seen.partitions} partitions, {seen.values} values, {seen.messages} messages, {seen.records} "
        f"records, {seen.bytes} bytes, {seen.table_values} table values: "
        + ("no damage" if not count else f"{count} damaged places")
    )
    if count:
        sys.exit(1)


@log.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("topic", required=False)
@click.option("--limit", type=click.IntRange(min=0), help="Show at most so many records.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def dump(folder: str, topic: str | None, limit: int | None, as_json: bool) -> None:
    """List the partitions in the log DIR; with TOPIC, the records of its partitions.

    In a broker's folder partitions have their numbers, and all have the address of their producer.

    Damaged values are named on standard error, and what lies behind them is shown; the exit status is 1 then.
    """
    if not os.listdir(folder):
        raise NotALogError(folder, f"{folder} is not a log: there is nothing in it")
    with Log(folder, on_damage="skip") as opened:
        numbers = _numbers(opened)
        if topic is None:
            rows: Iterable[dict[str, Any]] = (_range(one, numbers) for one in _in_order(opened, numbers))
        else:
            name = os.fsencode(topic)
            found = [partition for partition in _in_order(opened, numbers) if partition.topic == name]
            if not found:
                raise click.ClickException(f"the log {folder} has no topic {topic!r}")
            rows = (row for partition in found for row in _records(opened, partition, numbers))
        told = 0
        for number, row in enumerate(rows):
            if limit is not None and number >= limit:
                break
            click.echo(json.dumps(row) if as_json else _line(row))
            told = _tell_damage(opened, told)
        told = _tell_damage(opened, told)
    if told:
        sys.exit(1)


def _numbers(opened: Log) -> Numbers:
    try:
        return partition_numbers(opened)
    except LogError as error:
        click.echo(f"partitions have no numbers here: {error}", err=True)
        return {}


def _in_order(opened: Log, numbers: Numbers) -> list[LogPartition]:
    """Topics of a broker by name and number, and everything else behind them."""

    def place(one: LogPartition) -> tuple[bool, bytes, int]:
        number = numbers.get((one.topic, one.address))
        return (number is None, b"", one.number) if number is None else (False, one.topic, number)

    return sorted(opened.partitions(), key=place)


def _place(partition: LogPartition, numbers: Numbers) -> dict[str, Any]:
    number = numbers.get((partition.topic, partition.address))
    return {} if number is None else {"partition": number}


def _range(partition: LogPartition, numbers: Numbers) -> dict[str, Any]:
    return {
        "topic": _text(partition.topic),
        **_place(partition, numbers),
        "address": _text(partition.address),
        "kind": partition.kind,
        "first_sequence": partition.first_sequence,
        "next_sequence": partition.next_sequence,
        "first_offset": partition.first_offset,
        "next_offset": partition.next_offset,
        "values": len(partition.index),
        "bytes": partition.bytes,
    }


def _records(opened: Log, partition: LogPartition, numbers: Numbers) -> Iterator[dict[str, Any]]:
    offset = partition.first_offset
    where = {**_place(partition, numbers), "address": _text(partition.address)}
    while offset < partition.next_offset:
        messages = opened.read_offsets(partition, offset, max_bytes=_READ_BYTES)
        if not messages:
            return
        for base, timestamp, content in messages:
            place = {**where, "offset": base}
            if partition.kind == "raw":
                yield {**place, "timestamp": timestamp, **octets("value", content)}
                offset = base + 1
                continue
            try:
                columns = decode_batch(content)
            except BatchError as error:
                yield {**place, "error": str(error)}
            else:
                for record in zip(*columns, strict=True):
                    if record[0] >= offset:
                        yield _row(where, *record)
            offset = max(offset, read_header(content).next_offset)


def _row(
    where: dict[str, Any],
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> dict[str, Any]:
    row = {**where, "offset": offset, "timestamp": timestamp}
    row |= octets("key", key) | octets("value", value)
    if headers:
        row["headers"] = [{"name": name, **octets("value", content)} for name, content in headers]
    return row


def _line(row: dict[str, Any]) -> str:
    return " ".join(f"{name}={_short(name, value)}" for name, value in row.items())


def _short(name: str, value: Any) -> str:
    if name == "timestamp" and isinstance(value, int) and 0 <= value < 2**43:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(value // 1000)) + f".{value % 1000:03d}Z"
    if name in ("key", "value") and value is not None:
        value = repr(value)
    text = str(value)
    if not text.isprintable():  # control characters
        text = text.encode("unicode_escape").decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + f"... ({len(text)} characters)"


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _tell_damage(opened: Log, told: int) -> int:
    """Name the damaged places found since ``told`` of them were named."""
    for place in list(opened.damaged_places)[told:]:
        click.echo(f"damaged: {place}", err=True)
    return len(opened.damaged_places)
