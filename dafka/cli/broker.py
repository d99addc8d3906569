"""``dafka broker``: a broker for Kafka's clients as a daemon."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import Any

import click

from dafka.cli import deferred_packages
from dafka.cli.numbers import Number

deferred_packages.defer()

from dafka.broker.broker import Broker  # noqa: E402  (what it imports must find them deferred)
from dafka.broker.connecting import connect  # noqa: E402
from dafka.broker.interface.errors import BrokerStoppedError  # noqa: E402
from dafka.broker.limits import OFFSETS_RETENTION, PARTITIONS_PER_TOPIC  # noqa: E402
from dafka.broker.listening import PLAINTEXT, PROTOCOLS, parse_listeners  # noqa: E402
from dafka.broker.looking.series import SeriesCache, series_of  # noqa: E402
from dafka.broker.options import check_offsets_retention  # noqa: E402
from dafka.broker.topics.configs import InvalidConfigError  # noqa: E402
from dafka.broker.topics.group_configs import check_started_with  # noqa: E402
from dafka.cli.authorizer import authorizer_options  # noqa: E402
from dafka.cli.hangup import on_hangup  # noqa: E402
from dafka.cli.health import health_of, hub_turns  # noqa: E402
from dafka.cli.metrics import Metrics, metrics_options  # noqa: E402
from dafka.cli.options import (  # noqa: E402
    check_folder,
    common_options,
    durability_options,
    ended_by_signal,
    key_options,
    retention_options,
    towers,
    wait_for_signal,
)
from dafka.cli.sasl import sasl_options  # noqa: E402
from dafka.cli.schema_registry import schema_registry_options  # noqa: E402
from dafka.cli.systemd import READY, notify  # noqa: E402
from dafka.cli.tls import tls_options  # noqa: E402
from dafka.console.decoding.options import SchemaRegistry  # noqa: E402
from dafka.security.sasl.steps import SCRAM_MECHANISMS  # noqa: E402
from dafka.security.tls import ServerTls  # noqa: E402
from dafka.sockets.hosts import is_loopback  # noqa: E402


def _pairs(ctx: click.Context, param: click.Parameter, text: str | None) -> dict[str, str] | None:
    """Settings, which are checked as those of :class:`dafka.Broker`."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE,NAME=VALUE,...", ctx, param)
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    try:
        check_started_with(settings)
    except InvalidConfigError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return settings


