"""What the commands have in common: where the tower is, and waiting for the end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dafka.mesh.address import DEFAULT_TOWER, InvalidTopicError, check_topic

F = TypeVar("F", bound=Callable[..., Any])


class TopicName(click.ParamType):
    """A topic as it goes on the wire."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            return check_topic(value)
        except InvalidTopicError as error:
            self.fail(str(error), param, ctx)


def tower_options(command: F) -> F:
    """``--pub``, ``--sub`` and ``--bind`` of a node; passed on as ``tower`` addresses and ``bind``."""
    options = [
        click.option("--sub", default=DEFAULT_TOWER[0], show_default=True, help="Where the tower takes beacons."),
        click.option("--pub", default=DEFAULT_TOWER[1], show_default=True, help="Where the tower gives beacons."),
        click.option("--bind", default="*", show_default=True, help="Interface that peers connect to."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def wait_for_signal() -> None:
    """Return when the process is told to end (SIGINT or SIGTERM)."""
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        click.echo(err=True)
