"""The topology of an overlay: gathered by asking each peer, as a table and as a picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from dafka.overlay import Empty, Endpoint, EndpointId, Message
from dafka.overlay.wire.links import ANSWER, links_of
from dafka.protocol.errors import MalformedMessage

_AGAIN = 1.0  # seconds until a peer that has not answered is asked again
_SHORT = 8  # characters of an id that name a peer in a picture
FORMATS = (".dot", ".png", ".svg", ".pdf")


class Node(NamedTuple):
    """``prefixes`` is None for a peer that does not answer, as those of libbroker."""

    id: EndpointId
    prefixes: tuple[str, ...] | None


class Graph(NamedTuple):
    """Links are pairs of ids, the smaller one first."""

    nodes: dict[EndpointId, Node]
    links: set[tuple[EndpointId, EndpointId]]

    def neighbours(self, id: EndpointId) -> list[EndpointId]:
        return sorted(other for link in self.links if id in link for other in link if other != id)


class Observer:
    """Finds out the topology around ``endpoint``, and notices who comes. Nothing goes from its graph."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.graph = Graph({endpoint.id: Node(endpoint.id, ())}, set())
        self._endpoint = endpoint
        self._answers = endpoint.subscribe(ANSWER)
        self._asked: dict[EndpointId, float] = {}
        self._mute: set[EndpointId] = set()

    @property
    def silent(self) -> list[EndpointId]:
        """Those who have not answered, but for peers of libbroker, which never do."""
        unknown = (id for id, node in self.graph.nodes.items() if node.prefixes is None)
        return [id for id in unknown if id not in self._mute]

    def look(self, seconds: float = 0.0) -> None:
        """Ask those who are new or silent, and wait so long for an answer."""
        for peer in self._endpoint.peers():
            if peer.id is not None:
                self._add(peer.id)
                if peer.status == "peered":
                    self.graph.links.add(_link(self._endpoint.id, peer.id))
        for id in self.silent:
            if time.monotonic() - self._asked.get(id, float("-inf")) > _AGAIN:
                self._asked[id] = time.monotonic()
                if not self._endpoint.ask_links(id):
                    self._mute.add(id)
        with suppress(Empty):
            for answer in [self._answers.get(seconds if self.silent else 0.0), *self._answers.poll()]:
                self._hear(answer)

    def find_all(self, timeout: float) -> None:
        """Ask everybody who is reachable, until all have answered or for ``timeout`` seconds."""
        ends = time.monotonic() + timeout
        while True:
            self.look(max(min(_AGAIN / 4, ends - time.monotonic()), 0.0))
            if not self.silent or time.monotonic() >= ends:
                return

    def close(self) -> None:
        self._answers.close()

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, id: EndpointId) -> None:
        self.graph.nodes.setdefault(id, Node(id, None))

    def _hear(self, answer: Message) -> None:
        try:
            links = links_of(answer.value)
        except MalformedMessage:
            return
        prefixes = tuple(prefix.decode("utf-8", "backslashreplace") for prefix in links.filter)
        self.graph.nodes[answer.sender] = Node(answer.sender, prefixes)
        for other in map(EndpointId, links.neighbours):
            self._add(other)
            self.graph.links.add(_link(answer.sender, other))


def gather(endpoint: Endpoint, timeout: float) -> Graph:
    """Ask everybody who is reachable, until all have answered or for ``timeout`` seconds."""
    with Observer(endpoint) as observer:
        observer.find_all(timeout)
        return observer.graph


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


def as_json(graph: Graph, me: EndpointId) -> dict[str, Any]:
    """Without this node, which is there only to look."""
    nodes = [
        {"id": str(id), "prefixes": None if node.prefixes is None else list(node.prefixes)}
        for id, node in sorted(graph.nodes.items())
        if id != me
    ]
    links = [[str(one), str(other)] for one, other in sorted(graph.links) if me not in (one, other)]
    return {"nodes": nodes, "links": links}


def dot(graph: Graph, me: EndpointId) -> str:
    """In the language of Graphviz."""
    shown = as_json(graph, me)
    nodes = [f'  "{node["id"]}" [label="{node["id"][:_SHORT]}"];' for node in shown["nodes"]]
    links = [f'  "{one}" -- "{other}";' for one, other in shown["links"]]
    return "\n".join(["graph overlay {", "  node [shape=ellipse];", *nodes, *links, "}", ""])


def writer_of(file: Path) -> Callable[[Graph, EndpointId], None]:
    """What writes a picture to a file, by its ending. Raises :class:`click.ClickException`."""
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


def _link(one: EndpointId, other: EndpointId) -> tuple[EndpointId, EndpointId]:
    return (one, other) if one < other else (other, one)


def _short(id: EndpointId) -> str:
    return str(id)[:_SHORT]
