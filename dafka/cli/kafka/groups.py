"""``dafka kafka groups``: members, their partitions and lags; offsets to go on from."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from dafka.broker.interface.groups import GroupType
from dafka.broker.looking import groups as group_kinds
from dafka.broker.looking.outcomes import check, printable
from dafka.broker.looking.places import Place, offsets_of, partitions_of, within
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.output import json_option, show
from dafka.cli.kafka.places import PlaceType
from dafka.cli.kafka.topics import chosen

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection

TopicPartition = tuple[str, int]

_NAMES = click.argument("names", metavar="GROUP...", nargs=-1, required=True)
_COLUMNS = ["topic", "partition", "offset", "end", "lag", "member", "client", "host"]


class TopicOfGroup(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A topic, or some of its partitions, as Kafka's tools name them: ``orders``, ``orders:0,2``."""

    name = "topic"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        if isinstance(value, tuple):
            return value
        topic, _, numbers = value.partition(":")
        try:
            return topic, tuple(int(number) for number in numbers.split(",") if numbers)
        except ValueError:
            self.fail(f"{value!r} is not TOPIC or TOPIC:NUMBER,NUMBER", param, ctx)


@click.group(short_help="List, describe, reset and delete groups.")
def groups() -> None:
    """Groups of consumers: of the classic and the newer protocol, share groups, groups of Kafka Streams."""


@groups.command(name="list")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only Stable, Empty ...; repeatable.")
@click.option(
    "--type",
    "types",
    type=click.Choice([one.value for one in GroupType]),
    multiple=True,
    help="Only of this type; repeatable.",
)
@json_option
@at_cluster
def list_(states: tuple[str, ...], types: tuple[str, ...], as_json: bool, cluster: Cluster) -> None:
    """List groups with their types and states."""
    with cluster.connect() as connection:
        found = connection.call("list_groups", states, types)
    rows = [
        {"group": one.group, "type": one.type.value, "state": one.state, "protocol": one.protocol_type}
        for one in sorted(found)
    ]
    show(rows, as_json, ["group", "type", "state", "protocol"])


@groups.command()
@_NAMES
@json_option
@at_cluster
def describe(names: tuple[str, ...], as_json: bool, cluster: Cluster) -> None:
    """Show how far groups are behind in each partition, and which member has it."""
    with cluster.connect() as connection:
        for number, name in enumerate(dict.fromkeys(names)):
            group = group_kinds.described(connection, name)
            rows = group_kinds.progress(connection, group)
            if as_json:
                members = [{**one._asdict(), "partitions": sorted(one.partitions)} for one in group.members]
                head = {"group": name, "type": group.type.value, "state": group.state, "epoch": group.epoch}
                show([{**head, "assignor": group.assignor, "members": members, "partitions": rows}], True, [])
                continue
            click.echo(("\n" if number else "") + group.headline)
            lag = sum(row["lag"] or 0 for row in rows)
            click.echo(f"lag: {lag} in {len(rows)} partitions")
            show(rows, False, _COLUMNS)
            idle = [one for one in group.members if not one.partitions]
            for one in idle:
                click.echo(printable(f"without partitions: {one.member} ({one.client}, {one.host})"))


