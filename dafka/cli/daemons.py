"""``dafka tower`` and ``dafka store``, the daemons towerd and stored."""

from __future__ import annotations

from typing import Any

import click

from dafka.cli.options import common_options, ended_by_signal, mesh_arguments, wait_for_signal
from dafka.mesh.store import Store
from dafka.mesh.tower import Tower


@click.command()
@click.option("--sub", default="tcp://*:5556", show_default=True, help="Where to take beacons from nodes.")
@click.option("--pub", default="tcp://*:5557", show_default=True, help="Where to give beacons to nodes.")
@common_options
def tower(sub: str, pub: str) -> None:
    """Run a tower, where nodes find each other."""
    with ended_by_signal(), Tower(sub, pub) as running:
        publish_to, subscribe_from = running.addresses
        click.echo(f"tower: nodes publish to {publish_to} and subscribe from {subscribe_from}", err=True)
        wait_for_signal()


@click.command()
@click.argument("folder", default="storedb", type=click.Path(file_okay=False))
@click.option(
    "--durability",
    type=click.Choice(["process", "power"]),
    default="process",
    show_default=True,
    help="What an acknowledged record survives: the death of this process, or a power cut too.",
)
@mesh_arguments
def store(folder: str, durability: str, mesh: dict[str, Any]) -> None:
    """Run a store that keeps every partition it hears of in FOLDER."""
    with ended_by_signal(), Store(folder, durability=durability, **mesh) as running:
        click.echo(f"store: {running.address} in {folder}", err=True)
        wait_for_signal()
