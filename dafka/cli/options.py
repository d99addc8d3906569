"""What the commands have in common: where the tower is, and waiting for the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        click.option(
            "--sub", default=DEFAULT_TOWER[0], show_default=True, help="Where the tower takes beacons."
        ),
        click.option(
            "--pub", default=DEFAULT_TOWER[1], show_default=True, help="Where the tower gives beacons."
        ),
        click.option("--bind", default="*", show_default=True, help="Interface that peers connect to."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """SIGINT and SIGTERM end the block quietly, wherever in it the program is."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(err=True)


def wait_for_signal() -> None:
    """Wait until a signal raises, in short sleeps: one just before a long one would be slept over."""
    while True:
        time.sleep(0.2)
