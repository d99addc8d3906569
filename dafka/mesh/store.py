"""Store: keeps every partition it hears of, acknowledges what it has committed, serves what is fetched."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import gevent
import gevent.event

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
from dafka.hub.dropped import when_dropped
from dafka.hub.hub import Hub, get_hub
from dafka.hub.turns import next_turn
from dafka.log import Durability, Log, LogPartition, OnDamage
from dafka.log.repeating import bounded_logger
from dafka.mesh import limits
from dafka.mesh.address import TowerLike, address_name, check_address, check_topic, new_address, topic_name
from dafka.mesh.endpoint import Endpoint, EndpointOptions, Node, node_options
from dafka.mesh.watch import Watch
from dafka.protocol.commands import Claim, Command, End, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.claim import BATCHES, RAW
from dafka.roles.outputs import Append, Begin, Hold, Serve
from dafka.roles.producer import checksum_of
from dafka.roles.store import StoreRole

_COUNTED = ("records_in", "bytes_in", "records_served", "bytes_served", "fetches_answered")

_KINDS = {"raw": RAW, "batch": BATCHES}
_PAUSE = 0.001  # seconds until a congested endpoint is looked at again

logger = bounded_logger(__name__)

IDENTITY = "store"  # the table of the log that holds this store's address


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
    and ValueError for a setting that is none.
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
        by_topic = {
            check_topic(topic): check_retention(*bounds) for topic, bounds in (topic_retention or {}).items()
        }
        interval = check_interval(retention_check_interval)
        self._hub = get_hub()
        octets = None if address is None else check_address(address)
        options = node_options(self, tower, mesh)
        self._tower = tower  # one that nobody else has runs as long as this node
        self.path = os.fspath(path)

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

    def close(self) -> None:
        """Commit what has arrived, leave the mesh and close the folder."""
        self._not_dropped()
        self._hub.run(_close, self._node, self._cleaner)

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
    log = Log(path, durability=durability, on_damage=on_damage)
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
        self.role.know_stores(endpoint.stores)
        self._watch = Watch(f"the store in {log.path}", self.role)
        self._begins: set[tuple[bytes, bytes]] = set()  # partitions whose next append leaves a gap
        # Left to serve, by requester and partition: who asks again no longer wants what it asked before.
        self._requests: dict[tuple[type, bytes, bytes, bytes], Serve | End] = {}
        self._wake = gevent.event.Event()
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        endpoint.publish(self, self.role.start())
        endpoint.attach(self)
        self._server = hub.keep(self._serve)

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
            "partitions_unanswered": role.unanswered,
            "lag": sum(max(0, end - committed) for _, committed, end in positions),
            "serve_requests": len(self._requests),
            **self.endpoint.metrics(),
        }

    def on_run(self, run: Run) -> Run | None:
        return self._carry(self.role.receive_run(time.monotonic(), run))

    def on_command(self, command: Command) -> None:
        unread = type(command) is Claim and self.endpoint.is_behind(self)
        self._carry(self.role.receive(time.monotonic(), command, unread=unread))

    def on_subscription(self, prefix: bytes) -> None:
        self._carry(self.role.peer_subscribed(time.monotonic(), prefix))

    def tick(self, now: float) -> None:
        self._carry(self.role.tick(now))
        self.endpoint.resume(self)
        self._watch.tick(now)

    def lead(self, run: Run) -> None:
        """Publish what this process itself has appended and committed; from now on it is served from here."""
        now = time.monotonic()
        self.role.lead(run.topic, run.address)
        self.role.stored(now, run.topic, run.address, run.next)  # nobody waits for the ACK
        self.endpoint.publish(self, (run,))

    def trimmed(self, partition: LogPartition) -> None:
        """The beginning of a partition has moved: who asks for what lies before it is told."""
        self.role.trimmed(partition.topic, partition.address, partition.first_sequence)

    def close(self) -> None:
        """Leave the mesh. The log and its writer belong to the caller."""
        self.closed = True
        self.endpoint.detach(self)
        self._wake.set()

    def _carry(self, outputs: Iterable[Any]) -> Run | None:
        """Carry out what the role says; what it has no room for."""
        to_publish = []
        rest = None
        for output in outputs:
            if isinstance(output, Append):
                self._append(output)
            elif isinstance(output, Begin):
                self._begin(output)
            elif isinstance(output, Hold):
                rest = output.run
            elif isinstance(output, (Serve, End)):
                key = (type(output), output.recipient, output.topic, output.address)
                if key in self._requests or len(self._requests) < limits.SERVE_REQUESTS:
                    self._requests[key] = output
                    self._wake.set()
                else:
                    self.endpoint.discarded.add("serve-queue")
            else:
                to_publish.append(output)
        if to_publish:
            self.endpoint.publish(self, to_publish)
        return rest

    def _begin(self, begin: Begin) -> None:
        key = (begin.topic, begin.address)
        partition = self.log.find(*key)
        if key not in self._begins and partition is not None and partition.next_sequence:
            logger.warning(
                "the store in %s: topic %r partition %s: nobody has records %d to %d any more",
                self.log.path,
                topic_name(begin.topic),
                address_name(begin.address),
                partition.next_sequence,
                begin.first - 1,
            )
        self._begins.add(key)

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
            self.endpoint.resume(self)

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
            key = next(iter(self._requests))
            request = self._requests.pop(key)
            try:
                rest = self._answer(request)
            except Exception:
                # A damaged place in the log must not end the serving of all others.
                logger.exception("the store in %s cannot serve %s", self.log.path, request)
                self.endpoint.discarded.add("serve-error")
                rest = None
            if rest is not None:
                # Behind the others: a long catch-up does not starve them.
                self._requests.setdefault(key, rest)
            next_turn()

    def _answer(self, request: Serve | End) -> Serve | None:
        """Answer as much of a request as goes into one turn; the rest of it."""
        if isinstance(request, Serve):
            return self._serve_some(request)
        self._tell_end(request)
        return None

    def _serve_some(self, request: Serve) -> Serve | None:
        partition = self.log.find(request.topic, request.address)
        if partition is None:
            return None
        first, contents = self._read(partition, request)
        if not contents:
            first = partition.next_sequence  # all from there on is damaged and passed over
            if first <= request.first:
                return None
        if first != request.first:
            gone = Trimmed(request.recipient, request.address, request.topic, first, self.role.address)
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
        if left > 0:
            return request._replace(first=served, count=left)
        told = self.role.served(request.recipient, request.topic, request.address, served)
        self.endpoint.publish(self, told)
        return None

    def _tell_end(self, end: End) -> None:
        partition = self.log.find(end.topic, end.address)
        if partition is not None:
            first, contents = end.first, list[bytes]()
            if end.count:
                first, contents = self._read(partition, end)
            if not contents:  # retention may have left nothing
                first = max(first, partition.first_sequence)
            end = end._replace(
                sequence=max(end.sequence, partition.next_sequence),
                kind=_KINDS.get(partition.kind or "", 0),
                offset=partition.next_offset,
                first=first,
                count=len(contents),
                checksum=checksum_of(contents),
            )
        self.endpoint.publish(self, (end,))

    def _read(self, partition: LogPartition, request: Serve | End) -> tuple[int, list[bytes]]:
        count = min(request.count, limits.SERVE_RECORDS)
        return self.log.read(partition, request.first, count=count, max_bytes=limits.SERVE_BYTES)
