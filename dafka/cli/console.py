"""``dafka produce`` and ``dafka consume``, the console tools console_producer and console_consumer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, TextIO, cast

import click

from dafka.cli.metrics import Metrics, metrics_options
from dafka.cli.numbers import Number, Seconds
from dafka.cli.options import (
    PartitionAddress,
    TopicName,
    check_reader,
    ended_by_signal,
    mesh_arguments,
)
from dafka.mesh import limits
from dafka.mesh.consumer import Consumer
from dafka.mesh.position_file import PositionFileError
from dafka.mesh.producer import MessageKindError, Producer, RecordTooLargeError, UnacknowledgedError
from dafka.protocol.batch import CODECS
from dafka.roles.limits import LAST_SEQUENCE

CODEC_NAMES = [name for name in CODECS if name is not None]


PATIENCE = 2.0  # seconds that a producer waits for stores in silence
LONELY = 5.0  # seconds that a consumer waits in silence where there is no other node
SAME_EVENT = 0.5  # seconds in which the end of the input and a signal have one cause


class StartAt(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``earliest``, ``latest`` or a sequence."""

    name = "earliest|latest|SEQUENCE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        if isinstance(value, int) or value in ("earliest", "latest"):
            return cast("str | int", value)
        if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) < LAST_SEQUENCE):
            self.fail(f"{value!r} is neither earliest, latest nor a sequence", param, ctx)
        return int(value)


@click.command()
@click.argument("topic", type=TopicName())
@click.option(
    "--stores",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="How many stores must acknowledge a record.",
)
@click.option(
    "--timeout", type=Seconds(), default=10.0, show_default=True, help="Seconds to wait for them at the end."
)
@click.option(
    "--head-interval", default=1000, show_default=True, help="Milliseconds between HEADs of something new."
)
@click.option(
    "--store-timeout",
    type=Number(30),
    help="Seconds after which a silent store counts as lost with what only it has.  [default: never]",
)
@click.option("--terminate-unacked", type=bool, default=False, help="Do not wait for stores at the end.")
@click.option("--batch", is_flag=True, help="Send Kafka record batches: faster, and not for C nodes.")
@click.option("--compression", type=click.Choice(CODEC_NAMES), help="Of batches.")
@metrics_options
@mesh_arguments
def produce(
    topic: bytes,
    stores: int,
    timeout: float,
    head_interval: int,
    store_timeout: float | None,
    terminate_unacked: bool,
    batch: bool,
    compression: str | None,
    metrics: Metrics,
    mesh: dict[str, Any],
) -> None:
    """Publish each line of standard input as a record of TOPIC.

    At the end of the input, or on Ctrl-C, it waits for the stores, for --timeout seconds or until Ctrl-C
    again; records not acknowledged by then are reported, and the exit status is 1.
    """
    if compression is not None and not batch:
        raise click.UsageError("--compression is of record batches: give --batch too")
    lines = _octets_of(sys.stdin, "input")
    producer = None
    with ended_by_signal():
        producer = Producer(
            topic,
            min_stores=stores,
            head_interval=head_interval / 1000,
            store_timeout=store_timeout,
            batch=batch,
            compression=compression,
            **mesh,
        )
    if producer is not None:
        with metrics.of("producer", producer.metrics, announce=producer.announce_metrics):
            _send_and_wait(producer, lines, 0.0 if terminate_unacked else timeout)


def _send_and_wait(producer: Producer, lines: BinaryIO, timeout: float) -> None:
    """Send all lines and wait for the stores. A first signal ends the input, a second one the wait."""
    problems, ended = [], None
    try:
        while True:
            try:
                if ended is None:
                    problems += _send(producer, lines)
                    ended = time.monotonic()
                _wait(producer, timeout)
                break
            except KeyboardInterrupt:
                # Ctrl-C in a pipeline ends the program before us, too: its end and the signal are one.
                if ended is not None and time.monotonic() - ended > SAME_EVENT:
                    problems += _interrupted(producer)
                    break
                ended = ended or time.monotonic()
    except UnacknowledgedError as error:
        problems.append(str(error))
    finally:
        with suppress(UnacknowledgedError):
            producer.close(0.0)
    if problems:
        raise click.ClickException("\n".join(problems))


