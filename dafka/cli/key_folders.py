"""``dafka keys``: the keys of the nodes that may join a mesh."""

from __future__ import annotations

from pathlib import Path

import click

from dafka.security.keys import (
    ALLOWED,
    PUBLIC,
    Node,
    allow_node,
    allowed_in,
    new_keys,
    nodes_in,
    read_node,
    remove_node,
)

_FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
_NODES = click.argument("nodes", nargs=-1, required=True)
_STORE = click.option("--store", is_flag=True, help="They may be stores, as `dafka store` and brokers are.")
_PLAIN = click.option(
    "--plain",
    is_flag=True,
    help="They are programs that cannot prove their key, such as C nodes. "
    "Nobody can tell them from each other.",
)


@click.group()
def keys() -> None:
    """Keys of a mesh whose nodes know each other (CURVE). Commands take the folder with --keys."""


@keys.command()
@_FOLDER
@_NODES
@_STORE
@_PLAIN
def new(folder: Path, nodes: tuple[str, ...], store: bool, plain: bool) -> None:
    """Make keys for NODES, and put them on the list of those that may come in.

    The first time it makes FOLDER, and the pair of keys that all nodes show to those who connect to them.
    Another machine needs a copy of FOLDER with that pair, the list, and its own node's secret keys alone.
    """
    for node in nodes:
        new_keys(folder, node, store=store, plain=plain)
        click.echo(f"{folder / node}.key_secret: the keys of {node}, which may come in")


@keys.command()
@_FOLDER
@_NODES
@_STORE
@_PLAIN
def allow(folder: Path, nodes: tuple[str, ...], store: bool, plain: bool) -> None:
    """Let in NODES whose keys are in FOLDER, or say anew what they may be."""
    for node in nodes:
        allow_node(folder, node, Node(store, plain))


@keys.command("list")
@_FOLDER
def list_(folder: Path) -> None:
    """Print the nodes that may come in, those whose secret keys are here with a star."""
    if not folder.is_dir():
        raise click.ClickException(f"there is no folder {folder}: `dafka keys new {folder} NODE` makes it")
    here = set(nodes_in(folder))
    for node in allowed_in(folder):
        may = read_node(folder / ALLOWED / f"{node}{PUBLIC}")
        words = [word for word, is_so in may._asdict().items() if is_so]
        click.echo(" ".join([node, *(["*"] if node in here else []), *words]))


@keys.command()
@_FOLDER
@_NODES
def remove(folder: Path, nodes: tuple[str, ...]) -> None:
    """Take NODES off the list. Nodes that run notice within a minute, and cut them off."""
    unknown = [node for node in nodes if not remove_node(folder, node)]
    if unknown:
        raise click.ClickException(f"not on the list of {folder}: {', '.join(unknown)}")
