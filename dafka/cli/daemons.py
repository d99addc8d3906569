"""``dafka tower`` and ``dafka store``, the daemons towerd and stored."""

from __future__ import annotations

import click

from dafka.cli.options import ended_by_signal, tower_options, wait_for_signal
from dafka.mesh.store import Store
from dafka.mesh.tower import Tower


@click.command()
@click.option("--sub", default="tcp://*:5556", show_default=True, help="Where to take beacons from nodes.")
@click.option("--pub", default="tcp://*:5557", show_default=True, help="Where to give beacons to nodes.")
def tower(sub: str, pub: str) -> None:
    """Run a tower, where nodes find each other."""
    with ended_by_signal(), Tower(sub, pub) as running:
        click.echo(
            f"tower: nodes publish to {running.addresses[0]} and subscribe from {running.addresses[1]}",
            err=True,
        )
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
@tower_options
def store(folder: str, durability: str, sub: str, pub: str, bind: str) -> None:
    """Run a store that keeps every partition it hears of in FOLDER."""
    with ended_by_signal(), Store(folder, tower=(sub, pub), durability=durability, bind=bind) as running:
        click.echo(f"store: {running.address} in {folder}", err=True)
        wait_for_signal()
