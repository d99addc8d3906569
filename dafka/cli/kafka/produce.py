"""``dafka kafka produce``: lines, JSON objects or whole files as records of a topic."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import click

from dafka.broker.looking.rows import LARGEST_TIMESTAMP, NewRecord, RowError, json_row, text_rows
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.configs import Setting
from dafka.cli.numbers import Number

LARGEST = 2**27  # octets of a record; the broker has a bound of its own

Place = tuple[str, int]  # a file, and the number of a line in it


@click.command(short_help="Send lines, JSON objects or files as records.")
@click.argument("topic")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Each line is a JSON object: key, value, headers ...")
@click.option("--whole", is_flag=True, help="Each file is one record.")
@click.option("--key", metavar="TEXT", help="The key of all records.")
@click.option("--key-separator", "-K", metavar="TEXT", help="The text between key and value in a line.")
@click.option("--null", metavar="TEXT", help="A value like this is null, which deletes its key.")
@click.option(
    "--header", "headers", type=Setting(), multiple=True, metavar="NAME=VALUE", help="Of all records."
)
@click.option(
    "--partition", type=click.IntRange(0, 2**31 - 1), help="Where all of them go.  [default: by key]"
)
@click.option(
    "--timestamp",
    type=click.IntRange(0, LARGEST_TIMESTAMP),
    metavar="MS",
    help="Of all of them.  [default: now]",
)
@click.option("--compression", type=click.Choice(["gzip", "snappy", "lz4", "zstd"]), help="Of batches.")
@click.option(
    "--timeout",
    type=Number(0.1, 86_400),
    metavar="SECONDS",
    default=120.0,
    show_default=True,
    help="How long a record may wait for its acknowledgement; what is refused for now is tried again.",
)
@at_cluster
def produce(
    topic: str,
    files: tuple[BinaryIO, ...],
    as_json: bool,
    whole: bool,
    key: str | None,
    key_separator: str | None,
    null: str | None,
    headers: tuple[tuple[str, str], ...],
    partition: int | None,
    timestamp: int | None,
    compression: str | None,
    timeout: float,
    cluster: Cluster,
) -> None:
    """Send each line of FILEs, or of standard input, as a record of TOPIC.

    Each is acknowledged by the broker before the command ends. At a line that is not a record, or that the
    broker refuses, it stops: the error names the line, and those before it are sent.

    \b
      seq 10 | dafka kafka produce numbers
      echo 'k:v' | dafka kafka produce pairs -K :
      dafka kafka consume a --exit --json | dafka kafka produce b --json
    """
    if as_json and (whole or key or key_separator or null):
        raise click.UsageError("--json says all of a record: give no --whole, --key, --key-separator, --null")
    if whole and (key_separator or not files):
        raise click.UsageError("--whole is of FILEs, and has no --key-separator")
    if key is not None and key_separator is not None:
        raise click.UsageError("--key is of all records, --key-separator of each: give one of them")
    if key_separator == "":
        raise click.UsageError("--key-separator is not empty")
    parse = json_row if as_json else text_rows(_octets(key), _octets(key_separator), _octets(null))
    for name, _ in headers:
        if not _is_utf_8(name):
            raise click.UsageError(f"the name of a header is UTF-8, not {os.fsencode(name)!r}")
    common = [(name, value.encode("utf-8", "surrogateescape")) for name, value in headers]
    inputs = files or (_standard_input(),)
    from kafka.errors import KafkaError

    from dafka.cli.kafka import any_records

    with cluster.connect() as connection:  # says in words what is wrong before anything is read
        connection.call("metadata", [])
        producer = any_records.producer(
            **cluster.configs,
            linger_ms=5,
            max_request_size=LARGEST,
            compression_type=compression,
            delivery_timeout_ms=int(1000 * timeout) + 5,
            request_timeout_ms=int(1000 * min(timeout, 30)),
        )
    refused: list[tuple[Place, BaseException]] = []
    try:
        for place, line in _wholes(inputs) if whole else _lines(inputs):
            if refused:
                break
            try:
                record = _with(parse(line), common, partition, timestamp)
                sent = any_records.send(producer, topic, record)
                sent.add_errback(lambda error, place=place: refused.append((place, error)))
            except (RowError, ValueError, AssertionError, KafkaError) as error:
                refused.append((place, error))
        producer.flush()
    finally:
        producer.close()
    if refused:
        (name, number), cause = refused[0]
        words = f"{type(cause).__name__}: {cause}" if isinstance(cause, KafkaError) else str(cause)
        raise click.ClickException(f"{name}, line {number}: {words}")


def _with(
    record: NewRecord, headers: list[tuple[str, bytes]], partition: int | None, timestamp: int | None
) -> NewRecord:
    return record._replace(
        headers=[*headers, *record.headers],
        partition=partition if record.partition is None else record.partition,
        timestamp=timestamp if record.timestamp is None else record.timestamp,
    )


def _lines(inputs: tuple[BinaryIO, ...]) -> Iterator[tuple[Place, bytes]]:
    for file in inputs:
        number = 0
        while line := file.readline(LARGEST + 2):  # a longer one need not be read to its end
            number += 1
            yield (_name(file), number), line.removesuffix(b"\n").removesuffix(b"\r")


def _wholes(inputs: tuple[BinaryIO, ...]) -> Iterator[tuple[Place, bytes]]:
    for file in inputs:
        yield (_name(file), 1), file.read(LARGEST + 1)


def _name(file: BinaryIO) -> str:
    name = getattr(file, "name", "<stdin>")
    return "standard input" if name in ("<stdin>", 0) else str(name)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise click.ClickException("standard input is closed")
    return sys.stdin.buffer


def _is_utf_8(text: str) -> bool:
    """Not so of an argument with other octets."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _octets(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")
