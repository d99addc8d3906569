"""``dafka kafka configs``: settings of topics, groups and brokers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dafka.broker.interface.admin import ConfigChange, ConfigOperation, ConfigSource, Resource, ResourceType
from dafka.broker.looking.outcomes import check
from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.output import json_option, show

Command = Callable[..., Any]


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A name and a value."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        return name, text


def _resource(command: Command) -> Command:
    @click.option("--topic", metavar="NAME", help="Of this topic.")
    @click.option("--group", metavar="NAME", help="Of this group.")
    @click.option("--broker", metavar="ID", help="Of this broker; '' are the defaults of all.")
    @wraps(command)
    def with_resource(*, topic: str | None, group: str | None, broker: str | None, **options: Any) -> Any:
        given = [
            Resource(kind, name)
            for kind, name in (
                (ResourceType.TOPIC, topic),
                (ResourceType.GROUP, group),
                (ResourceType.BROKER, broker),
            )
            if name is not None
        ]
        if len(given) != 1:
            raise click.UsageError("name what it belongs to: --topic NAME, --group NAME or --broker ID")
        return command(resource=given[0], **options)

    return with_resource


@click.group(short_help="Settings of topics, groups and brokers.")
def configs() -> None:
    """Settings of topics, groups and brokers."""


@configs.command()
@_resource
@click.option("--all", "everything", is_flag=True, help="Also the defaults.")
@json_option
@at_cluster
def describe(resource: Resource, everything: bool, as_json: bool, cluster: Cluster) -> None:
    """Show settings, with where each value comes from."""
    with cluster.connect() as connection:
        (found,) = connection.call("describe_configs", {resource: None}).values()
    check({resource.name: found})
    rows = [
        {
            "name": entry.name,
            "value": None if entry.sensitive else entry.value,
            "source": ConfigSource(entry.source).name,
            "read_only": entry.read_only,
        }
        for entry in found.entries
        if everything or entry.source not in (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER)
    ]
    show(rows, as_json, ["name", "value", "source"])


@configs.command()
@_resource
@click.option(
    "--set", "settings", type=Setting(), multiple=True, metavar="NAME=VALUE", help="May be repeated."
)
@click.option("--unset", multiple=True, metavar="NAME", help="Gets its default back; may be repeated.")
@click.option("--check", "only_check", is_flag=True, help="Only say whether it could be done.")
@at_cluster
def alter(
    resource: Resource,
    settings: tuple[tuple[str, str], ...],
    unset: tuple[str, ...],
    only_check: bool,
    cluster: Cluster,
) -> None:
    """Change settings: all of them or none."""
    changes = [ConfigChange(name, ConfigOperation.SET, value) for name, value in settings]
    changes += [ConfigChange(name, ConfigOperation.DELETE) for name in unset]
    if not changes:
        raise click.UsageError("say what: --set or --unset")
    with cluster.connect() as connection:
        outcomes = connection.call("alter_configs", {resource: changes}, validate_only=only_check)
    check({resource.name: outcomes[resource]})
