"""ZPER's servers: those of the broker whose console this is, or others, asked through their ZPControllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gevent

from dafka.console import limits
from dafka.sockets.hosts import host_and_port
from dafka.zper.clients.cluster import Cluster
from dafka.zper.clients.errors import NoResponseError
from dafka.zper.commands import InvalidResponseError, RefusedError
from dafka.zper.connected import Connected
from dafka.zper.front_end import Zper
from dafka.zper.identity import Mode

_SECONDS = 3.0  # that a ZPController may take


def of_broker(zper: Zper, run: Callable[..., Any]) -> dict[str, Any]:
    """The servers of a broker of this process; ``run`` calls something in the hub."""
    metrics = run(zper.metrics)
    lag = metrics.pop("zper_replica_lag")
    clients = run(zper.clients, limits.ZPER_CLIENTS)
    return {
        "servers": dict(zper.addresses),
        "metrics": metrics,
        "discarded": dict(zper.discarded),
        "replicas": [{"address": address, "behind": behind} for address, behind in sorted(lag.items())],
        "clients": [_client(one) for one in clients],
        "nodes": run(zper.cluster),
    }


def of_controllers(addresses: Sequence[str]) -> list[dict[str, Any]]:
    """The answers of the ZPControllers at these addresses. A thread asks, since pyzmq blocks."""
    pool = gevent.get_hub().threadpool
    return [pool.apply(_ask, (address,)) for address in addresses]


def _ask(address: str) -> dict[str, Any]:
    try:
        with Cluster(address, timeout=_SECONDS) as cluster:
            nodes, peers, topics = cluster.nodes(), cluster.peers(), cluster.topics()
    except (NoResponseError, InvalidResponseError, RefusedError, OSError) as error:
        nothing: dict[str, Any] = {"nodes": [], "peers": [], "topics": []}
        return {"address": address, "error": str(error)[: limits.NOTICE], **nothing}
    return {
        "address": address,
        "error": None,
        "nodes": nodes[: limits.MESH_SHOWN],
        "peers": peers[: limits.MESH_SHOWN],
        "topics": topics[: limits.ZPER_TOPICS],
    }


def _client(one: Connected) -> dict[str, Any]:
    return {
        "server": one.server,
        "address": host_and_port(*one.address),
        "topic": one.topic,
        "mode": Mode(one.mode).name.lower() if one.server == "writer" else None,
        "copies": one.copies,
        "waiting": one.waiting,
        "position": one.position,
    }
