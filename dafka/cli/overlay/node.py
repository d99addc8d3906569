"""``dafka overlay node``."""

from __future__ import annotations

import click

from dafka.cli.options import ended_by_signal, wait_for_signal
from dafka.cli.overlay.joining import Joining, joining_options
from dafka.overlay import EndpointId, Error, Status


@click.command("node", short_help="Run a node until Ctrl-C.")
@click.option(
    "--forward", multiple=True, metavar="PREFIX", help="Pass these topics on to peers of libbroker."
)
@click.option("--master", multiple=True, metavar="NAME", help="Be the master of this data store, in memory.")
@click.option("--clone", multiple=True, metavar="NAME", help="Be a clone of this data store.")
@joining_options
def node_(
    forward: tuple[str, ...], master: tuple[str, ...], clone: tuple[str, ...], joining: Joining
) -> None:
    """Run a node: it passes on what others publish, and keeps data stores for them."""
    with ended_by_signal(), joining.endpoint() as endpoint:
        endpoint.on_status(_tell)
        if forward:
            endpoint.forward(forward)
        for name in master:
            endpoint.attach_master(name)
        for name in clone:
            endpoint.attach_clone(name)
        where = endpoint.address if joining.listen else "no address"
        click.echo(f"node: {endpoint.id} at {where}", err=True)
        wait_for_signal()


def _tell(news: Status | Error) -> None:
    who = ""
    if news.context is not None:
        network = news.context.network
        where = "" if network is None else f" at {network.address}:{network.port}"
        who = f" {_id(news.context.endpoint)}{where}"
    click.echo(f"{news.code.name.lower()}{who}: {news.message}", err=True)


def _id(endpoint: bytes | None) -> str:
    return "unknown" if endpoint is None else str(EndpointId(endpoint))
