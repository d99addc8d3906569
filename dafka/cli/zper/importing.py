"""``dafka zper import``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from dafka.broker.broker import Broker
from dafka.broker.connecting import connect
from dafka.cli.options import common_options, durability_options, ended_by_signal
from dafka.cli.zper.configuration import CONFIG, configured, folder, say
from dafka.zper.options import ZperOptions
from dafka.zper.properties import Properties
from dafka.zper.takeover.importing import import_topic
from dafka.zper.takeover.java_folder import JavaTopic, is_same_folder, topics_of

_HOUR = 3_600_000  # milliseconds


@click.command("import", short_help="Take over the folder of a Java server.")
@click.argument("java_folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@CONFIG
@durability_options
@common_options
def import_(java_folder: Path, properties_file: Path | None, **options: Any) -> None:
    """Import the topics in DIR, the base_dir of a Java ZPER server, with their positions.

    They go to the base_dir of the file CONFIG, whose server must not run. DIR is not changed. An import that
    was interrupted goes on when it is called again.
    """
    properties = configured(properties_file)
    say(properties, properties_file)
    settings = ZperOptions.of_properties(properties.values)
    path = folder(properties)
    if is_same_folder(java_folder, path):
        raise click.UsageError(f"{path} is the folder of the Java server itself: give another base_dir")
    topics = topics_of(java_folder)
    with ended_by_signal(), Broker(path, **options) as broker:
        connection = connect(broker.bootstrap_servers)
        for topic in topics:
            _say_what_expires(topic, properties)
            done = import_topic(connection, topic, settings)
            left_out = f", {done.left_out} octets at its end left out" if done.left_out else ""
            click.echo(
                f"{done.topic}: {done.messages} messages, positions {done.first} to {done.end}{left_out}"
            )


def _say_what_expires(topic: JavaTopic, properties: Properties) -> None:
    hours = properties.values["retain_hours"]
    assert isinstance(hours, int)
    old = time.time() * 1000 - hours * _HOUR
    if hours != -1 and any(segment.modified < old for segment in topic.segments):
        click.echo(
            f"warning: {topic.name} has messages older than retain_hours ({hours}), which will be deleted; "
            "with retain_hours = -1 they are kept",
            err=True,
        )
