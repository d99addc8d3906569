"""``dafka bridge``: topics of Kafka and of the overlay joined."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any

import click
from kafka.errors import KafkaError

from dafka.cli.metrics import Metrics, metrics_options
from dafka.cli.numbers import Seconds
from dafka.cli.options import ended_by_signal, wait_for_signal
from dafka.cli.overlay.joining import Joining, joining_options
from dafka.cli.where import login_options
from dafka.overlay.bridge.bridge import Bridge
from dafka.overlay.bridge.rules import InvalidRule, ToKafka, ToOverlay
from dafka.protocol.errors import DafkaError


class Rule(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """``FROM TO [form=FORM] [key=TEMPLATE] [header.NAME=TEMPLATE]...``, in one argument."""

    def __init__(self, kind: type[ToKafka | ToOverlay]) -> None:
        self._kind = kind
        self.name = "rule"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ToKafka | ToOverlay:
        if isinstance(value, (ToKafka, ToOverlay)):
            return value
        try:
            words = shlex.split(value)
            options: dict[str, Any] = {}
            for word in words[2:]:
                name, equals, text = word.partition("=")
                if not equals:
                    raise ValueError(f"{word!r} is not NAME=VALUE")
                if name.startswith("header."):
                    options.setdefault("headers", {})[name.removeprefix("header.")] = text
                elif name in self._names:
                    options[name] = text
                else:
                    raise ValueError(f"{name!r} is not one of {', '.join(self._names)}")
            if len(words) < 2:
                raise ValueError("a rule has a FROM and a TO, with a blank between them")
            return self._kind(*words[:2], **options)
        except (ValueError, TypeError, DafkaError) as error:
            self.fail(f"{value!r}: {error}", param, ctx)

    @property
    def _names(self) -> tuple[str, ...]:
        return ("key", "form", "header.NAME") if self._kind is ToKafka else ("form",)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Rules have blanks inside, so several stand with semicolons between them."""
        return [rule.strip() for rule in rv.split(";") if rule.strip()]


@click.command(short_help="Join topics of Kafka and of the overlay.")
@click.option(
    "--bootstrap-server", required=True, metavar="HOST:PORT", help="The broker: `dafka broker`, or any Kafka."
)
@click.option(
    "--to-kafka",
    multiple=True,
    type=Rule(ToKafka),
    metavar="'PREFIX TOPIC [key=..] [header.NAME=..] [form=..]'",
    help="Write what is published on topics with PREFIX to TOPIC, a template.",
)
@click.option(
    "--to-overlay",
    multiple=True,
    type=Rule(ToOverlay),
    metavar="'PATTERN TOPIC [form=..]'",
    help="Publish the records of topics that match PATTERN on TOPIC, a template.",
)
@click.option("--site", metavar="NAME", help="The name of this broker among those that share topics.")
@click.option("--share", multiple=True, metavar="PATTERN", help="Topics that other sites may have.")
@click.option(
    "--take/--no-take", default=True, show_default=True, help="Whether topics of other sites come here."
)
@click.option("--name", help="Of the groups that hold the checkpoints.  [default: --site, or overlay]")
@login_options
@metrics_options
@partial(
    joining_options,
    timeout_option=click.option(
        "--timeout",
        type=Seconds(),
        default=float("inf"),
        show_default="for ever",
        help="Seconds to wait for the broker.",
    ),
)
def bridge(
    bootstrap_server: str,
    to_kafka: tuple[ToKafka, ...],
    to_overlay: tuple[ToOverlay, ...],
    login: dict[str, Any],
    joining: Joining,
    metrics: Metrics,
    **options: Any,
) -> None:
    """Carry messages of the overlay into topics of Kafka, and records into the overlay; share topics.

    Templates name fields in braces: {topic}, {sender}, {kind}, {name}, {stream} and {value[..]} of a message,
    {topic}, {partition}, {offset}, {timestamp}, {key}, {header[..]} and {value[..]} of a record. FORM is
    json, binary or octets. Several rules in the environment or a file have semicolons between them.

    With --site NAME, topic T of this broker that matches --share is NAME.T at all other sites.

    The broker may be started later: it is waited for.
    """
    rules: list[ToKafka | ToOverlay] = [*to_kafka, *to_overlay]
    with ended_by_signal(), joining.endpoint() as endpoint:
        try:
            opened = Bridge(
                endpoint, bootstrap_server, rules=rules, timeout=joining.timeout, **login, **options
            )
        except InvalidRule as error:
            raise click.UsageError(str(error)) from error
        except KafkaError as error:
            raise click.ClickException(str(error)) from error
        with opened as running:
            where = f" at {endpoint.address}" if joining.listen else ""
            click.echo(f"bridge: {endpoint.id}{where}, {bootstrap_server}", err=True)
            with metrics.of("bridge", running.metrics):
                wait_for_signal()
