"""Store: keeps every partition it hears of, acknowledges what it has committed, serves what is fetched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, get_args

from dafka.commit.retention import (
    CHECK_INTERVAL,
    Cleaner,
    Retention,
    Rules,
    check_choice,
    check_interval,
    check_retention,
)
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.dropped import when_dropped
from dafka.hub.hub import Hub, get_hub
from dafka.hub.turns import Pace
from dafka.log import Durability, Log, LogPartition, OnDamage, shapes
from dafka.log.kinds import STORE, check_kind
from dafka.log.layout import folder_name
from dafka.log.limits import NAME_BYTES
from dafka.mesh import metrics_port
from dafka.mesh.address import TowerLike, check_address, check_topic, new_address
from dafka.mesh.endpoint import Endpoint, EndpointOptions, node_options
from dafka.mesh.store_node import StoreNode

IDENTITY = STORE.table  # which holds this store's address


class Store:
    """A store of the mesh (46/DAFKA) on a folder. Runs from its construction until :meth:`close`.

    ``path``: its folder, created if missing; one process at a time. ``durability``: what an
    acknowledgement promises, ``"process"`` (the record survives the death of this process) or ``"power"``
    (it survives a power cut). ``address``: the store's; by default a fresh UUID, which is kept in the folder.

    ``retention_ms`` and ``retention_bytes``: how long records are kept, and how many bytes of them in each
    partition; None: no bound. ``topic_retention`` has other bounds for topics by their names. Records go in
    stored values of up to about a megabyte, and are looked at every ``retention_check_interval`` seconds.
    ``on_damage``: what reading does about a stored value that is damaged: ``"raise"`` does not serve it,
    ``"skip"`` logs its place and goes on behind it.

    ``tower`` and further keywords as for :class:`dafka.Producer`. Raises the log's errors:
    :class:`dafka.log.LogLockedError`, :class:`dafka.log.LogVersionError`, :class:`dafka.log.NotALogError`,
    and ValueError for an invalid setting.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        tower: TowerLike = None,
        address: str | None = None,
        durability: Durability = "process",
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        topic_retention: Mapping[str | bytes, Retention] | None = None,
        retention_check_interval: float = CHECK_INTERVAL,
        on_damage: OnDamage = "raise",
        **mesh: Any,
    ) -> None:
        check_choice("durability", durability, get_args(Durability))
        check_choice("on_damage", on_damage, get_args(OnDamage))
        default = check_retention(retention_ms, retention_bytes)
        by_topic = _check_topic_retention(topic_retention)
        interval = check_interval(retention_check_interval)
        self._hub = get_hub()
        octets = None if address is None else check_address(address)
        options = node_options(self, tower, mesh)
        if options.keys is not None:
            options.keys.check_store()
        self._tower = tower  # one that nobody else has runs as long as this node
        self.path = folder_name(path)

        def start() -> tuple[StoreNode, Cleaner]:
            node = _open(self._hub, options, self.path, durability, on_damage, octets)
            return node, _clean(self._hub, node, default, by_topic, interval)

        self._node, self._cleaner = self._hub.run(start)
        self.address = self._node.role.address.decode()
        self._not_dropped = when_dropped(
            self, self._hub, repr(self), "close()", _close, self._node, self._cleaner
        )

    def heads(self) -> dict[tuple[bytes, str], int]:
        """The last committed sequence of every partition, by (topic, producer's address)."""
        return self._hub.run(self._node.heads)

    def metrics(self) -> dict[str, Any]:
        """Counters and gauges of this store and of its endpoint, by the names in
        :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def announce_metrics(self, port: int) -> None:
        """Tell who looks at the mesh that these are served at this port of the store's host, by HTTP."""
        self._hub.run(metrics_port.announce, self._node, port)

    def close(self) -> None:
        """Commit what has arrived, leave the mesh and close the folder."""
        self._not_dropped()
        self._hub.run(run_to_completion, self._hub, _close, self._node, self._cleaner)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path!r} {self.address}>"


def _open(
    hub: Hub,
    options: EndpointOptions,
    path: str,
    durability: Durability,
    on_damage: OnDamage,
    address: bytes | None,
) -> StoreNode:
    log = Log(path, durability=durability, on_damage=on_damage, pause=Pace().rest)
    writer = Writer(hub, log)
    try:
        check_kind(log, STORE)
        kept = _kept_address(log, writer)  # also where another one is given: it tells what the folder is
        address = address or kept
        node = StoreNode(hub, Endpoint.shared(hub, options), log, writer, address)
        node.begin()
        return node
    except BaseException:
        writer.close()
        log.close()
        raise


def _check_topic_retention(given: object) -> dict[bytes, Retention]:
    """Bounds of topics as a user gives them. Raises ValueError."""
    if given is None:
        return {}
    expected = "topic_retention is a dict with a dafka.mesh.retention.Retention for each topic"
    if not isinstance(given, Mapping):
        raise ValueError(f"{expected}, not {given!r:.100}")
    by_topic = {}
    for topic, bounds in given.items():
        if not isinstance(bounds, tuple) or len(bounds) != 2:
            raise ValueError(f"{expected}; for {topic!r:.100} it has {bounds!r:.100}")
        by_topic[check_topic(topic)] = check_retention(*bounds)
    return by_topic


def _is_address(value: object) -> bool:
    return shapes.text(value) and 0 < len(str(value)) <= NAME_BYTES and str(value).isascii()


def _kept_address(log: Log, writer: Writer) -> bytes:
    """The address that goes with the folder: producers count distinct stores by it, across restarts."""
    kept = log.table(IDENTITY, shapes.named_rows(address=_is_address)).get("address")
    if kept is None:
        kept = new_address().decode()
        writer.put_and_wait({(IDENTITY, "address"): kept})
    return str(kept).encode()


def _clean(
    hub: Hub, node: StoreNode, default: Retention, by_topic: Mapping[bytes, Retention], interval: float
) -> Cleaner:
    def rules(partition: LogPartition) -> Rules:
        return Rules(by_topic.get(partition.topic, default))

    return Cleaner(hub, node.log, node.writer, rules, node.trimmed, interval)


def _close(node: StoreNode, cleaner: Cleaner) -> None:
    if node.closed:
        return
    node.close()
    cleaner.close()
    node.writer.close()
    node.log.close()
