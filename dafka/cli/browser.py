"""``dafka console``: topics, records and groups of any cluster, and what is around it, in a browser."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.options import ended_by_signal, key_options, towers, wait_for_signal
from dafka.cli.schema_registry import schema_registry_options
from dafka.cli.tls import tls_options
from dafka.security.keys import KeyFolder
from dafka.security.sasl.steps import SCRAM_MECHANISMS
from dafka.security.tls import ServerTls

if TYPE_CHECKING:
    from dafka.console import ConsoleOptions, SchemaRegistry
    from dafka.overlay.node.connections.tls import Secured


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
@schema_registry_options
@tls_options
@click.option("--sub", help="Show the mesh: where its tower takes beacons.  [default: no mesh]")
@click.option("--pub", help="Where its tower gives beacons.")
@click.option(
    "--bind", default="127.0.0.1", show_default=True, help="Interface that the mesh's nodes connect to."
)
@key_options
@click.option(
    "--overlay",
    multiple=True,
    metavar="HOST:PORT",
    help="Show the overlay that this endpoint is in; repeatable.",
)
@click.option("--overlay-tls", is_flag=True, help="Its endpoints encrypt, without certificates.")
@click.option(
    "--zper", multiple=True, metavar="tcp://HOST:PORT", help="Show ZPER: a ZPController; repeatable."
)
@click.option(
    "--metrics",
    multiple=True,
    metavar="http://HOST:PORT",
    help="Show the metrics of a tower, its --metrics-port; repeatable. Nodes of the mesh announce theirs.",
)
@at_cluster
def console(
    listen: str,
    write: bool | None,
    hosts: tuple[str, ...],
    login: str | None,
    registry: SchemaRegistry | None,
    tls: ServerTls | None,
    sub: str | None,
    pub: str | None,
    bind: str,
    keys: KeyFolder | None,
    overlay: tuple[str, ...],
    overlay_tls: bool,
    zper: tuple[str, ...],
    metrics: tuple[str, ...],
    cluster: Cluster,
) -> None:
    """Show a cluster in a browser: this broker, or Apache Kafka; and the mesh, overlay and ZPER around it.

    A mesh, overlay or ZPER that is named without --bootstrap-servers is shown alone.

    With --login the listener named is one with SASL; -X security.protocol=SSL says that it has TLS.
    """
    if (sub is None) != (pub is None):
        raise click.UsageError("--sub and --pub are the two addresses of a tower: give both or none")
    options = console_options(listen, write, hosts, tls, registry=registry)
    from dafka.console import Console, NetworkOptions  # brings Flask along

    tower = None if sub is None or pub is None else towers(sub, pub)
    try:
        secured: Secured = "anonymous" if overlay_tls else None
        networks = NetworkOptions(tower, bind, keys, overlay, secured, zper, metrics)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    options = replace(options, networks=networks)

    with ended_by_signal():
        if login is None and not cluster.is_named and not networks.is_empty:
            with Console(None, options) as running:
                _run(running.url)
        elif login is None:
            with cluster.connect() as connection, Console(connection, options) as running:
                _run(running.url)
        else:
            with Console(None, options, cluster.accounts(login)) as running:
                _run(running.url)


def console_options(
    listen: str,
    write: bool | None = None,
    hosts: Iterable[str] = (),
    tls: ServerTls | None = None,
    *,
    login: str | None = None,
    registry: SchemaRegistry | None = None,
) -> ConsoleOptions:
    """The options of a console. Raises click.ClickException if what it needs is not installed, UsageError."""
    try:
        from dafka.console.options import ConsoleOptions
    except ImportError as error:
        raise click.ClickException(f"the console needs {error.name}: pip install 'dafka[console]'") from error
    try:
        return ConsoleOptions(listen, write, tuple(hosts), schema_registry=registry, tls=tls, login=login)
    except ValueError as error:
        raise click.UsageError(f"the console: {error}") from error


def _run(url: str) -> None:
    click.echo(f"console: {url}", err=True)
    wait_for_signal()