def _send(producer: Producer, lines: BinaryIO) -> list[str]:
    """Send each line as a record. Returns in words what kept it from sending all of them."""
    number = 0
    try:
        while line := lines.readline(limits.RECORD_OCTETS + 2):  # a longer one need not be read to its end
            number += 1
            producer.send(line.removesuffix(b"\n").removesuffix(b"\r"))
    except (RecordTooLargeError, MessageKindError) as error:
        return [f"line {number} and what follows it are not sent: {error}"]
    except OSError as error:
        return [f"standard input cannot be read behind line {number}: {error}"]
    return []


def _wait(producer: Producer, timeout: float) -> None:
    """Wait for the stores, and say so if it takes long."""
    try:
        producer.flush(min(timeout, PATIENCE))
    except UnacknowledgedError:
        if timeout <= PATIENCE:
            raise
        left = producer.unacknowledged
        click.echo(
            f"waiting {timeout:g} s for stores to acknowledge {left} of the records; "
            "a broker is written to with `dafka kafka produce`",
            err=True,
        )
        try:
            producer.flush(timeout - PATIENCE)
        except UnacknowledgedError as error:
            raise UnacknowledgedError(
                error.topic, error.partition, error.first, error.last, timeout
            ) from error


def _interrupted(producer: Producer) -> list[str]:
    left = producer.unacknowledged
    if not left:
        return []
    records, were = ("record", "was") if left == 1 else ("records", "were")
    return [
        f"{left} {records} of topic {producer.topic!r}, partition {producer.address}, {were} not "
        "acknowledged by enough stores when the wait was interrupted"
    ]


def _octets_of(stream: TextIO | None, name: str) -> BinaryIO:
    """The octets of a standard stream; one that is closed has none."""
    if stream is None:
        raise click.ClickException(f"standard {name} is closed")
    return stream.buffer


@contextmanager
def _file_errors() -> Iterator[None]:
    """Makes errors of the file with positions one line."""
    try:
        yield
    except (PositionFileError, OSError) as error:
        raise click.ClickException(f"--positions: {error}") from error


def _consumer(topic: bytes, positions: str | None, **options: Any) -> Consumer:
    with nullcontext() if positions is None else _file_errors():
        return Consumer([topic], positions=positions, **options)


@click.command()
@click.argument("topic", type=TopicName())
@click.option(
    "--from",
    "start",
    default="latest",
    show_default=True,
    type=StartAt(),
    help="Where to start in partitions not read before; a SEQUENCE goes with --partition.",
)
@click.option(
    "--partition", type=PartitionAddress(), metavar="ADDRESS", help="Only the records of this producer."
)
@click.option("--count", type=click.IntRange(1), help="End after so many records.")
@click.option("--latest-only", is_flag=True, help="Of each producer only the newest record that has come.")
@click.option(
    "--positions",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Keep there what was printed, and go on behind it when started again.",
)
@metrics_options
@mesh_arguments
def consume(
    topic: bytes,
    start: str | int,
    partition: str | None,
    count: int | None,
    latest_only: bool,
    positions: str | None,
    metrics: Metrics,
    mesh: dict[str, Any],
) -> None:
    """Print the records of TOPIC, one a line."""
    if positions is not None and partition is not None:
        raise click.UsageError("--positions is for all partitions, not together with --partition")
    reset, starts = str(start), {}
    if partition is not None:
        # Records of the other partitions are not wanted, so those are not fetched from their beginning.
        reset = "latest"
        if start != "latest":
            starts = {partition: 0 if start == "earliest" else int(start)}
    elif isinstance(start, int):
        raise click.UsageError("--from SEQUENCE says where to start in one partition: give --partition too")
    output = _octets_of(sys.stdout, "output")
    left = count
    with (
        ended_by_signal(),
        _consumer(
            topic, positions, offset_reset=reset, start=starts, latest_only=latest_only, **mesh
        ) as consumer,
        metrics.of("consumer", consumer.metrics, announce=consumer.announce_metrics),
    ):
        hint_at: float | None = time.monotonic() + LONELY
        while left is None or left > 0:
            records = consumer.poll(timeout=1.0, max_records=min(1000, left or 1000))
            wanted = [record for record in records if partition in (None, record.partition)]
            output.write(b"".join((record.value or b"") + b"\n" for record in wanted))
            output.flush()
            if positions is not None:
                with _file_errors():
                    consumer.commit()
            if not wanted:
                check_reader(output)
            if hint_at is not None and (records or time.monotonic() > hint_at):
                hint_at = None
                if not records and not consumer.metrics()["endpoint_peers"]:
                    click.echo(
                        "waiting for nodes of the mesh: none is heard yet; the records of a broker "
                        "are printed by `dafka kafka consume`",
                        err=True,
                    )
            if left is not None:
                left -= len(wanted)
