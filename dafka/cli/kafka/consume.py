"""``dafka kafka consume``: records of topics on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from dafka.broker.looking.places import Place, offsets_of, partitions_of, readable_ends
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.formats import Format, json_line, parse_format
from dafka.cli.kafka.places import PlaceType
from dafka.cli.kafka.read_topics import ReadTopics
from dafka.cli.kafka.topics import chosen
from dafka.cli.options import check_reader, ended_by_signal

if TYPE_CHECKING:
    from compat.kafka import KafkaConsumer

TopicPartition = tuple[str, int]

_POLL_MS = 1000
_AT_A_TIME = 1000


@click.command(short_help="Print the records of topics.")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--partition", "numbers", type=click.IntRange(0), multiple=True, help="Only this; repeatable.")
@click.option(
    "--from",
    "start",
    type=PlaceType(),
    help="Where to begin: earliest, latest, an offset, -10, a time, 2h.  [default: earliest]",
)
@click.option("--to", "stop", type=PlaceType(), help="Where to end, before that record; likewise.")
@click.option("--group", metavar="NAME", help="As a member of this group, which keeps how far it has come.")
@click.option("--count", "-n", type=click.IntRange(1), help="End after so many records.")
@click.option(
    "--follow/--exit", default=True, show_default=True, help="At the end wait for more, or end there."
)
@click.option("--format", "-f", "form", metavar="FORMAT", help=r"As kcat's: '%p %o %k=%s\n'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record, as `produce --json` reads.")
@click.option(
    "--uncommitted", is_flag=True, help="Also records of transactions that are open, or were aborted."
)
@at_cluster
def consume(
    topics: tuple[str, ...],
    numbers: tuple[int, ...],
    start: Place | None,
    stop: Place | None,
    group: str | None,
    count: int | None,
    follow: bool,
    form: str | None,
    as_json: bool,
    uncommitted: bool,
    cluster: Cluster,
) -> None:
    """Print the records of topics, each value on a line.

    A format has fields for %s value, %k key, %S and %K their lengths (-1: null), %R the value's as four
    octets, %t topic, %p partition, %o offset, %T timestamp in milliseconds, %h headers, and \\n \\r \\t \\0
    \\x41.

    \b
      dafka kafka consume orders --exit --from -10
      dafka kafka consume orders --from 2026-01-31T12:00 --to 2026-01-31T13:00 -f '%T %k %s\\n'
    """
    if form is not None and as_json:
        raise click.UsageError("--json is a format: give no --format with it")
    if group is not None and (numbers or stop or (start and start.kind not in ("earliest", "latest"))):
        raise click.UsageError(
            "with --group the group has the partitions and the offsets: give no --partition and no --to, "
            "and --from earliest or latest for what it has not read before"
        )
    try:
        show: Format = json_line if as_json else parse_format(r"%s\n" if form is None else form)
    except ValueError as error:
        raise click.UsageError(f"--format: {error}") from error
    if sys.stdout is None:
        raise click.ClickException("standard output is closed")
    starts: dict[TopicPartition, int] = {}
    stops: dict[TopicPartition, int] = {}
    with cluster.connect() as connection, ended_by_signal():
        existing = partitions_of(connection, dict.fromkeys(topics))
        if group is None:
            keys = [(topic, one) for topic in existing for one in chosen(existing[topic], numbers, topic)]
            starts = offsets_of(connection, start or Place("earliest"), keys)
            if stop is not None:
                stops = offsets_of(connection, stop, keys)
            if not follow:
                ends = readable_ends(connection, keys, committed=not uncommitted)
                stops = {key: min(end, stops.get(key, end)) for key, end in ends.items()}
        there = ReadTopics(connection, list(existing), patient=follow)
        _run(cluster, there, starts, stops, group, start, count, follow, uncommitted, show)


def _run(
    cluster: Cluster,
    topics: ReadTopics,
    starts: dict[TopicPartition, int],
    stops: dict[TopicPartition, int],
    group: str | None,
    start: Place | None,
    count: int | None,
    follow: bool,
    uncommitted: bool,
    show: Format,
) -> None:
    from compat.kafka import KafkaConsumer

    consumer = KafkaConsumer(
        **cluster.configs,
        group_id=group,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        auto_offset_reset="earliest" if start is None or group is None else start.kind,
        isolation_level="read_uncommitted" if uncommitted else "read_committed",
        max_poll_records=_AT_A_TIME,
    )
    try:
        if group is not None:
            _print_group(consumer, topics, count, follow, show)
        else:
            _print_partitions(consumer, topics, starts, stops, count, show)
    finally:
        consumer.close()


def _print_partitions(
    consumer: KafkaConsumer,
    topics: ReadTopics,
    starts: dict[TopicPartition, int],
    stops: dict[TopicPartition, int],
    count: int | None,
    show: Format,
) -> None:
    """Print from ``starts`` on: up to ``stops`` where there are any, or for ever."""
    from kafka import TopicPartition as Key

    left = {Key(*key) for key, offset in starts.items() if not stops or offset < stops[key]}
    consumer.assign(left)
    for key in left:
        consumer.seek(key, starts[key])
    while left:
        found = consumer.poll(_POLL_MS, max_records=min(_AT_A_TIME, count or _AT_A_TIME))
        rows = [
            record
            for key, records in found.items()
            for record in records
            if not stops or record.offset < stops[key]
        ]
        _write(rows, show)
        if not found:
            topics.check()
        if count is not None:
            count -= len(rows)
            if count <= 0:
                return
        done = {key for key in left if stops and (consumer.position(key) or 0) >= stops[key]}
        consumer.pause(*done)
        left -= done


def _print_group(
    consumer: KafkaConsumer, topics: ReadTopics, count: int | None, follow: bool, show: Format
) -> None:
    """Print as a member of a group; printed records are committed."""
    from kafka import ConsumerRebalanceListener

    joined = False  # there was an assignment, be it an empty one

    class Joining(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
        def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
            """Nothing is to be done: the position behind printed records is committed."""

        def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
            nonlocal joined
            joined = True

    consumer.subscribe(topics.names, listener=Joining())
    while True:
        found = consumer.poll(_POLL_MS, max_records=min(_AT_A_TIME, count or _AT_A_TIME))
        rows = [record for records in found.values() for record in records]
        _write(rows, show)
        if rows:
            consumer.commit()
        else:
            topics.check()
        if count is not None:
            count -= len(rows)
            if count <= 0:
                return
        if not follow and not rows and joined and _at_end(consumer):
            return


def _at_end(consumer: KafkaConsumer) -> bool:
    assigned = consumer.assignment()
    if not assigned:
        return True  # other members have all partitions
    ends = consumer.end_offsets(assigned)
    return all((consumer.position(key) or 0) >= ends[key] for key in assigned)


def _write(rows: list[Any], show: Format) -> None:
    output = sys.stdout.buffer
    if not rows:
        check_reader(output)
        return
    output.write(b"".join(map(show, rows)))
    output.flush()
