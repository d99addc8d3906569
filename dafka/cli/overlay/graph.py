"""The topology of an overlay as a table and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from dafka.overlay import EndpointId
from dafka.overlay.topology import Graph, as_json

_SHORT = 8  # characters of an id that name a peer in a picture
FORMATS = (".dot", ".png", ".svg", ".pdf")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows, the first of which is the heading, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def rows(graph: Graph, me: EndpointId) -> list[tuple[str, str, str]]:
    """Id, neighbours and prefixes of each node but this one."""
    found = [("peer", "peered with", "wants")]
    for id, node in sorted(graph.nodes.items()):
        if id != me:
            others = " ".join(_short(one) for one in graph.neighbours(id) if one != me)
            found.append(
                (str(id), others, "?" if node.prefixes is None else " ".join(map(repr, node.prefixes)))
            )
    return found


def dot(graph: Graph, me: EndpointId) -> str:
    """In the language of Graphviz."""
    shown = as_json(graph, me)
    nodes = [f'  "{node["id"]}" [label="{node["id"][:_SHORT]}"];' for node in shown["nodes"]]
    links = [f'  "{one}" -- "{other}";' for one, other in shown["links"]]
    return "\n".join(["graph overlay {", "  node [shape=ellipse];", *nodes, *links, "}", ""])


def writer_of(file: Path) -> Callable[[Graph, EndpointId], None]:
    """The writer of pictures for a file, by its ending. Raises :class:`click.ClickException`."""
    if file.suffix not in FORMATS:
        raise click.UsageError(f"{file}: a picture ends with {', '.join(FORMATS)}")
    if file.suffix == ".dot":
        return lambda graph, me: _write_dot(file, graph, me)
    try:
        import matplotlib
        import networkx
    except ImportError as error:
        raise click.ClickException(
            f"{file}: pictures are drawn with networkx and matplotlib: pip install 'dafka[topology]'; "
            "a file that ends with .dot needs neither"
        ) from error
    return lambda graph, me: _draw(file, graph, me, networkx, matplotlib)


def _write_dot(file: Path, graph: Graph, me: EndpointId) -> None:
    file.write_text(dot(graph, me))


def _draw(file: Path, graph: Graph, me: EndpointId, networkx: Any, matplotlib: Any) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = as_json(graph, me)
    drawn = networkx.Graph()
    drawn.add_nodes_from(node["id"] for node in shown["nodes"])
    drawn.add_edges_from(shown["links"])
    figure = pyplot.figure(figsize=(8, 8))
    colours = ["lightgrey" if node["prefixes"] is None else "lightblue" for node in shown["nodes"]]
    networkx.draw_networkx(
        drawn,
        networkx.spring_layout(drawn, seed=1),
        ax=figure.gca(),
        labels={node["id"]: node["id"][:_SHORT] for node in shown["nodes"]},
        nodelist=[node["id"] for node in shown["nodes"]],
        node_color=colours,
        node_size=1500,
        font_size=8,
    )
    figure.gca().set_axis_off()
    figure.savefig(file)
    pyplot.close(figure)


def _short(id: EndpointId) -> str:
    return str(id)[:_SHORT]
