"""A store on an endpoint and a log: carries out what its role decides, and answers some of it each turn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import gevent
import gevent.event

from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, next_turn
from dafka.log import Log, LogPartition
from dafka.log.repeating import bounded_logger
from dafka.mesh import limits
from dafka.mesh.address import address_name, topic_name
from dafka.mesh.endpoint import Endpoint, Node
from dafka.mesh.watch import Watch
from dafka.protocol.commands import Claim, Command, End, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.claim import BATCHES, RAW
from dafka.roles.outputs import Append, Begin, Hold, Serve, TellHeads
from dafka.roles.producer import checksum_of
from dafka.roles.store import StoreRole

_COUNTED = ("records_in", "bytes_in", "records_served", "bytes_served", "fetches_answered")

_KINDS = {"raw": RAW, "batch": BATCHES}
_PAUSE = 0.001  # seconds until a congested endpoint is looked at again

logger = bounded_logger(__name__)


class StoreNode(Node):
    """A store role on an endpoint and a log, from :meth:`begin` on; hub side. The broker uses it with its own
    log and writer."""

    hello_ids = b"LG"

    def __init__(self, hub: Hub, endpoint: Endpoint, log: Log, writer: Writer, address: bytes) -> None:
        self.log = log
        self.writer = writer
        self.closed = False
        self.endpoint = endpoint
        self.role = StoreRole(address)
        self.role.know_stores(endpoint.stores)
        self._watch = Watch(f"the store in {log.path}", self.role)
        self._begins: set[tuple[bytes, bytes]] = set()  # partitions whose next append leaves a gap
        # Left to serve, by requester and partition: a newer request replaces the pending one.
        self._requests: dict[tuple[type, bytes, bytes, bytes], Serve | End | TellHeads] = {}
        self._wake = gevent.event.Event()
        self._counts: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
        self._hub = hub

    def begin(self) -> None:
        """Learn what the log has, and appear on the mesh. Waits as a green thread.

        Commits, trims and deletions made meanwhile count: the node is to be told of them from now on.
        """
        for partition in Pace().over(self.log.each_partition()):
            if not partition.dropped:
                self.learn(partition)
        self.endpoint.publish(self, self.role.start())
        self.endpoint.attach(self)
        self._hub.keep(self._serve)

    def learn(self, partition: LogPartition) -> None:
        """The log has this partition."""
        first, following = partition.first_sequence, partition.next_sequence
        self.role.know(partition.topic, partition.address, first, following)

    def heads(self) -> dict[tuple[bytes, str], int]:
        return {
            (partition.topic, address_name(partition.address)): partition.next_sequence - 1
            for partition in Pace().over(self.log.each_partition())
            if partition.next_sequence
        }

    @property
    def known_as(self) -> bytes:
        return self.role.address

    def metrics(self) -> dict[str, Any]:
        """The metrics; waits as a green thread if there are very many partitions."""
        role = self.role
        lag = sum(Pace().over(role.lags()))
        return {
            **self._counts,
            "fetches_sent": role.fetches,
            "fetches_timed_out": role.timeouts,
            "partitions": role.partitions,
            "partitions_refused": role.refused,
            "partitions_unanswered": role.unanswered,
            "lag": lag,
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
        for outputs in Pace().over(self.role.ticking(now), every=1):
            if self.closed:
                return
            self._carry(outputs)
        self.endpoint.resume(self)
        self._watch.tick(now)

    def lead(self, run: Run) -> None:
        """Publish what this process itself has appended and committed; from now on it is served from here."""
        now = time.monotonic()
        self.role.lead(run.topic, run.address)
        self.role.stored(now, run.topic, run.address, run.next)  # nobody waits for the ACK
        self.endpoint.publish(self, (run,))

    def trimmed(self, partition: LogPartition) -> None:
        """The beginning of a partition has moved: consumers that ask for earlier records are told."""
        self.role.trimmed(partition.topic, partition.address, partition.first_sequence)

    def close(self) -> None:
        """Leave the mesh. The log and its writer belong to the caller."""
        self.closed = True
        self.endpoint.detach(self)
        self._wake.set()

    def _carry(self, outputs: Iterable[Any]) -> Run | None:
        """Carry out the outputs of the role. Returns the records for which it has no room."""
        to_publish = []
        rest = None
        for output in outputs:
            if isinstance(output, Append):
                self._append(output)
            elif isinstance(output, Begin):
                self._begin(output)
            elif isinstance(output, Hold):
                rest = output.run
            elif isinstance(output, (Serve, End, TellHeads)):
                address = b"" if isinstance(output, TellHeads) else output.address
                key = (type(output), output.recipient, output.topic, address)
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
            end = append.first + len(append.contents)
            if error is None:
                self._counts["records_in"] += len(append.contents)
                self._counts["bytes_in"] += sum(map(len, append.contents))
                self._carry(self.role.stored(now, append.topic, append.address, end))
            else:
                self._carry(self.role.not_stored(now, append.topic, append.address, end))
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

    def _answer(self, request: Serve | End | TellHeads) -> Serve | TellHeads | None:
        """Answer as much of a request as goes into one turn; the rest of it."""
        if isinstance(request, Serve):
            return self._serve_some(request)
        if isinstance(request, TellHeads):
            heads = list(islice(request.heads, limits.HEADS_AT_ONCE))
            self.endpoint.publish(self, heads)
            return request if heads else None
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
