"""``dafka kafka topics``: topics of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from dafka.broker.interface.admin import ConfigChange, ConfigOperation, ConfigSource, Resource, ResourceType
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.looking.outcomes import check
from dafka.broker.looking.places import Place, bounds, offsets_of, partitions_of, readable_ends
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.configs import Setting
from dafka.cli.kafka.output import json_option, show
from dafka.cli.kafka.places import PlaceType
from dafka.cli.kafka.read_topics import ReadTopics

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection

_NAMES = click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
_PARTITIONS = click.IntRange(1, 2**31 - 1)


@click.group(short_help="List, describe, create, change, empty, copy and delete topics.")
def topics() -> None:
    """Topics of a cluster."""


@topics.command(name="list")
@click.argument("pattern", default="*")
@click.option("--internal", is_flag=True, help="Also those that begin with two underscores.")
@json_option
@at_cluster
def list_(pattern: str, internal: bool, as_json: bool, cluster: Cluster) -> None:
    """List topics, or those that match PATTERN ('orders-*')."""
    with cluster.connect() as connection:
        found = connection.call("metadata", None).topics
    show(
        (
            {"topic": name, "partitions": len(topic.partitions), "id": str(topic.topic_id)}
            for name, topic in sorted(found.items())
            if fnmatchcase(name, pattern) and (internal or not name.startswith("__"))
        ),
        as_json,
        ["topic", "partitions"],
    )


@topics.command()
@_NAMES
@json_option
@at_cluster
def describe(names: tuple[str, ...], as_json: bool, cluster: Cluster) -> None:
    """Show partitions with their offsets and sizes, and the settings that are not defaults."""
    with cluster.connect() as connection:
        for number, name in enumerate(dict.fromkeys(names)):
            rows = _partitions(connection, name)
            settings = _settings(connection, name)
            if as_json:
                show([{"topic": name, "configs": settings, "partitions": rows}], True, [])
                continue
            click.echo(("\n" if number else "") + name)
            for setting, value in settings.items():
                click.echo(f"  {setting}={value}")
            show(rows, False, ["partition", "leader_epoch", "first", "end", "records", "bytes"])


@topics.command()
@_NAMES
@click.option("--partitions", type=_PARTITIONS, help="How many.  [default: the broker's]")
@click.option(
    "--config", "settings", type=Setting(), multiple=True, metavar="NAME=VALUE", help="May be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="Leave a topic that is there as it is.")
@at_cluster
def create(
    names: tuple[str, ...],
    partitions: int | None,
    settings: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    cluster: Cluster,
) -> None:
    """Create topics."""
    spec = TopicSpec(-1 if partitions is None else partitions, dict(settings))
    with cluster.connect() as connection:
        outcomes = connection.call("create_topics", dict.fromkeys(names, spec))
    if if_not_exists:
        outcomes = {name: one for name, one in outcomes.items() if not _is(one, "TopicAlreadyExistsError")}
    check(outcomes)


@topics.command()
@click.argument("name", metavar="TOPIC")
@click.option("--partitions", type=_PARTITIONS, help="How many it is to have, more than it has.")
@click.option(
    "--set", "settings", type=Setting(), multiple=True, metavar="NAME=VALUE", help="A setting; repeatable."
)
@click.option(
    "--unset", multiple=True, metavar="NAME", help="A setting that gets its default back; repeatable."
)
@at_cluster
def alter(
    name: str,
    partitions: int | None,
    settings: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
    cluster: Cluster,
) -> None:
    """Add partitions, and change settings."""
    changes = [ConfigChange(setting, ConfigOperation.SET, value) for setting, value in settings]
    changes += [ConfigChange(setting, ConfigOperation.DELETE) for setting in unset]
    if partitions is None and not changes:
        raise click.UsageError("say what: --partitions, --set or --unset")
    with cluster.connect() as connection:
        if changes:
            resource = Resource(ResourceType.TOPIC, name)
            check({name: connection.call("alter_configs", {resource: changes})[resource]})
        if partitions is not None:
            check(connection.call("create_partitions", {name: partitions}))


@topics.command()
@_NAMES
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@at_cluster
def delete(names: tuple[str, ...], if_exists: bool, cluster: Cluster) -> None:
    """Delete topics with their records."""
    with cluster.connect() as connection:
        outcomes = connection.call("delete_topics", list(dict.fromkeys(names)))
    if if_exists:
        outcomes = {n: one for n, one in outcomes.items() if not _is(one, "UnknownTopicOrPartitionError")}
    check(outcomes)


@topics.command()
@click.argument("name", metavar="TOPIC")
@click.option("--partition", "numbers", type=click.IntRange(0), multiple=True, help="Only this; repeatable.")
@click.option(
    "--before",
    type=PlaceType(),
    default="latest",
    show_default=True,
    help="Up to where: an offset, a time, 7d, -1000 ...",
)
@json_option
@at_cluster
def empty(name: str, numbers: tuple[int, ...], before: Place, as_json: bool, cluster: Cluster) -> None:
    """Delete the records of TOPIC, or the older ones, and keep the topic."""
    with cluster.connect() as connection:
        wanted = chosen(partitions_of(connection, [name])[name], numbers, name)
        offsets = offsets_of(connection, before, [(name, number) for number in wanted])
        outcomes = connection.call("delete_records", offsets)
    rows = [
        {"partition": number, "first": one.low_watermark}
        for (_, number), one in sorted(outcomes.items())
        if one.error is None
    ]
    if rows:
        show(rows, as_json, ["partition", "first"])
    check(outcomes)


@topics.command()
@_NAMES
@click.option(
    "--at", "place", type=PlaceType(), default="latest", show_default=True, help="earliest, -10, a time, 2h."
)
@json_option
@at_cluster
def offsets(names: tuple[str, ...], place: Place, as_json: bool, cluster: Cluster) -> None:
    """Show the offset in each partition that a place means; of a time, the first record from then on.

    \b
      dafka kafka topics offsets orders --at 2026-01-31T12:00
    """
    with cluster.connect() as connection:
        existing = partitions_of(connection, dict.fromkeys(names))
        keys = [(name, number) for name, numbers in existing.items() for number in numbers]
        found = offsets_of(connection, place, keys)
    show(
        ({"topic": name, "partition": number, "offset": found[name, number]} for name, number in keys),
        as_json,
        ["topic", "partition", "offset"],
    )


@topics.command()
@click.argument("source")
@click.argument("destination")
@click.option("--from", "start", type=PlaceType(), default="earliest", show_default=True, help="From where.")
@at_cluster
def copy(source: str, destination: str, start: Place, cluster: Cluster) -> None:
    """Copy the committed records that SOURCE has now to DESTINATION, partition by partition.

    Keys, headers and timestamps stay. DESTINATION is made with SOURCE's partitions and settings if it is not
    there; otherwise it needs as many partitions. Records behind the start of an open transaction are not
    copied. Copying between clusters is what `dafka migrate` does.
    """
    from dafka.cli.kafka.copying import copy_topic

    if source == destination:
        raise click.UsageError("SOURCE and DESTINATION are the same topic")
    with cluster.connect() as connection:
        numbers = partitions_of(connection, [source])[source]
        starts = offsets_of(connection, start, [(source, number) for number in numbers])
        ends = readable_ends(connection, list(starts))
        if connection.call("metadata", [destination]).topics[destination].error is not None:
            spec = TopicSpec(len(numbers), _settings(connection, source))
            check(connection.call("create_topics", {destination: spec}))
        there = partitions_of(connection, [destination])[destination]
        if len(there) < len(numbers):
            raise click.ClickException(
                f"{destination} has {len(there)} partitions, and {source} {len(numbers)}: add some with "
                f"`dafka kafka topics alter {destination} --partitions {len(numbers)}`"
            )
        read = ReadTopics(connection, [source], patient=False)
        copied = copy_topic(cluster, read, starts, ends, destination)
    click.echo(f"{copied} records", err=True)


def chosen(numbers: list[int], wanted: Iterable[int], topic: str) -> list[int]:
    """The partitions that were named, or all. Raises click.UsageError for one that does not exist."""
    named = sorted(set(wanted))
    if missing := [number for number in named if number not in numbers]:
        raise click.UsageError(f"{topic} has no partition {missing[0]}: it has {len(numbers)}, from 0 on")
    return named or numbers


def _partitions(connection: Connection, name: str) -> list[dict[str, Any]]:
    found = connection.call("metadata", [name]).topics[name]
    check({f"topic {name}": found})
    keys = [(name, one.number) for one in found.partitions]
    first, end = bounds(connection, keys)
    sizes: dict[tuple[str, int], int] = {}
    for folder in connection.call("log_directories", [name]):
        for key, size in folder.sizes.items():
            sizes[key] = sizes.get(key, 0) + size
    return [
        {
            "partition": one.number,
            "leader_epoch": one.leader_epoch,
            "first": first[name, one.number],
            "end": end[name, one.number],
            "records": end[name, one.number] - first[name, one.number],
            "bytes": sizes.get((name, one.number)),
        }
        for one in sorted(found.partitions)
    ]


def _settings(connection: Connection, name: str) -> dict[str, str]:
    """The settings of a topic that are its own."""
    resource = Resource(ResourceType.TOPIC, name)
    (found,) = connection.call("describe_configs", {resource: None}).values()
    check({f"topic {name}": found})
    return {entry.name: entry.value or "" for entry in found.entries if entry.source == ConfigSource.TOPIC}


def _is(outcome: Any, name: str) -> bool:
    return outcome.error is not None and outcome.error.__name__ == name
