"""``dafka overlay publish`` and ``dafka overlay subscribe``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import click

from dafka.cli.numbers import Seconds
from dafka.cli.options import check_reader, ended_by_signal
from dafka.cli.overlay.joining import FORMS, Joining, joining_options, line, shown, value_of
from dafka.overlay import Empty
from dafka.overlay.values import Value
from dafka.overlay.wire.zeek import Event, to_value

_LOOK = 0.5  # seconds between two looks whether somebody still reads our output


@click.command("publish", short_help="Publish values on a topic.")
@click.argument("topic")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option("--form", type=FORMS, default="json", show_default=True, help="What each VALUE or line is.")
@click.option(
    "--event", metavar="NAME", help="Publish one event of Zeek's, with the VALUEs as its arguments."
)
@click.option("--wait", is_flag=True, help="Wait until somebody wants TOPIC, --timeout seconds at most.")
@joining_options
def publish_(
    topic: str, values: tuple[str, ...], form: str, event: str | None, wait: bool, joining: Joining
) -> None:
    """Publish VALUEs on TOPIC, or without any each line of standard input.

    JSON stands for the value that it looks like: integers, reals, strings, vectors and tables; and
    {"event": NAME, "args": [...]} for an event of Zeek's.
    """
    given: Iterable[Value] = [value_of(text, form) for text in values]
    if event is not None:
        given = [to_value(Event(event, tuple(given)))]
    elif not values:
        given = (value_of(one.rstrip("\r\n"), form) for one in sys.stdin)
    with ended_by_signal(), joining.endpoint() as endpoint:
        joining.await_peers(endpoint)
        if wait and not endpoint.await_subscriber(topic, timeout=joining.timeout):
            raise click.ClickException(f"nobody has subscribed to {topic!r} within {joining.timeout:g} s")
        for value in given:
            endpoint.publish(topic, value, timeout=joining.timeout)


@click.command("subscribe", short_help="Print what is published on topics.")
@click.argument("prefixes", nargs=-1, metavar="[PREFIX]...")
@click.option("--count", type=click.IntRange(1), help="End after so many messages.")
@click.option("--idle", type=Seconds(), help="End when nothing has come for so many seconds.")
@click.option("--values", "only_values", is_flag=True, help="Print the values alone.")
@joining_options
def subscribe_(
    prefixes: tuple[str, ...], count: int | None, idle: float | None, only_values: bool, joining: Joining
) -> None:
    """Print the messages whose topics begin with a PREFIX (without any: all), one JSON object a line."""
    left = count
    with (
        ended_by_signal(),
        joining.endpoint() as endpoint,
        endpoint.subscribe(*(prefixes or ("",))) as messages,
    ):
        for address in [endpoint.address] if joining.listen else []:
            click.echo(f"listening: {address}", err=True)
        heard = time.monotonic()
        while left is None or left > 0:
            try:
                message = messages.get(_LOOK if idle is None else min(_LOOK, idle))
            except Empty:
                check_reader(sys.stdout)
                if idle is not None and time.monotonic() - heard > idle:
                    return
                continue
            heard = time.monotonic()
            value = shown(message.value)
            whole = {"topic": message.topic, "sender": str(message.sender), "value": value}
            click.echo(line(value if only_values else whole))
            left = None if left is None else left - 1
