"""Store: keeps every partition it hears of, acknowledges what it has committed, serves what is fetched."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

import gevent
import gevent.event

from dafka.log import Log, LogPartition
from dafka.mesh import limits
from dafka.mesh.address import TowerLike, address_name, check_address, new_address
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node, mesh_options
from dafka.mesh.hub import Hub, get_hub
from dafka.mesh.writer import Writer
from dafka.protocol.commands import Command, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.outputs import Append, Begin, Serve
from dafka.roles.store import StoreRole

_COUNTED = ("records_in", "bytes_in", "records_served", "bytes_served", "fetches_answered")

_PAUSE = 0.001  # seconds until a congested endpoint is looked at again

logger = logging.getLogger(__name__)

IDENTITY = "store"  # the table of the log that holds this store's address


class Store:
    """A store of the mesh (46/DAFKA) on a folder. Runs from its construction until :meth:`close`.

    ``path``: its folder, created if missing; one process at a time. ``durability``: what an
    acknowledgement promises, ``"process"`` (the record survives the death of this process) or ``"power"``
    (it survives a power cut). ``address``: the store's; by default a fresh UUID, which is kept in the folder.
    ``tower`` and further keywords as for :class:`dafka.Producer`. Raises the log's errors:
    :class:`dafka.log.LogLockedError`, :class:`dafka.log.LogVersionError`, :class:`dafka.log.NotALogError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        tower: TowerLike = None,
        address: str | None = None,
        durability: str = "process",
        **mesh: Any,
    ) -> None:
        self._hub = get_hub()
        octets = None if address is None else check_address(address)
        options = mesh_options(tower, **mesh)
        self.path = os.fspath(path)
        self._node = self._hub.run(_open, self._hub, options, self.path, durability, octets)
        self.address = self._node.role.address.decode()

    def heads(self) -> dict[tuple[bytes, str], int]:
        """The last committed sequence of every partition, by (topic, producer's address)."""
        return self._hub.run(self._node.heads)

    def metrics(self) -> dict[str, Any]:
        """Counters and gauges of this store and of its endpoint, by the names in
        :mod:`dafka.mesh.metrics`."""
        return self._hub.run(self._node.metrics)

    def close(self) -> None:
        """Commit what has arrived, leave the mesh and close the folder."""
        self._hub.run(_close, self._node)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path!r} {self.address}>"


def _open(
    hub: Hub, options: EndpointOptions, path: str, durability: str, address: bytes | None
) -> StoreNode:
    log = Log(path, durability=durability)
    writer = Writer(hub, log)
    try:
        address = address or _kept_address(log, writer)
        return StoreNode(hub, Endpoint.shared(hub, options), log, writer, address)
    except BaseException:
        writer.close()
        log.close()
        raise


def _kept_address(log: Log, writer: Writer) -> bytes:
    """The address that goes with the folder: producers count distinct stores by it, across restarts."""
    kept = log.table(IDENTITY).get("address")
    if kept is None:
        kept = new_address().decode()
        writer.put_and_wait({(IDENTITY, "address"): kept})
    return str(kept).encode()


def _close(node: StoreNode) -> None:
    if node.closed:
        return
    node.close()
    node.writer.close()
    node.log.close()


class StoreNode(Node):
    """A store role on an endpoint and a log; hub side. The broker uses it with its own log and writer."""

    hello_ids = b"LG"

    def __init__(self, hub: Hub, endpoint: Endpoint, log: Log, writer: Writer, address: bytes) -> None:
        self.log = log
        self.writer = writer
        self.closed = False
        self.endpoint = endpoint
        known = {
            (partition.topic, partition.address): (partition.first_sequence, partition.next_sequence)
            for partition in log.partitions()
        }
        self.role = StoreRole(address, known)
        self._begins: set[tuple[bytes, bytes]] = set()  # partitions whose next append leaves a gap
        self._requests: deque[Serve] = deque()
        self._wake = gevent.event.Event()
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        endpoint.publish(self, self.role.start())
        endpoint.attach(self)
        self._server = hub.spawn(self._serve)

    def heads(self) -> dict[tuple[bytes, str], int]:
        return {
            (partition.topic, address_name(partition.address)): partition.next_sequence - 1
            for partition in self.log.partitions()
            if partition.next_sequence
        }

    def metrics(self) -> dict[str, Any]:
        role = self.role
        positions = role.positions.values()
        return {
            **self._counts,
            "fetches_sent": role.fetches,
            "fetches_timed_out": role.timeouts,
            "partitions": len(positions),
            "partitions_refused": role.refused,
            "lag": sum(max(0, end - committed) for _, committed, end in positions),
            "serve_requests": len(self._requests),
            **self.endpoint.metrics(),
        }

    def on_run(self, run: Run) -> None:
        self._carry(self.role.receive_run(time.monotonic(), run))

    def on_command(self, command: Command) -> None:
        self._carry(self.role.receive(time.monotonic(), command))

    def on_subscription(self, prefix: bytes) -> None:
        self._carry(self.role.peer_subscribed(time.monotonic(), prefix))

    def tick(self, now: float) -> None:
        self._carry(self.role.tick(now))

    def lead(self, run: Run) -> None:
        """Publish what this process itself has appended and committed; from now on it is served from here."""
        now = time.monotonic()
        self.role.stored(now, run.topic, run.address, run.next)  # nobody waits for the ACK
        self.endpoint.publish(self, (run,))

    def close(self) -> None:
        """Leave the mesh. The log and its writer belong to the caller."""
        self.closed = True
        self.endpoint.detach(self)
        self._wake.set()

    def _carry(self, outputs: Iterable[Any]) -> None:
        to_publish = []
        for output in outputs:
            if isinstance(output, Append):
                self._append(output)
            elif isinstance(output, Begin):
                self._begins.add((output.topic, output.address))
            elif isinstance(output, Serve):
                if len(self._requests) < limits.SERVE_REQUESTS:
                    self._requests.append(output)
                    self._wake.set()
                else:
                    self.endpoint.discarded.add("serve-queue")
            else:
                to_publish.append(output)
        if to_publish:
            self.endpoint.publish(self, to_publish)

    def _append(self, append: Append) -> None:
        partition = self.log.partition(append.topic, append.address)

        def committed(error: Exception | None) -> None:
            now = time.monotonic()
            if self.closed:
                return
            if error is None:
                self._counts["records_in"] += len(append.contents)
                self._counts["bytes_in"] += sum(map(len, append.contents))
                end = append.first + len(append.contents)
                self._carry(self.role.stored(now, append.topic, append.address, end))
            else:
                self._carry(self.role.not_stored(now, append.topic, append.address))

        skip = (append.topic, append.address) in self._begins
        self._begins.discard((append.topic, append.address))
        self.writer.append(partition, append.first, append.contents, committed, skip=skip)

    def _serve(self) -> None:
        while not self.closed:
            if not self._requests:
                self._wake.clear()
                self._wake.wait()
                continue
            if self.endpoint.congested:  # by nodes of this process
                gevent.sleep(_PAUSE)
                continue
            request = self._requests.popleft()
            try:
                rest = self._serve_some(request)
            except Exception:
                # A damaged place in the log must not end the serving of all others.
                logger.exception("the store in %s cannot serve %s", self.log.path, request)
                self.endpoint.discarded.add("serve-error")
                rest = None
            if rest is not None:
                self._requests.append(rest)  # behind the others: a long catch-up does not starve them
            gevent.sleep(0)

    def _serve_some(self, request: Serve) -> Serve | None:
        partition = self.log.find(request.topic, request.address)
        if partition is None:
            return None
        first, contents = self._read(partition, request)
        if not contents:
            return None
        if first != request.first:
            gone = Trimmed(request.recipient, request.address, request.topic, first)
            self.endpoint.publish(self, (gone,))
            return None
        counts = self._counts
        counts["fetches_answered"] += 1
        counts["records_served"] += len(contents)
        counts["bytes_served"] += sum(map(len, contents))
        run = Run(request.recipient, request.address, request.topic, first, contents)
        self.endpoint.publish(self, (run,))
        served = first + len(contents)
        left = request.first + request.count - served
        return request._replace(first=served, count=left) if left > 0 else None

    def _read(self, partition: LogPartition, request: Serve) -> tuple[int, list[bytes]]:
        count = min(request.count, limits.SERVE_RECORDS)
        return self.log.read(partition, request.first, count=count, max_bytes=limits.SERVE_BYTES)
