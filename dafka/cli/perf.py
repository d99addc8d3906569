"""``dafka perf``: how fast this mesh is, measured as the C tools perf_store and perf_consumer do.

One record goes before those that are counted: the time that nodes take to find each other is not part of the
figures, as in ``./scripts/bench native``.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from typing import Any

import click

from dafka.cli.numbers import Seconds
from dafka.cli.options import ended_by_signal, mesh_arguments
from dafka.mesh import limits
from dafka.mesh.consumer import Consumer
from dafka.mesh.producer import Producer

COUNT = click.argument("count", type=click.IntRange(1))
SIZE = click.argument("size", type=click.IntRange(0, limits.RECORD_OCTETS))
STALLED = 60.0  # seconds without a record after which the run ends
ACKNOWLEDGED_SECONDS = 3.0  # after everything was consumed, until stores should have it
LEFT_SECONDS = 5.0  # without an acknowledgement after which a producer leaves
LOOK = 0.02  # seconds between two looks at what stores have
LONGEST = 1e6  # seconds that a process can sleep at a time; longer waits do not occur
HOLD_BACK = "Stores that must acknowledge a record before it is dropped; 0: memory alone decides."
BATCH = click.option("--batch", is_flag=True, help="Send record batches in place of raw records.")


@click.group()
def perf() -> None:
    """Measure COUNT records of SIZE octets, after a first one with which nodes find each other."""


@perf.command("producer")
@COUNT
@SIZE
@click.option("--topic", default="$PRODUCER_PERF", show_default=True)
@click.option("--hold", type=Seconds(), default=0.0, help="Seconds to stay in the mesh after publishing.")
@click.option("--min-stores", type=click.IntRange(0), default=0, show_default=True, help=HOLD_BACK)
@BATCH
@mesh_arguments
def perf_producer(
    count: int, size: int, topic: str, hold: float, min_stores: int, batch: bool, mesh: dict[str, Any]
) -> None:
    """Publish; the figure waits for stores only with --min-stores.

    Stores that are there get what they lack before the producer leaves: nobody else has it.
    """
    with ended_by_signal(), Producer(topic, min_stores=min_stores, batch=batch, **mesh) as producer:
        producer.send(b"x" * size)
        _publish("published", producer, count, size)
        time.sleep(min(hold, LONGEST))
        _wait_until_stored(producer)


@perf.command("store", short_help="Publish, and wait until a store has everything.")
@COUNT
@SIZE
@BATCH
@mesh_arguments
def perf_store(count: int, size: int, batch: bool, mesh: dict[str, Any]) -> None:
    """Publish to $STORE_PERF and wait until a store has acknowledged everything."""
    with ended_by_signal(), Producer("$STORE_PERF", batch=batch, **mesh) as producer:
        producer.send(b"x" * size)
        producer.flush()
        _publish("published, stored and acknowledged", producer, count, size)


def _wait_until_stored(producer: Producer) -> None:
    """Wait for all connected stores, for as long as they get on."""
    least, since = producer.unstored, time.monotonic()
    while unstored := producer.unstored:
        now = time.monotonic()
        if unstored < least:
            least, since = unstored, now
        elif now - since > LEFT_SECONDS:
            click.echo(
                f"a store has not acknowledged {unstored} of the records in {LEFT_SECONDS:.0f} s; they go "
                "with this producer",
                err=True,
            )
            return
        time.sleep(LOOK)


def _publish(what: str, producer: Producer, count: int, size: int) -> None:
    send, value = producer.send, b"x" * size
    started = time.perf_counter()
    for _ in range(count):
        send(value)
    producer.flush()
    _report(what, count, size, started)


@perf.command("consumer", short_help="Consume what another process publishes.")
@COUNT
@SIZE
@click.option("--min-stores", type=click.IntRange(0), default=1, show_default=True, help=HOLD_BACK)
@BATCH
@mesh_arguments
def perf_consumer(count: int, size: int, min_stores: int, batch: bool, mesh: dict[str, Any]) -> None:
    """Consume what another process publishes meanwhile, to a topic of this run: $CONSUMER_PERF and a UUID.

    The producer waits for a store's acknowledgements, as the C tool perf_store does, so it is never far
    ahead of the store, and records that the consumer misses are fetched from the store.
    """
    takes, gives = (",".join(addresses) for addresses in zip(*mesh["tower"], strict=True))
    command = [sys.executable, "-m", "dafka.cli", "perf", "producer", str(count), str(size)]
    topic = f"$CONSUMER_PERF-{uuid.uuid4()}"  # a store has the records of earlier runs
    command += ["--topic", topic, "--hold", "3600", *(["--batch"] if batch else [])]
    command += ["--min-stores", str(min_stores)]
    command += ["--sub", takes, "--pub", gives, "--bind", mesh["bind"], "--framing", mesh["framing"]]
    command += ["--transport", mesh["transport"]]
    if mesh["keys"] is not None:
        command += ["--keys", mesh["keys"].path, "--node", mesh["keys"].node]
    with ended_by_signal(), Consumer([topic], offset_reset="earliest", **mesh) as consumer:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            _consume(consumer, count, size, process)
            _wait_until_published(process)
        finally:
            process.terminate()
            process.wait()


def _consume(consumer: Consumer, count: int, size: int, process: subprocess.Popen[bytes]) -> None:
    """Consume up to the last record, known by its offset, even if others are lost."""
    consumed = end = 0
    started = heard = time.perf_counter()
    while end <= count:
        records = consumer.poll(0.5, 10_000 if end else 1)
        now = time.perf_counter()
        if records:
            heard = now
            if end:
                consumed += len(records)
            else:
                started = now
            end = records[-1].offset + 1
        elif process.poll() is not None:
            raise click.ClickException(f"the producer ended with status {process.returncode} at record {end}")
        elif now - heard > STALLED:
            raise click.ClickException(
                f"no record has come for {STALLED:.0f} s, the last was {end - 1}. If no store is running, "
                "give --min-stores 0: else the producer waits for its acknowledgements"
            )
    _report("consumed", consumed, size, started)
    if lost := count - consumed:
        click.echo(f"{lost} records lost: no node had them")


def _wait_until_published(process: subprocess.Popen[bytes]) -> None:
    """Wait for the producer's report: its last records may not be acknowledged when they are consumed.

    A producer that is terminated earlier warns about them.
    """
    assert process.stdout is not None
    report = threading.Thread(target=process.stdout.readline, daemon=True)
    report.start()
    report.join(ACKNOWLEDGED_SECONDS)


def _report(what: str, count: int, size: int, started: float) -> None:
    seconds = time.perf_counter() - started
    rate, megabytes = count / seconds, count * size / seconds / 1e6
    click.echo(
        f"{count} records of {size} octets {what} in {seconds:.2f} s: {rate:,.0f}/s, {megabytes:.1f} MB/s"
    )
