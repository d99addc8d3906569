"""``dafka overlay peers`` and ``dafka overlay topology``."""

from __future__ import annotations

from pathlib import Path

import click

from dafka.cli.options import ended_by_signal
from dafka.cli.overlay.graph import rows, table, writer_of
from dafka.cli.overlay.joining import Joining, joining_options, line
from dafka.overlay.topology import as_json, gather

_JSON = click.option("--json", "json_", is_flag=True, help="Print JSON.")


@click.command("peers", short_help="List the peers that can be reached.")
@_JSON
@joining_options
def peers_(json_: bool, joining: Joining) -> None:
    """Join the overlay and list everybody who can be reached, directly or over others."""
    with ended_by_signal(), joining.endpoint() as endpoint:
        joining.await_peers(endpoint)
        found = [peer for peer in endpoint.peers() if peer.id is not None]
        if json_:
            for peer in found:
                fields = {"id": str(peer.id), "address": peer.address}
                click.echo(line({**fields, "flags": sorted(peer.flags), "status": peer.status}))
            return
        lines = [
            (str(peer.id), peer.address or "", " ".join(sorted(peer.flags)), peer.status) for peer in found
        ]
        click.echo(table([("peer", "address", "flags", "status"), *sorted(lines)]))


@click.command("topology", short_help="Show who is peered with whom.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw it: .dot for Graphviz, or .svg, .png, .pdf with the extra 'topology'.",
)
@_JSON
@joining_options
def topology_(picture: Path | None, json_: bool, joining: Joining) -> None:
    """Join the overlay, ask everybody for its peers, and print a table of them.

    A peer that does not answer, as those of libbroker, has a question mark for the topics it wants.
    """
    draw = None if picture is None else writer_of(picture)
    with ended_by_signal(), joining.endpoint() as endpoint:
        joining.await_peers(endpoint)
        graph = gather(endpoint, joining.timeout)
        click.echo(line(as_json(graph, endpoint.id)) if json_ else table(rows(graph, endpoint.id)))
        if draw is not None:
            draw(graph, endpoint.id)
