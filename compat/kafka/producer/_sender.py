"""The green thread of the hub that carries a producer's batches to the broker.

The sender collects what may be sent from the accumulator's queues (sealed batches; open ones that have
lingered for ``linger_ms`` or are being flushed), hands it to ``broker.produce`` in one call, and publishes
the outcome. One call is under way at a time, so a partition's order survives retries; meanwhile further
records gather, which is what makes batches grow under load.

The sender belongs to the hub, not to the producer: a producer that is garbage collected without
``close`` still gets its records sent.
"""

from __future__ import annotations

import atexit
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from kafka.errors import DuplicateSequenceNumberError, KafkaTimeoutError, UnknownTopicOrPartitionError

from compat.kafka._client import Client
from compat.kafka._metrics import ProducerMetrics
from compat.kafka.producer._accumulator import RecordAccumulator
from compat.kafka.producer._batches import Batch, PartitionQueue
from compat.kafka.producer._identity import LATER, SEQUENCE_ERRORS, Identity, is_refusal
from compat.kafka.producer._splitting import can_split, split
from dafka.broker.remote.trouble import Trouble
from dafka.hub.turns import Pace

log = logging.getLogger(__name__)

ROUND_BYTES = 4 * 1024 * 1024  # octets after which no further batch joins a call of broker.produce
_QUEUES = 16  # looked at before others may have their turn: a millisecond
SHORTEST_AGE = 0.1  # seconds between looks at the metadata, whatever is configured: the hub has more to do