def _listens(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """Whether --advertised fits is looked at when both are known."""
    try:
        parse_listeners(text, "localhost")
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return text


def _console(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    if text is not None:
        from dafka.cli.browser import console_options  # brings Flask along

        try:
            console_options(text)
        except click.UsageError as error:
            raise click.BadParameter(error.message, ctx, param) from None
    return text


def _offsets_retention(ctx: click.Context, param: click.Parameter, seconds: float) -> float:
    try:
        check_offsets_retention(seconds)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return seconds


def _advertised(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    each = ",".join(f"{protocol}://127.0.0.1:0" for protocol in PROTOCOLS)
    try:
        if text is not None:
            parse_listeners(each if "://" in text else "127.0.0.1:0", text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return text


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:9092",
    show_default=True,
    metavar="HOST:PORT",
    callback=_listens,
    help="Where Kafka's clients connect; PORT 0 is any. Several: PLAINTEXT://HOST:PORT,SASL_SSL://HOST:PORT.",
)
@click.option(
    "--advertised",
    metavar="HOST[:PORT]",
    callback=_advertised,
    help="The address that clients are told, needed for a HOST that is every interface.  [default: --listen]",
)
@tls_options
@sasl_options
@authorizer_options
@click.option(
    "--data",
    default="brokerdb",
    show_default=True,
    type=click.Path(file_okay=False),
    callback=check_folder,
    metavar="DIR",
    help="The folder of the records.",
)
@click.option(
    "--default-partitions",
    default=1,
    show_default=True,
    type=click.IntRange(1, PARTITIONS_PER_TOPIC),
    help="Partitions of a topic that is created without saying how many.",
)
@click.option(
    "--auto-create-topics/--no-auto-create-topics",
    default=True,
    show_default=True,
    help="Whether clients create a topic by using it.",
)
@click.option("--sub", help="Where the tower takes beacons.  [default: a tower of its own]")
@click.option("--pub", help="Where the tower gives beacons.  [default: a tower of its own]")
@click.option(
    "--console",
    metavar="HOST:PORT",
    callback=_console,
    help="Where a browser shows the broker; read-only unless on loopback.  [default: nowhere]",
)
@schema_registry_options
@click.option(
    "--console-login",
    type=click.Choice(["PLAIN", *SCRAM_MECHANISMS]),
    help="Browsers log in with an account of the broker, which then has a listener with SASL.",
)
@click.option(
    "--console-tls/--console-plain",
    default=None,
    help="Whether it has the broker's certificate.  [default: if it listens wider than loopback]",
)
@key_options
@durability_options
@retention_options
@click.option(
    "--offsets-retention",
    type=Number(),
    default=OFFSETS_RETENTION,
    show_default=True,
    callback=_offsets_retention,
    help="Seconds to keep the offsets of a group without members; -1: for ever.",
)
@click.option(
    "--group-settings",
    callback=_pairs,
    metavar="NAME=VALUE,...",
    help="Settings of all groups by Kafka's names: group.consumer.session.timeout.ms=10000.",
)
@click.option(
    "--quota-settings",
    callback=_pairs,
    metavar="NAME=VALUE,...",
    help="Settings of quotas by Kafka's names: quota.window.num=11,quota.window.size.seconds=1.",
)
@metrics_options
@click.option("--check", is_flag=True, help="Say what is wrong with the settings, or what they are, and end.")
@common_options
def broker(
    listen: str,
    data: str,
    sub: str | None,
    pub: str | None,
    console: str | None,
    registry: SchemaRegistry | None,
    console_login: str | None,
    console_tls: bool | None,
    metrics: Metrics,
    tls: ServerTls | None,
    check: bool,
    **options: Any,
) -> None:
    """Run a broker that Kafka's clients connect to.

    Everything can be set in a file: dafka broker --config broker.toml --check looks whether it is right.
    SIGTERM and Ctrl-C end a broker: accepted records are committed, and clients are disconnected.
    """
    if (sub is None) != (pub is None):
        raise click.UsageError("--sub and --pub are the two addresses of a tower: give both or none")
    tower = None if sub is None or pub is None else towers(sub, pub)
    if console is not None:
        from dafka.cli.browser import console_options

        certificate = _of_console(console, console_tls, tls)
        options["console"] = console_options(console, tls=certificate, login=console_login, registry=registry)
    elif registry is not None:
        raise click.UsageError("--schema-registry is for the records that --console shows")
    elif console_login or console_tls is not None:
        raise click.UsageError("--console-login and --console-tls need --console")
    configured = Broker(data, listen=listen, tower=tower, tls=tls, **options)
    if check:
        from dafka.cli.checking import check_broker, show_settings  # a broker needs nothing of it

        check_broker(data, tls, options["keys"])
        show_settings(click.get_current_context())
        return
    # Messages of the mesh would be a line for each run of records that is written.
    logging.getLogger("dafka.mesh").setLevel(max(logging.INFO, logging.getLogger().level))
    on_hangup(partial(_renew, configured))
    with ended_by_signal(), configured as running:
        click.echo(f"broker: {_addresses(running)} in {data}", err=True)
        if console is not None:
            click.echo(f"console: {running.console}", err=True)
        here = connect(running.bootstrap_servers)
        health = partial(health_of, running)
        series = SeriesCache(partial(series_of, here))
        with metrics.of("broker", running.metrics, health, series, running.announce_metrics):
            notify(READY, f"STATUS=serving {_addresses(running)}")
            wait_for_signal(alive=hub_turns)


def _of_console(listen: str, wanted: bool | None, tls: ServerTls | None) -> ServerTls | None:
    """The console's certificate is the broker's."""
    if wanted and tls is None:
        raise click.UsageError("--console-tls needs --ssl-certfile")
    if wanted is None:
        wanted = not is_loopback(listen.rpartition(":")[0].strip("[]"))
    return tls if wanted else None


def _renew(broker: Broker) -> None:
    """A broker that starts or ends needs no telling: new connections look at the files, too."""
    with suppress(BrokerStoppedError):
        broker.renew()


def _addresses(running: Broker) -> str:
    listeners = running.listeners
    if list(listeners) == [PLAINTEXT]:
        return running.bootstrap_servers
    return ",".join(f"{protocol}://{address}" for protocol, address in listeners.items())
