"""``dafka tower`` and ``dafka store``, the daemons towerd and stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from dafka.cli.metrics import Metrics, metrics_options
from dafka.cli.options import (
    check_folder,
    common_options,
    durability_options,
    ended_by_signal,
    key_options,
    mesh_arguments,
    retention_options,
    wait_for_signal,
)
from dafka.commit.retention import Retention, check_retention
from dafka.mesh.address import check_topic
from dafka.mesh.store import Store
from dafka.mesh.tower import Tower, first_interface, reachable
from dafka.security.keys import KeyFolder


class TopicBounds(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """TOPIC:MS:BYTES."""

    name = "bounds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[bytes, Retention]:
        try:
            topic, ms, size = str(value).rsplit(":", 2)
            bounds = check_retention(*(int(bound) if bound else None for bound in (ms, size)))
            return check_topic(topic), bounds
        except ValueError as error:
            self.fail(f"{value!r} is not TOPIC:MS:BYTES ({error})", param, ctx)


@click.command()
@click.option("--sub", default="tcp://*:5556", show_default=True, help="Where to take beacons from nodes.")
@click.option("--pub", default="tcp://*:5557", show_default=True, help="Where to give beacons to nodes.")
@metrics_options
@key_options
@common_options
def tower(sub: str, pub: str, metrics: Metrics, keys: KeyFolder | None) -> None:
    """Run a tower, where nodes find each other."""
    with ended_by_signal(), Tower(sub, pub, keys=keys) as running:
        publish_to, subscribe_from = (reachable(bound, first_interface()) for bound in running.bound)
        where = " (listening on every interface)" if (publish_to, subscribe_from) != running.bound else ""
        click.echo(
            f"tower: nodes publish to {publish_to} and subscribe from {subscribe_from}{where}", err=True
        )
        with metrics.of("tower", running.metrics):
            wait_for_signal()


@click.command()
@click.argument(
    "folder",
    default="storedb",
    type=click.Path(file_okay=False),
    callback=check_folder,
    envvar="DAFKA_STORE_FOLDER",
)
@durability_options
@retention_options
@click.option(
    "--topic-retention",
    multiple=True,
    type=TopicBounds(),
    metavar="TOPIC:MS:BYTES",
    help="Other bounds for a topic; -1 or nothing: unbounded. May be repeated.",
)
@metrics_options
@mesh_arguments
def store(
    folder: str,
    topic_retention: Sequence[tuple[bytes, Retention]],
    metrics: Metrics,
    mesh: dict[str, Any],
    **log_options: Any,
) -> None:
    """Run a store that keeps every partition it hears of in FOLDER."""
    by_topic: dict[str | bytes, Retention] = dict(topic_retention)
    with ended_by_signal(), Store(folder, topic_retention=by_topic, **log_options, **mesh) as running:
        click.echo(f"store: {running.address} in {folder}", err=True)
        with metrics.of("store", running.metrics, announce=running.announce_metrics):
            wait_for_signal()
