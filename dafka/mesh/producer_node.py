"""The hub's side of a producer: a producer role on an endpoint, and the queue from the threads that send.

Records that wait for the hub are bounded, and so are those that the role keeps until they are acknowledged.
At either bound the sending threads wait: this is the back pressure of the mesh.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from typing import Any, NamedTuple

from dafka.hub.changes import Changes
from dafka.hub.hub import Hub, Waiter
from dafka.mesh import limits
from dafka.mesh.address import topic_name
from dafka.mesh.endpoint import Endpoint, EndpointOptions
from dafka.mesh.lone import LoneRecords, Sender
from dafka.protocol.commands import Command, Fetch
from dafka.protocol.errors import DafkaError
from dafka.protocol.framing import Framing
from dafka.protocol.runs import Run
from dafka.roles.claim import BATCHES, RAW, Position
from dafka.roles.producer import ProducerRole

log = logging.getLogger(__name__)

_CLAIM_TICK = 0.25  # seconds between looks at the claim to a partition, Limits.claim_interval


class ProducerClosedError(DafkaError):
    """The producer has been closed."""


class AddressInUseError(DafkaError, ValueError):
    """Another producer uses the address; a partition has only one producer."""


class MessageKindError(DafkaError, ValueError):
    """A raw record for a producer of record batches, or the reverse: a partition has one kind."""


class RecordTooLargeError(DafkaError, ValueError):
    """A record larger than nodes accept."""


class SendTimeoutError(DafkaError, TimeoutError):
    """There was no room for a record in time, because acknowledgements do not keep up."""


class PartitionEndError(SendTimeoutError):
    """No node has told in time where the partition ends that this producer continues."""


class UnacknowledgedError(DafkaError, TimeoutError):
    """Records that the configured number of stores has not acknowledged in time.

    ``topic``, ``partition`` and the offsets ``first`` to ``last`` (both included) say which.
    """

    def __init__(self, topic: str, partition: str, first: int, last: int, timeout: float | None) -> None:
        self.topic, self.partition, self.first, self.last = topic, partition, first, last
        count = last - first + 1
        which = (
            f"1 record of topic {topic!r}, partition {partition}, offset {first}, was"
            if count == 1
            else f"{count} records of topic {topic!r}, partition {partition}, offsets {first} to {last}, were"
        )
        super().__init__(f"{which} not acknowledged by enough stores within {timeout} s")


class Finding(NamedTuple):
    """How long a producer with a given address asks for the end of its partition.

    ``timeout``: seconds; ``begin``: whether to begin a new partition if no node has answered by then.
    """

    timeout: float
    begin: bool


NOT_FINDING = Finding(0.0, False)


class ProducerNode(Sender):
    """A producer of raw records. Hub side, except for what comments assign to the sending threads."""

    kind = RAW

    def __init__(
        self,
        hub: Hub,
        options: EndpointOptions,
        role: ProducerRole,
        head_interval: float,
        finding: Finding = NOT_FINDING,
    ) -> None:
        self.tick_interval = head_interval / 2
        if role.claim is not None:
            self.hello_ids = b"C"
            self.tick_interval = min(self.tick_interval, _CLAIM_TICK)
        self.pending: deque[Any] = deque()  # filled by the sending threads
        self.next = 0  # the sequence of the next record; written by the sending threads as well
        self.sent_bytes = 0  # written by the sending threads only, under their lock
        self.drained_bytes = 0  # written by the hub only
        self.signalled = False
        self.asking = role.claim is not None  # where the partition ends
        self.full = self.asking
        self.failed: DafkaError | None = None  # why nothing can be sent any more
        self.closed = False
        self.waiting: dict[Waiter, None] = {}
        self._hub = hub
        self._role = role
        self._answered = 0
        self._finding = finding
        self._asking_since = time.monotonic()
        self._rivals: set[bytes] = set()  # that were logged
        self._progress = Changes()
        self.lone = LoneRecords(hub, self, role.address, role.topic)
        self._sends_lone = self.kind == RAW and options.framing is Framing.LIBDAFKA
        self.endpoint = Endpoint.shared(hub, options)
        role.know_stores(self.endpoint.stores)
        self.listened_topic = role.topic
        self.endpoint.publish(self, role.start())
        self.endpoint.attach(self)

    # -- from any thread ------------------------------------------------------------------------

    def is_full(self) -> bool:
        """Whether the next record has to wait."""
        return (
            self.asking
            or self.failed is not None
            or len(self.pending) >= limits.PENDING_RECORDS
            or self.sent_bytes - self.drained_bytes >= limits.PENDING_BYTES
        )

    def wait_for_room(self, timeout: float | None) -> None:
        """Wait until there is room for a record or the node is closed; raises :class:`SendTimeoutError`."""
        now = time.monotonic()
        deadline = None if timeout is None else now + timeout
        answer_by = now + self._finding.timeout
        while self.is_full() and not self.closed:
            self._hub.check()
            if self.failed is not None:
                raise self.failed
            waiter = Waiter()
            self.waiting[waiter] = None
            self._hub.post(self.drain)
            by = deadline
            if self.asking and not self._finding.begin:
                by = answer_by if deadline is None else min(answer_by, deadline)
            left = None if by is None else by - time.monotonic()
            done = waiter.wait(left) if left is None or left > 0 else False
            self.waiting.pop(waiter, None)
            waiter.close()
            if not done and self.asking:
                raise self._unknown_end(min(self._finding.timeout, timeout or math.inf))
            if not done and self.is_full():
                raise SendTimeoutError(
                    f"no room for a record of topic {topic_name(self._role.topic)!r} within {timeout} s: "
                    f"{self.unacknowledged()} records wait for acknowledgement"
                )

    def signal(self) -> None:
        """Have the hub publish the records that wait."""
        if not self.signalled:
            self.signalled = True
            try:
                self._hub.post(self.drain)
            except BaseException:  # interrupted, maybe before it was posted
                self.signalled = False
                raise

    def unacknowledged(self) -> int:
        """Records handed over that the configured number of stores has not acknowledged."""
        return self._role.unacknowledged + self.lone.waiting + len(self.pending)

    def cut_off(self) -> None:
        """In the child of a fork there is no hub: with the flag down, a sender posts, and is told so."""
        self.lone.stopped = True
        self.signalled = self.full = self.asking = False
        self.pending.clear()

    # -- in the hub -----------------------------------------------------------------------------

    def drain(self) -> None:
        """Publish waiting records, a run at a time, while the role has room."""
        try:
            self._drain()
        except Exception as error:
            log.exception("the producer %r failed on something unexpected", self._role.address)
            self.fail(ProducerClosedError(f"the producer failed on something unexpected: {error!r}"))

    def fail(self, error: DafkaError) -> None:
        """Send nothing more; waiting and later calls of send and flush raise the error."""
        self.failed = self.failed or error
        self.full = True
        self._progress.tell()
        self._wake()

    def unstored(self) -> int:
        """Records handed over that some connected store has not acknowledged."""
        role = self._settled()
        return role.unstored + (len(self.pending) if self.endpoint.stores.present else 0)

    def _drain(self) -> None:
        self.signalled = False
        pending, lone = self.pending, self.lone.revoke()
        role = self._settled()
        if self.asking or self.failed is not None:
            return
        retains_enough = self._retains_enough()
        if retains_enough and not role.min_stores:
            role.forget(role.retained_bytes // 2)
            if self._retains_enough():
                role.forget(-1)  # a million records without any content
            retains_enough = False
        if pending and not self.closed and not retains_enough:
            if self.endpoint.congested:
                self.endpoint.when_clear(self.drain)
            elif contents := self._next_contents():
                lone = len(contents) == 1
                self.endpoint.publish(self, (role.publish(time.monotonic(), contents),))
                self.sleeps_until = role.next_tick
                self._progressed()
                if pending:
                    self.signal()
        self.full = self.is_full()
        if not self.full:
            self._wake()
            if lone and self._sends_lone and not self._retains_enough():
                self.lone.allow()

    def _settled(self) -> ProducerRole:
        """The role, which knows of every record that has been sent."""
        content = self.lone.take()
        if content is not None:
            self.drained_bytes += len(content)
            self._role.publish(time.monotonic(), [content])
            self.sleeps_until = self._role.next_tick
            self._progressed()
        return self._role

    def _retains_enough(self) -> bool:
        role = self._role
        return (
            role.retained_bytes >= limits.RETAINED_BYTES
            or role.next_sequence - role.first_retained >= limits.RETAINED_RECORDS
        )

    def _next_contents(self) -> list[bytes]:
        """The contents of the next run, bounded in number and (but for a single one) in size."""
        pending = self.pending
        if len(pending) == 1:  # a lone record does not wait for what many need
            content = pending.popleft()
            self.drained_bytes += len(content)
            return [content]
        contents = [pending.popleft() for _ in range(min(len(pending), limits.RUN_RECORDS))]
        size = sum(map(len, contents))
        while size > limits.RUN_BYTES and len(contents) > 1:
            size -= len(contents[-1])
            pending.appendleft(contents.pop())
        self.drained_bytes += size
        return contents

    def _progressed(self) -> None:
        """Something was published or acknowledged."""
        self._progress.tell()

    def _wake(self) -> None:
        while self.waiting:
            try:
                waiter, _ = self.waiting.popitem()
            except KeyError:  # its thread has just given up
                return
            waiter.set()

    @property
    def known_as(self) -> bytes:
        return self._role.address

    def metrics(self) -> dict[str, Any]:
        role = self._settled()
        return {
            "records_out": role.next_sequence - role.first_sequence,
            "bytes_out": self.drained_bytes,
            "fetches_answered": self._answered,
            "unacknowledged": self.unacknowledged(),
            "pending_records": len(self.pending),
            "pending_bytes": self.sent_bytes - self.drained_bytes,
            "retained_records": role.next_sequence - role.first_retained,
            "retained_bytes": role.retained_bytes,
            **self.endpoint.metrics(),
        }

    def on_command(self, command: Command) -> None:
        role = self._settled()
        undisputed = not role.disputed
        outputs = role.receive(time.monotonic(), command)
        if undisputed and role.disputed:
            log.warning(
                "a store has records of topic %r, partition %s, up to %d that are not this producer's, which "
                "has sent %d to %d: the address was another producer's before, and that store does not store "
                "what this one sends",
                topic_name(role.topic),
                role.address.decode(),
                role.disputed - 1,
                role.first_sequence,
                role.next_sequence - 1,
            )
        if type(command) is Fetch and outputs:
            self._answered += 1
        self.endpoint.publish(self, outputs)
        self._look_at_claim(time.monotonic())
        self._progressed()
        if self.pending:
            self.signal()

    def on_run(self, run: Run) -> None:
        self.endpoint.publish(self, self._settled().receive_run(time.monotonic(), run))

    def on_subscription(self, prefix: bytes) -> None:
        self.endpoint.publish(self, self._settled().peer_subscribed(time.monotonic(), prefix))

    def roused(self, now: float) -> None:
        self._settled().listened_to(now)
        self.sleeps_until = self._role.next_tick

    def tick(self, now: float) -> None:
        outputs = self._settled().tick(now)
        if outputs:
            self.endpoint.publish(self, outputs)
        self._look_at_claim(now)
        self.sleeps_until = self._role.next_tick

    def _look_at_claim(self, now: float) -> None:
        """Begin when the end of the partition is known, and give way to another producer of it."""
        claim = self._role.claim
        if claim is None or self.failed is not None:
            return
        if claim.rival:
            self.fail(
                AddressInUseError(
                    f"{self._which}: the producer {claim.rival.decode('ascii', 'replace')} has this "
                    "address and is running; a partition has one producer. Stop one of them, or give it "
                    "another address"
                )
            )
            log.error("%s", self.failed)
        elif self.asking:
            overdue = self._finding.begin and now - self._asking_since > self._finding.timeout
            if claim.found is None and overdue:
                unknown = self._unknown_end(self._finding.timeout)
                log.warning("%s; this one begins at %d", unknown, claim.highest.sequence)
            position = claim.found or (claim.highest if overdue else None)
            if position is not None:
                self._begin(now, position)
        for rival in claim.rivals.keys() - self._rivals:
            self._rivals.add(rival)
            log.warning("%s: there is another producer with this address, %r", self._which, rival)

    @property
    def _which(self) -> str:
        return f"topic {topic_name(self._role.topic)!r}, partition {self._role.address.decode()}"

    def _begin(self, now: float, position: Position) -> None:
        if not self._takes(position):
            return
        self._role.begin(now, position)
        self._number_from(position)
        self.asking = self.full = False
        self._wake()

    def _number_from(self, position: Position) -> None:
        """Begin at these numbers. All sending threads are waiting."""
        self.next = position.sequence

    def _takes(self, position: Position) -> bool:
        """Whether the partition holds messages of this kind; otherwise the producer fails."""
        if position.kind and position.kind != self.kind:
            there, here = ("raw records", "record batches")[:: 1 if position.kind == RAW else -1]
            self.fail(
                MessageKindError(
                    f"{self._which} holds {there}: this producer sends {here} "
                    f"(batch={self.kind == BATCHES}) and cannot go on with it"
                )
            )
        return self.failed is None

    def _unknown_end(self, timeout: float) -> PartitionEndError:
        claim = self._role.claim
        answered = 0 if claim is None else claim.answered
        wanted = max(1, self._role.min_stores)
        return PartitionEndError(
            f"{self._which}: {answered} stores of {wanted} have said within {timeout:g} s where it ends. "
            "Start those that have it, or give end_unknown='begin' if nobody has it"
        )

    def flush(self, end: int, timeout: float | None) -> None:
        """Wait as a green thread until everything below sequence ``end`` is acknowledged."""
        deadline = None if timeout is None else time.monotonic() + timeout
        role = self._role
        self.signal()  # a sender may have been interrupted before it could
        while role.first_unacknowledged < end:
            if self.failed is not None:
                raise self.failed
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                first, last = self._offsets(role.first_unacknowledged, end)
                raise UnacknowledgedError(topic_name(role.topic), role.address.decode(), first, last, timeout)
            self._progress.wait(left)

    def _offsets(self, first: int, end: int) -> tuple[int, int]:
        """The first and the last offset of the messages from ``first`` up to, not including, ``end``."""
        return first, end - 1

    def close(self) -> None:
        if self.closed:
            return
        self.closed = self.lone.stopped = True
        role = self._settled()
        if self.failed is None:
            self.endpoint.publish(self, role.leave())
        self.endpoint.detach(self)
        self._wake()
