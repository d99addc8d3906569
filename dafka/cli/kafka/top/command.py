"""The command ``dafka kafka top``."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator

import click
from kafka.errors import KafkaError

from dafka.broker.looking.watching import Look, Watch
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.output import show
from dafka.cli.kafka.top.rows import (
    GROUPS,
    TOPICS,
    answered,
    as_object,
    group_cells,
    headline,
    left_out,
    topic_cells,
)
from dafka.cli.numbers import Number
from dafka.cli.options import ended_by_signal
from dafka.protocol.errors import DafkaError


@click.command(short_help="A live screen of rates, lags and delays.")
@click.option("--topic", "topics", default="*", metavar="PATTERN", help="Only these: 'orders-*'.")
@click.option("--group", "groups", default="*", metavar="PATTERN", help="Only these groups.")
@click.option("--internal", is_flag=True, help="Also topics that begin with two underscores.")
@click.option(
    "--interval",
    type=Number(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="From one look to the next.",
)
@click.option("--once", is_flag=True, help="Print what two looks show, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print each look as one JSON object a line.")
@click.option("--count", "-n", type=click.IntRange(1), help="With --json: end after so many.")
@at_cluster
def top(
    topics: str,
    groups: str,
    internal: bool,
    interval: float,
    once: bool,
    as_json: bool,
    count: int | None,
    cluster: Cluster,
) -> None:
    """Watch a cluster: records written and read each second, lags and delays of groups, times of answers.

    The screen needs `pip install 'dafka[top]'` and a terminal; --once and --json need neither. DELAY is how
    long a record waits until a group has read and committed it, as far as has been seen since the command was
    started. Keys: q ends it, s sorts by name or by numbers, p pauses, tab goes to the other table.

    \b
      dafka kafka top
      dafka kafka top --once --group 'billing*'
      dafka kafka top --json --count 10 --interval 1
    """
    if count is not None and not as_json:
        raise click.UsageError("--count is how many objects --json prints")
    if count is not None and once:
        raise click.UsageError("--once prints one: give no --count")
    if not once and not as_json:
        _check_screen()
    with ended_by_signal(), cluster.connect() as connection:
        watch = Watch(connection, topics, groups, internal)
        if not once and not as_json:
            from dafka.cli.kafka.top.screen import TopScreen

            logging.getLogger().handlers.clear()  # they would write across the screen
            TopScreen(watch.look, interval, cluster.servers).run()
        elif as_json:
            _print_objects(watch, interval, 1 if once else count, skip=once)
        else:
            watch.look()
            time.sleep(interval)
            _print(watch.look())


def _check_screen() -> None:
    """Raises click.UsageError where there is no terminal, and ClickException where there is no Textual."""
    without = "--once and --json do not need it"
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if stream is None or not stream.isatty():
            raise click.UsageError(f"the screen needs a terminal, and standard {name} is not one: {without}")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise click.UsageError(f"the screen needs a terminal that places text, and TERM denies it: {without}")
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise click.ClickException(
            f"the screen needs {error.name}: pip install 'dafka[top]', or use --once or --json"
        ) from error


def _print_objects(watch: Watch, interval: float, count: int | None, skip: bool) -> None:
    """Print looks, and errors of a broker that may come back. ``skip``: the first one, which has no rates."""
    if skip:
        watch.look()
        time.sleep(interval)
    for number, found in enumerate(_looks(watch, interval, patient=not skip), 1):
        click.echo(json.dumps(as_object(found) if isinstance(found, Look) else found))
        if number == count:
            return


def _looks(watch: Watch, interval: float, patient: bool) -> Iterator[Look | dict[str, str]]:
    while True:
        began = time.monotonic()
        try:
            yield watch.look()
        except (KafkaError, DafkaError) as error:
            if not patient:
                raise
            yield {"error": str(error)}
        time.sleep(max(interval - (time.monotonic() - began), 0.0))


def _print(look: Look) -> None:
    click.echo(f"{headline(look)}\n{answered(look)}")
    if left_out(look):
        click.echo(left_out(look))
    for columns, rows in (
        (TOPICS, [topic_cells(one) for one in look.topics]),
        (GROUPS, [group_cells(one) for one in look.groups]),
    ):
        click.echo()
        show([dict(zip(columns, row, strict=True)) for row in rows], False, columns)
