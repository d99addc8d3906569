"""The cluster as a whole."""

from __future__ import annotations

from typing import Any

from dafka.console.api.overview import disks
from dafka.console.desk import Desk
from dafka.console.routes import Routes

routes = Routes()


@routes.add("GET", "/cluster", "Brokers, what this console may do, and how full the disks are")
def get_cluster(desk: Desk) -> dict[str, Any]:
    found = desk.call("metadata", ())
    return {
        "cluster_id": found.cluster_id,
        "controller": found.controller_id,
        "brokers": [{"id": id_, "host": host, "port": port} for id_, host, port in found.brokers],
        "embedded": not desk.broker.is_remote,
        "writes": desk.writes,
        "user": desk.user,
        "schema_registry": desk.has_registry,
        "disks": disks(desk),
    }