class Sender:
    """Sends what a producer's accumulator holds. Hub side, but for the constructor."""

    def __init__(
        self,
        client: Client,
        accumulator: RecordAccumulator,
        config: dict[str, Any],
        metrics: ProducerMetrics | None = None,
        identity: Identity | None = None,
    ) -> None:
        """``identity`` is that of an idempotent producer."""
        self._client = client
        self._accumulator = accumulator
        self._metrics = metrics
        self._identity = identity
        self._acks = config["acks"]
        self._in_flight = config["max_in_flight_requests_per_connection"]
        self._linger = config["linger_ms"] / 1000
        self._retries = config["retries"]
        self._retry_backoff = config["retry_backoff_ms"] / 1000
        self._delivery_timeout = config["delivery_timeout_ms"] / 1000
        self._metadata_max_age = max(config["metadata_max_age_ms"] / 1000, SHORTEST_AGE)
        self._pending: dict[PartitionQueue, None] = {}
        self._no_metadata = Trouble(log)
        self.records_sent = 0
        self.records_failed = 0
        self.bytes_sent = 0
        self.batches_sent = 0
        self.at_exit: Callable[[], None] | None = None  # registered with atexit until the sender ends
        accumulator.serve(self._run)

    def _run(self) -> None:
        accumulator = self._accumulator
        next_refresh = monotonic() + self._metadata_max_age
        while True:
            # Before the queues are looked at: a thread that appends later wakes the sender.
            accumulator.lie_down()
            work, due = self._collect()
            if work:
                accumulator.get_up()
                self._produce(work)
                continue
            if accumulator.closing and not self._pending and accumulator.close_queues():
                self._client.close()
                if self.at_exit is not None:
                    atexit.unregister(self.at_exit)
                return
            now = monotonic()
            if now >= next_refresh:
                next_refresh = now + self._metadata_max_age
                self._try_to_refresh(list(accumulator.topics.known))
                continue
            accumulator.sleep(min(due, next_refresh) - now)

    def _collect(self) -> tuple[dict[PartitionQueue, list[Batch]], float]:
        """The batches that may be sent now, by queue, and when to look again if there are none.

        Queues have one batch each in turn, so that none waits for another one's many, and requests to a
        broker in another process, which have one batch of each partition, are few.
        """
        accumulator, pending = self._accumulator, self._pending
        pending.update(dict.fromkeys(accumulator.take_ready()))
        at_once = accumulator.urgent or self._linger <= 0
        now = monotonic()
        due = now + 3600.0
        work: dict[PartitionQueue, list[Batch]] = {}
        size = 0
        turns = deque(pending)
        for queue in Pace().over(_each(turns), _QUEUES):
            if size >= ROUND_BYTES:
                for served in work:  # the others are the first ones of the next call
                    pending[served] = pending.pop(served)
                break
            if queue.retry_at > now:
                due = min(due, queue.retry_at)
                continue
            batches = work.get(queue)
            if batches and self._ends_call(queue, batches[0]):
                continue
            batch = queue.take_sealed()
            if batch is None and not queue.sealed and queue.open.records:
                lingers_until = queue.open.created + self._linger
                if at_once or lingers_until <= now:
                    sealed = queue.seal_open()
                    if sealed is not None:
                        accumulator.pool.take(sealed)
                        batch = queue.take_sealed()
                else:
                    due = min(due, lingers_until)
            if batch is None:
                if queue.sealed:  # it is being encoded
                    due = min(due, queue.sealed[0].encoding_until)
                elif not batches and queue.empty:
                    del pending[queue]
                    if not queue.empty:  # a record came in between
                        pending[queue] = None
                continue
            turns.append(queue)
            queue.singly = max(0, queue.singly - 1)
            rejection = None if self._identity is None else self._identity.rejection(batch)
            if batch.error is not None:
                self._give_up(batch, batch.error)
            elif rejection is not None:
                self._resolve(batch, -1, -1, rejection)
            elif now - batch.created > self._delivery_timeout:
                self._give_up(batch, self._expired(batch, now))
            else:
                work.setdefault(queue, []).append(batch)
                size += batch.size
        return work, due

    def _ends_call(self, queue: PartitionQueue, first: Batch) -> bool:
        """Whether nothing of a queue may join a call that begins with its batch ``first``.

        The broker recognizes the last appends of an idempotent producer. So batches that were sent before are
        repeated as they were, without further ones, or a series of lost answers would exceed that memory.
        """
        if queue.singly:
            return True
        again = queue.sealed and queue.sealed[0].attempts
        return self._identity is not None and first.attempts > 0 and not again

    def _expired(self, batch: Batch, now: float) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"Batch for {batch.queue.partition} containing {batch.count} record(s) expired: "
            f"{now - batch.created:.1f} seconds have passed since batch creation"
        )

    def _prepare(self, work: dict[PartitionQueue, list[Batch]], identity: Identity) -> bool:
        """Make batches those of an idempotent producer; whether they may be sent."""
        try:
            failure = identity.prepare(work)
        except Exception as error:
            failure = error
        for queue, batches in Pace().over(work.items(), _QUEUES):
            if failure is None:
                identity.stamp(queue, batches)
            else:
                self._fail(queue, batches, failure, sent=False)
        return failure is None

    def _produce(self, work: dict[PartitionQueue, list[Batch]]) -> None:
        options: dict[str, Any] = {"acks": self._acks, "in_flight": self._in_flight, "trusted": True}
        if self._identity is not None:
            if not self._prepare(work, self._identity):
                return
            if self._identity.transactional_id is not None:
                options["transactional_id"] = self._identity.transactional_id
                options["writes"] = self._identity.writes
        requests = {
            _key(queue): [batch.content for batch in batches if batch.content is not None]
            for queue, batches in Pace().over(work.items(), _QUEUES)
        }
        metrics = self._metrics
        began = 0.0 if metrics is None else metrics.began()
        try:
            answers = self._client.broker.produce(requests, **options)
        except Exception as error:
            if not isinstance(error, LATER):
                log.error("producing to %s failed: %r", sorted(requests), error)
            for queue, batches in work.items():
                self._fail(queue, batches, error)
            return
        finally:
            if metrics is not None:
                pieces = Pace().over(work.items(), _QUEUES)
                metrics.answered(began, ((queue.partition.topic, batches) for queue, batches in pieces))
        unknown = []
        for queue, batches in Pace().over(work.items(), _QUEUES):
            answer = answers.get(_key(queue))
            if answer is not None and answer.error is not None:
                failure = answer.error
                refusal = failure(*([answer.detail] if answer.detail else []))
                if failure.invalid_metadata or failure is UnknownTopicOrPartitionError:
                    unknown.append(queue.partition.topic)
                # A broker in another process takes batches one at a time, up to the first it refuses.
                for batch, offset in zip(batches, answer.base_offsets, strict=False):
                    self._resolve(batch, offset, answer.timestamp, None)
                refused = batches[len(answer.base_offsets) :]
                for batch in refused:
                    batch.record_errors = dict(answer.record_errors) if len(refused) == 1 else {}
                self._fail(queue, refused, refusal)
            elif answer is None or self._acks == 0:
                for batch in batches:
                    self._resolve(batch, -1, -1, None)
            else:
                for batch, offset in zip(batches, answer.base_offsets, strict=True):
                    self._resolve(batch, offset, answer.timestamp, None)
        if unknown:
            self._try_to_refresh(unknown)

    def _fail(self, queue: PartitionQueue, batches: list[Batch], error: Exception, sent: bool = True) -> None:
        """Send again what may succeed later, or in another way, and fail the rest."""
        now = monotonic()
        identity = self._identity
        first_time = sent and not any(batch.attempts for batch in batches)
        if isinstance(error, DuplicateSequenceNumberError):
            for batch in batches:  # they are stored, at unknown offsets
                self._resolve(batch, -1, -1, None)
            return
        out_of_order = first_time and isinstance(error, SEQUENCE_ERRORS)
        if identity is not None and out_of_order and identity.replace(queue, batches):
            for batch in batches:
                batch.attempts = 1  # the next time it fails them
            self._send_again(queue, batches, now, error)
            return
        if identity is not None and first_time and is_refusal(error):
            identity.take_back(batches)
        if sent and is_refusal(error) and len(batches) > 1:
            queue.singly = len(batches)  # not all of them are to blame
            queue.put_back(batches, now)
            return
        again: list[Batch] = []
        for batch in batches:
            batch.attempts += sent
            expired = now + self._retry_backoff - batch.created > self._delivery_timeout
            if can_split(batch, error) and not expired:
                again += split(batch)
            elif isinstance(error, LATER) and batch.attempts <= self._retries and not expired:
                again.append(batch)
            else:
                self._give_up(batch, error)
        if again:
            self._send_again(queue, again, now + self._retry_backoff, error)

    def _send_again(self, queue: PartitionQueue, batches: list[Batch], at: float, error: Exception) -> None:
        level = logging.WARNING if any(batch.attempts <= 1 for batch in batches) else logging.DEBUG
        log.log(level, "sending %d batches to %s again after %r", len(batches), queue.partition, error)
        if self._metrics is not None:
            self._metrics.retried(queue.partition.topic, sum(batch.count for batch in batches))
        queue.put_back(batches, at)

    def _give_up(self, batch: Batch, error: BaseException) -> None:
        if self._identity is not None and isinstance(error, Exception):
            self._identity.failed(batch, error)
        self._resolve(batch, -1, -1, error)

    def _resolve(self, batch: Batch, offset: int, timestamp: int, error: BaseException | None) -> None:
        if error is None:
            self.records_sent += batch.count
            self.bytes_sent += batch.size
            self.batches_sent += 1
        else:
            self.records_failed += batch.count
            if self._metrics is not None:
                self._metrics.failed(batch.queue.partition.topic, batch.count)
        batch.resolve(offset, timestamp, error)

    def refresh(self, names: Iterable[str], create: bool = False) -> Any:
        """Ask the broker about topics. In the hub; :meth:`Client.call` brings other threads here."""
        wanted = list(names)
        metadata = self._client.broker.metadata(wanted, create)
        self._accumulator.topics.update_from(metadata, wanted)
        if self._metrics is not None:
            self._metrics.refreshed()
        return metadata

    def _try_to_refresh(self, names: Iterable[str]) -> None:
        try:
            self.refresh(names)
        except Exception as error:  # the next produce will tell the program
            self._no_metadata.again("no metadata of %s: %r", names, error)
        else:
            self._no_metadata.over()


def _each(turns: deque[PartitionQueue]) -> Iterator[PartitionQueue]:
    """Takes the first one until there are none; meanwhile others may be added."""
    while turns:
        yield turns.popleft()


def _key(queue: PartitionQueue) -> tuple[str, int]:
    topic, number = queue.partition
    return topic, number
