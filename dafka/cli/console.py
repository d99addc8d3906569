"""``dafka produce`` and ``dafka consume``, the console tools console_producer and console_consumer."""

from __future__ import annotations

import errno
import os
import select
import sys
from typing import Any, BinaryIO

import click

from dafka.cli.options import Seconds, TopicName, ended_by_signal, mesh_arguments
from dafka.mesh.consumer import Consumer
from dafka.mesh.producer import Producer, UnacknowledgedError
from dafka.protocol.batch import CODECS

CODEC_NAMES = [name for name in CODECS if name is not None]


PATIENCE = 2.0  # seconds that a producer waits for stores in silence


class StartAt(click.ParamType):
    """``earliest``, ``latest`` or a sequence."""

    name = "earliest|latest|SEQUENCE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        if isinstance(value, int) or value in ("earliest", "latest"):
            return value
        if not value.isdigit():
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
@click.option("--head-interval", default=1000, show_default=True, help="Milliseconds between HEADs.")
@click.option(
    "--store-timeout",
    type=click.FloatRange(30),
    help="Seconds after which a silent store counts as lost with what only it has.  [default: never]",
)
@click.option("--terminate-unacked", type=bool, default=False, help="Do not wait for stores at the end.")
@click.option(
    "--batch", is_flag=True, help="Send Kafka record batches: faster, and not for C and Java nodes."
)
@click.option("--compression", type=click.Choice(CODEC_NAMES), help="Of batches.")
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
    mesh: dict[str, Any],
) -> None:
    """Publish each line of standard input as a record of TOPIC.

    At the end of the input, or on Ctrl-C, it waits for the stores, for --timeout seconds or until Ctrl-C
    again; what they have not acknowledged by then is reported, and the exit status is 1.
    """
    if compression is not None and not batch:
        raise click.UsageError("--compression is of record batches: give --batch too")
    producer = Producer(
        topic,
        min_stores=stores,
        head_interval=head_interval / 1000,
        store_timeout=store_timeout,
        batch=batch,
        compression=compression,
        **mesh,
    )
    try:
        with ended_by_signal():
            for line in sys.stdin.buffer:
                producer.send(line.rstrip(b"\r\n"))
        _close(producer, 0.0 if terminate_unacked else timeout)
    except UnacknowledgedError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:  # a second signal ends the wait
        left = producer.unacknowledged
        records, were = ("record", "was") if left == 1 else ("records", "were")
        raise click.ClickException(
            f"{left} {records} of topic {producer.topic!r}, partition {producer.address}, {were} not "
            "acknowledged by enough stores when the wait was interrupted"
        ) from None


def _close(producer: Producer, timeout: float) -> None:
    """Wait for the stores, and say so if it takes long enough to be wondered at."""
    if timeout > PATIENCE:
        try:
            producer.flush(PATIENCE)
        except UnacknowledgedError:
            left = producer.unacknowledged
            click.echo(f"waiting {timeout:g} s for stores to acknowledge {left} of the records", err=True)
            timeout -= PATIENCE
    producer.close(timeout)


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
@click.option("--partition", metavar="ADDRESS", help="Only the records of this producer.")
@click.option("--count", type=click.IntRange(1), help="End after so many records.")
@mesh_arguments
def consume(
    topic: bytes, start: str | int, partition: str | None, count: int | None, mesh: dict[str, Any]
) -> None:
    """Print the records of TOPIC, one a line."""
    starts: dict[str, int] = {}
    if isinstance(start, int):
        if partition is None:
            raise click.UsageError(
                "--from SEQUENCE says where to start in one partition: give --partition too"
            )
        starts[partition] = start
    reset = start if isinstance(start, str) else "earliest"
    output = sys.stdout.buffer
    left = count
    with ended_by_signal(), Consumer([topic], offset_reset=reset, start=starts, **mesh) as consumer:
        while left is None or left > 0:
            records = consumer.poll(timeout=1.0, max_records=min(1000, left or 1000))
            wanted = [record for record in records if partition in (None, record.partition)]
            output.write(b"".join((record.value or b"") + b"\n" for record in wanted))
            output.flush()
            if not wanted and _reader_is_gone(output):
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))  # click ends quietly
            if left is not None:
                left -= len(wanted)


def _reader_is_gone(output: BinaryIO) -> bool:
    """Whether nobody reads our pipe any more, as `head` that has what it wanted."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(output.fileno(), 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
