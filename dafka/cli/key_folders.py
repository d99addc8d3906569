"""``dafka keys``: who may come into a mesh."""

from __future__ import annotations

from pathlib import Path

import click

from dafka.security.keys import allowed_in, new_keys, nodes_in, remove_node

_FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))


@click.group()
def keys() -> None:
    """Keys of a mesh whose nodes know each other (CURVE). Commands take the folder with --keys."""


@keys.command()
@_FOLDER
@click.argument("nodes", nargs=-1, required=True)
def new(folder: Path, nodes: tuple[str, ...]) -> None:
    """Make keys for NODES, and put them on the list of those that may come in.

    The first time it makes FOLDER, and the pair of keys that all nodes show to those who connect to them.
    Another machine needs a copy of FOLDER with that pair, the list, and its own node's secret keys alone.
    """
    for node in nodes:
        new_keys(folder, node)
        click.echo(f"{folder / node}.key_secret: the keys of {node}, which may come in")


@keys.command("list")
@_FOLDER
def list_(folder: Path) -> None:
    """Print the nodes that may come in, those whose secret keys are here with a star."""
    here = set(nodes_in(folder))
    for node in allowed_in(folder):
        click.echo(f"{node} *" if node in here else node)


@keys.command()
@_FOLDER
@click.argument("nodes", nargs=-1, required=True)
def remove(folder: Path, nodes: tuple[str, ...]) -> None:
    """Take NODES off the list. Nodes that run notice within a minute, and cut them off."""
    unknown = [node for node in nodes if not remove_node(folder, node)]
    if unknown:
        raise click.ClickException(f"not on the list of {folder}: {', '.join(unknown)}")
