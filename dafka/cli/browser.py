"""``dafka console``: topics, records and groups of any cluster in a browser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.options import ended_by_signal, wait_for_signal
from dafka.security.sasl.steps import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from dafka.console import ConsoleOptions


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="HOST:PORT",
    help="Where browsers connect; PORT 0 is any.",
)
@click.option(
    "--write/--read-only",
    default=None,
    help="Whether changes are made.  [default: only if it listens on loopback]",
)
@click.option(
    "--host", "hosts", multiple=True, metavar="NAME", help="A name that browsers call it by; repeatable."
)
@click.option(
    "--login",
    type=click.Choice(["PLAIN", *SCRAM_MECHANISMS]),
    help="Everybody logs in with an account of the broker by this mechanism, and may do what it may do.",
)
@at_cluster
def console(
    listen: str, write: bool | None, hosts: tuple[str, ...], login: str | None, cluster: Cluster
) -> None:
    """Show a cluster in a browser: this broker, or Apache Kafka.

    With --login the listener named is one with SASL; -X security.protocol=SSL says that it has TLS.
    """
    options = console_options(listen, write, hosts)
    from dafka.console import Console  # brings Flask along

    with ended_by_signal():
        if login is None:
            with cluster.connect() as connection, Console(connection, options) as running:
                _run(running.url)
        else:
            with Console(None, options, cluster.accounts(login)) as running:
                _run(running.url)


def console_options(listen: str, write: bool | None = None, hosts: Iterable[str] = ()) -> ConsoleOptions:
    """The options of a console. Raises click.ClickException if what it needs is not installed."""
    try:
        from dafka.console.options import ConsoleOptions
    except ImportError as error:
        raise click.ClickException(f"the console needs {error.name}: pip install 'dafka[console]'") from error
    return ConsoleOptions(listen, write, tuple(hosts))


def _run(url: str) -> None:
    click.echo(f"console: {url}", err=True)
    wait_for_signal()