@groups.command()
@click.argument("name", metavar="GROUP")
@click.option("--topic", "chosen_topics", type=TopicOfGroup(), multiple=True, metavar="TOPIC[:NUMBER,...]")
@click.option("--all-topics", is_flag=True, help="All topics that it has read.")
@click.option("--to", "place", type=PlaceType(), help="earliest, latest, an offset, -10, a time, 2h ...")
@click.option("--by", type=int, metavar="N", help="So many records on, or with - back.")
@click.option(
    "--from-file",
    "file",
    type=click.File("r", encoding="utf-8-sig"),
    help="Lines of TOPIC,PARTITION,OFFSET, as --export prints them.",
)
@click.option("--execute", is_flag=True, help="Do it. Without, it only shows what would be done.")
@click.option("--export", is_flag=True, help="Print the new offsets for --from-file, and change nothing.")
@json_option
@at_cluster
def reset(
    name: str,
    chosen_topics: tuple[tuple[str, tuple[int, ...]], ...],
    all_topics: bool,
    place: Place | None,
    by: int | None,
    file: TextIO | None,
    execute: bool,
    export: bool,
    as_json: bool,
    cluster: Cluster,
) -> None:
    """Let GROUP go on from other offsets. The group must have no members, and need not exist.

    \b
      dafka kafka groups reset billing --topic orders --to earliest
      dafka kafka groups reset billing --topic orders:0,1 --to 2026-01-31T12:00 --execute
      dafka kafka groups reset billing --all-topics --by -10 --execute
    """
    if sum(one is not None for one in (place, by, file)) != 1:
        raise click.UsageError("say to where: one of --to, --by and --from-file")
    if not name:
        raise click.UsageError("a group has a name")
    if execute and export:
        raise click.UsageError("--export changes nothing: give no --execute with it")
    if file is None and bool(chosen_topics) is all_topics:
        raise click.UsageError("say in which topics: --topic or --all-topics")
    if file is not None and (chosen_topics or all_topics):
        raise click.UsageError("--from-file names the partitions: give no --topic and no --all-topics")
    with cluster.connect() as connection:
        kind = group_kinds.kind_of(connection, name)
        before = group_kinds.offsets(connection, name, kind)
        if file is not None:
            new = within(connection, _read(file))
        else:
            keys = sorted(before) if all_topics else _chosen(connection, chosen_topics)
            if not keys:
                raise click.ClickException(
                    f"group {printable(name)} has no offsets: name topics with --topic"
                )
            new = _moved(connection, keys, before, place, by)
        outcomes = group_kinds.change_offsets(connection, name, kind, new) if execute else {}
    done = {key: offset for key, offset in new.items() if outcomes.get(key) is None}
    if export:
        for (topic, number), offset in sorted(new.items()):
            click.echo(f"{topic},{number},{offset}")
        return
    rows = [
        {"topic": topic, "partition": number, "offset": before.get((topic, number)), "new_offset": offset}
        for (topic, number), offset in sorted(done.items())
    ]
    if rows or not outcomes:
        show(rows, as_json, ["topic", "partition", "offset", "new_offset"])
    if outcomes:
        _explain(name, outcomes)
    elif not execute:
        click.echo("nothing is changed yet: --execute does it", err=True)


@groups.command()
@_NAMES
@at_cluster
def delete(names: tuple[str, ...], cluster: Cluster) -> None:
    """Delete groups without members, with their offsets."""
    with cluster.connect() as connection:
        check(connection.call("delete_groups", list(dict.fromkeys(names))))


@groups.command()
@click.argument("name", metavar="GROUP")
@click.option(
    "--topic",
    "chosen_topics",
    type=TopicOfGroup(),
    multiple=True,
    required=True,
    metavar="TOPIC[:NUMBER,...]",
)
@at_cluster
def forget(name: str, chosen_topics: tuple[tuple[str, tuple[int, ...]], ...], cluster: Cluster) -> None:
    """Delete the offsets of GROUP in topics that its members do not read."""
    with cluster.connect() as connection:
        kind = group_kinds.kind_of(connection, name)
        known = group_kinds.offsets(connection, name, kind)
        keys = [
            key
            for topic, numbers in chosen_topics
            for key in known
            if key[0] == topic and (not numbers or key[1] in numbers)
        ]
        if not keys:
            raise click.ClickException(f"group {printable(name)} has no offsets there")
        check(group_kinds.forget_offsets(connection, name, kind, keys))


def _chosen(connection: Connection, topics: Iterable[tuple[str, tuple[int, ...]]]) -> list[TopicPartition]:
    wanted = list(topics)
    existing = partitions_of(connection, [topic for topic, _ in wanted])
    found = {
        (topic, number): None
        for topic, numbers in wanted
        for number in chosen(existing[topic], numbers, topic)
    }
    return sorted(found)


def _moved(
    connection: Connection,
    keys: list[TopicPartition],
    before: Mapping[TopicPartition, int],
    place: Place | None,
    by: int | None,
) -> dict[TopicPartition, int]:
    if place is not None:
        return offsets_of(connection, place, keys)
    if missing := [key for key in keys if key not in before]:
        raise click.ClickException(f"there is no offset in {missing[0][0]}-{missing[0][1]} to move by {by}")
    return within(connection, {key: before[key] + (by or 0) for key in keys})


def _read(file: TextIO) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    try:
        rows = list(csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        what = f"it is not TOPIC,PARTITION,OFFSET in UTF-8: {error}"
        raise click.ClickException(f"{file.name}: {what}") from None
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            key, to = (topic, int(partition)), int(offset)
        except ValueError:
            raise click.ClickException(
                f"{file.name}, line {number}: it is not TOPIC,PARTITION,OFFSET"
            ) from None
        if found.setdefault(key, to) != to:
            raise click.ClickException(
                f"{file.name}, line {number}: {topic}-{partition} has another offset in a line above"
            )
    if not found:
        raise click.ClickException(f"{file.name}: there is no TOPIC,PARTITION,OFFSET in it")
    return found


def _explain(name: str, outcomes: Mapping[TopicPartition, Any]) -> None:
    errors = {error.__name__ for error in outcomes.values() if error is not None}
    if errors & {"UnknownMemberIdError", "NonEmptyGroupError"}:
        raise click.ClickException(
            f"group {printable(name)} has members: end them first, or they would commit over it"
        )
    check(outcomes)
