"""The mesh, the overlay and ZPER's servers, as far as the console is connected with them."""

from __future__ import annotations

import time
from typing import Any

from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.errors import NotThereError
from dafka.console.networks.picture import Picture
from dafka.console.routes import TEXT, Parameter, Routes

routes = Routes()

_ADDRESS = {"type": "string", "minLength": 1, "maxLength": 1000}


@routes.add("GET", "/networks", "Which of Kafka, mesh, overlay and ZPER this console is connected with")
def get_networks(desk: Desk) -> dict[str, Any]:
    return {"kafka": desk.has_broker, **desk.networks.connected}


@routes.add(
    "GET",
    "/mesh",
    "Towers, processes, nodes and partitions of the mesh: who produces, who stores up to where, who follows",
    Parameter("search", TEXT, "Only partitions of topics with this in their names", default=""),
    Parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": limits.MESH_SHOWN},
        "Partitions at most: those in which most is missing or happens",
        default=100,
    ),
)
def get_mesh(desk: Desk, search: str, limit: int) -> dict[str, Any]:
    """``connected`` is false, and all else missing, where there is no mesh."""
    desk.check_operator()
    mesh = desk.networks.mesh
    picture = None if mesh is None else mesh.look()
    if picture is None:
        return {"connected": False}
    return {"connected": True, **picture.rows(time.time(), search, limit)}


@routes.add(
    "GET",
    "/mesh/nodes/{address}",
    "One node of the mesh, with its metrics if it is in the console's process or has told where they are",
    Parameter("address", _ADDRESS, "Its address", required=True),
)
def get_mesh_node(desk: Desk, address: str) -> dict[str, Any]:
    desk.check_operator()
    mesh = desk.networks.mesh
    picture = None if mesh is None else mesh.look()
    octets = address.encode("utf-8", "surrogateescape")
    if mesh is None or picture is None or not picture.knows(octets):
        raise NotThereError(f"there is no node {address[:100]!r} in the mesh")
    return {**picture.node_row(time.time(), octets), **_metrics(desk, picture, octets)}


def _metrics(desk: Desk, picture: Picture, address: bytes) -> dict[str, Any]:
    own = desk.networks.mesh.metrics_of(address) if desk.networks.mesh is not None else None
    place = None if own is not None else picture.metrics_at(address)
    if place is None:
        return {"metrics": own, "metrics_at": None, "metrics_error": None}
    return desk.networks.scraper.ask(*place)


@routes.add("GET", "/mesh/metrics", "What the servers of metrics tell that the console was started with")
def get_mesh_metrics(desk: Desk) -> dict[str, Any]:
    desk.check_operator()
    return {"servers": desk.networks.named_metrics()}


@routes.add("GET", "/overlay", "The nodes of the overlay, who is peered with whom, and the paths to each")
def get_overlay(desk: Desk) -> dict[str, Any]:
    """``connected`` is false, and all else missing, where there is no overlay."""
    desk.check_operator()
    found = desk.networks.look_at_overlay()
    return {"connected": False} if found is None else {"connected": True, **found}


@routes.add("GET", "/zper", "ZPER's servers with their writers, readers, replicas and nodes")
def get_zper(desk: Desk) -> dict[str, Any]:
    """``own`` are those of the broker whose console this is, null if it has none."""
    desk.check_operator()
    return {"connected": desk.networks.connected["zper"], **desk.networks.look_at_zper()}
