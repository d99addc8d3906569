"""``ShareConsumer``: a member of a share group, on a broker in this process, or over TCP.

It runs in the caller's thread and is not thread safe; only ``close`` and ``wakeup`` may come from another
one. Heartbeats and requests are the hub's (:mod:`~compat.kafka.share._member`).

Ctrl-C is noticed after calls. So what a method hands out is noted as delivered by its last lines, which call
nothing: in implicit mode a record would be accepted otherwise that the program has never seen.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.structs import TopicPartition
from kafka.util import ensure_valid_topic_name

from compat.kafka._calls import GRACE, SLICE, Calls
from compat.kafka._client import Client, cut_off_in_child
from compat.kafka._times import timeout_of
from compat.kafka.consumer._arguments import check_share_poll
from compat.kafka.share._acknowledgements import (
    AcknowledgementCallback,
    Acknowledgements,
    Records,
    by_partition,
    exception_of,
    place,
    split,
)
from compat.kafka.share._config import DEFAULTS, EXPLICIT, IMPLICIT, RECORD_LIMIT, limits_of, read_config
from compat.kafka.share._member import Request, ShareMember
from compat.kafka.share._metrics import share_metrics
from compat.kafka.share._records import Reader, Taken, deserializer_of
from dafka.broker.interface.share import AcknowledgeType
from dafka.broker.remote.limits import in_words

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger(__name__)

CLOSED = "This consumer has already been closed."


class ShareConsumer:
    """Reads records of topics as a member of a share group, which delivers each of them to one member.

    ::

        with ShareConsumer("jobs", group_id="workers", bootstrap_servers=servers) as consumer:
            for record in consumer:
                work(record)                # accepted when the next records are asked for

    Configuration keys are kafka-python's (``group_id`` is required), and Kafka's
    ``share_acknowledgement_mode`` ("implicit" or "explicit") and ``share_acquire_mode`` ("batch_optimized" or
    "record_limit": no more than ``max_poll_records``). Where a group begins is a setting of the group:
    ``share.auto.offset.reset``.

    In implicit mode the records of a ``poll`` are accepted with the next ``poll`` or ``commit``. In explicit
    mode each of them has to be given to :meth:`acknowledge` before the next ``poll``. What an iteration has
    fetched and not handed out yet comes with the next ``poll``, or iteration. ``close`` gives back what is
    not acknowledged, and the group delivers it to others.

    Raises:
        KafkaConfigurationError: unknown keys, no group, an unknown mode, or times that are none.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = dict(DEFAULTS)

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._closed = True  # until everything below has succeeded
        self.config = read_config(self.DEFAULT_CONFIG, configs)
        self._client = Client(self.config, self.config["api_version"] is None)
        self._registry, self._metrics = share_metrics(self.config)
        self._reader = Reader(
            deserializer_of(self.config["key_deserializer"], self.config["value_deserializer"])
        )
        self._calls = Calls(self._client)
        self._member = ShareMember(self._client, self.config, self._metrics)
        self._topics: tuple[str, ...] = ()
        self._told: tuple[str, ...] = self._topics  # of which the member knows
        self._acks = Acknowledgements(self.config["share_acknowledgement_mode"] == IMPLICIT)
        self._fetch: Request | None = None  # whose answer is not here yet
        self._found: Records = {}  # records for the next method that hands some out
        self._chunk: list[Any] = []  # of an iteration, the last one first
        self._error: Exception | None = None
        self._woken = False
        self._dropped = weakref.finalize(self, _abandon, self._client, self._member)
        self._dropped.atexit = False
        self._closed = False
        cut_off_in_child(self)
        if topics:
            self.subscribe(topics)

    # -- topics ----------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, and no others.

        Raises:
            TypeError: not a list of names. ValueError: an illegal name.
        """
        self._check_open()
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise TypeError(f"topics are a list of names, not {topics!r}")
        wanted = tuple(sorted(set(topics)))
        for topic in wanted:
            ensure_valid_topic_name(topic)
        self._give_back(wanted)
        self._topics = wanted
        self._tell()

    def _tell(self) -> None:
        """Tell the member what is subscribed to, unless it knows: Ctrl-C may have come before."""
        if self._told is not self._topics:
            self._client.call(self._member.subscribe, self._topics)
            self._told = self._topics

    def subscription(self) -> set[str]:
        """The topics that are read."""
        return set(self._topics)

    def unsubscribe(self) -> None:
        """Read no topic any more, and leave the group."""
        self.subscribe(())

    def _give_back(self, wanted: tuple[str, ...]) -> None:
        """Release what is fetched and not handed out yet of other topics than these."""
        chunk = [one for one in self._chunk if one.topic in wanted]
        found = {key: some for key, some in self._found.items() if key.topic in wanted}
        others = [one for one in self._chunk if one.topic not in wanted]
        for partition, records in self._found.items():
            others += () if partition in found else records
        self._acks.types, self._chunk, self._found = self._acks.with_released(others), chunk, found

    def assignment(self) -> set[TopicPartition]:
        """The partitions that the group lets this member read; others may read them, too."""
        return self._member.assignment

    # -- reading ---------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, list[Any]]:
        """Records by partition, each with its ``delivery_count``; waits up to ``timeout_ms`` for some.

        ``max_records`` (``max_poll_records``) may be exceeded up to the end of a batch, unless
        ``share_acquire_mode`` is "record_limit". Records that are renewed come alone.

        Raises:
            IllegalStateError: the consumer is closed, or not subscribed; or in explicit mode a record of the
                last ``poll`` is not acknowledged.
            TypeError, ValueError: a time that is none, or ``max_records`` that is no count of 1 or more.
            KafkaError: a refusal of the broker. Exception: raised by a deserializer; the record is released.
        """
        self._check_open()
        check_share_poll(timeout_ms, max_records)
        records = self._find(monotonic() + timeout_ms / 1000, max_records)
        left: Records = {}
        if self.config["share_acquire_mode"] == RECORD_LIMIT:  # an iteration may have fetched more
            records, left = split(records, max_records or self.config["max_poll_records"])
        delivered = {key: {one.offset: one for one in some} for key, some in records.items()}
        self._acks.delivered, self._found = delivered, left
        return records

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """The next record; ends after ``consumer_timeout_ms`` without one, and when it is closed.

        Raises:
            IllegalStateError, KafkaError, Exception: as ``poll``.
        """
        if not self._chunk:
            if self._closed:
                self._client.hub.check()  # in a forked child: an error, and not the end of the records
                raise StopIteration
            timeout_ms = self.config["consumer_timeout_ms"]
            deadline = monotonic() + timeout_ms / 1000 if timeout_ms >= 0 else float("inf")
            found = self._find(deadline, None)
            if not found:
                raise StopIteration
            chunk = [record for some in found.values() for record in some]
            chunk.reverse()
            self._chunk, self._found = chunk, {}
        record = self._chunk[-1]
        delivered = self._acks.delivered.setdefault(place(record), {})
        del self._chunk[-1]
        delivered[record.offset] = record
        return record

    def _find(self, deadline: float, max_records: int | None) -> Records:
        """Send what is acknowledged, and wait for further records. They stay ``_found`` for the caller to
        hand them out."""
        if self._metrics is None:
            return self._search(deadline, max_records)
        began = self._metrics.polling()
        try:
            return self._search(deadline, max_records)
        finally:
            self._metrics.polled(began)

    def _search(self, deadline: float, max_records: int | None) -> Records:
        self._learn()
        self._acks.settle()
        if not self._topics:
            raise IllegalStateError("Consumer is not subscribed to any topics.")
        self._tell()
        if self._chunk:  # of an iteration that has ended
            found = by_partition(reversed(self._chunk))
            self._chunk, self._found = [], found
        if self._found:
            self._send()  # there is no fetch to take the acknowledgements along
        while not self._closed:
            self._raise_failure()
            if not self._found:
                self._look(deadline, max_records)
            self._learn()
            if self._found or monotonic() >= deadline or self._woken:
                self._woken = False
                return self._found
        return {}

    def _look(self, deadline: float, max_records: int | None) -> None:
        """Wait for records that are being renewed, otherwise for a fetch."""
        acks = self._acks
        if acks.renews:
            self._send()
        if acks.sent and acks.renewing:
            self._wait(acks.sent[-1], deadline, True)
            self._learn()
        if acks.renewed or acks.renewing:
            self._found, acks.renewed = acks.renewed, {}
            return
        if self._fetch is None:
            fetch = Request(acks.unsent(), limits_of(self.config, deadline - monotonic(), max_records))
            self._fetch, acks.types = fetch, {}
        self._wait(self._fetch, deadline, True)
        if self._fetch.is_over:
            self._take(self._fetch)

    def _take(self, fetch: Request) -> None:
        """The records of a fetch, but for topics that are not subscribed to any more."""
        records: Records = {}
        types = {key: dict(some) for key, some in self._acks.types.items()}
        failure: Exception | None = None
        for partition, one in fetch.fetched.items():
            is_read = partition.topic in self._topics
            taken = self._reader.take(partition, one) if is_read else Taken.of_nobody(one)
            failure = failure or taken.error
            if taken.others:
                types.setdefault(partition, {}).update(taken.others)
            if taken.records:
                records[partition] = taken.records
        outcomes = self._acks.outcomes + self._acks.outcomes_of(fetch)
        error = self._member.error_of(fetch)
        self._error = self._error or error or failure
        self._found, self._fetch, self._acks.types, self._acks.outcomes = records, None, types, outcomes
        if error is not None:
            self._raise_failure()

    def _wait(self, request: Request, deadline: float, polling: bool = False) -> None:
        """Wait for a request until then, and a moment at least: a poll of no time gets on as well."""
        deadline = max(deadline, monotonic() + GRACE)
        self._begin(request)
        while not (request.is_over or self._closed):
            left = deadline - monotonic()
            if left <= 0 or (polling and (self._woken or self._member.failure is not None)):
                return
            self._client.call(self._member.wait, request, min(left, SLICE))

    def _begin(self, request: Request) -> None:
        if not request.has_begun:
            hub = self._client.hub
            hub.post(hub.spawn, self._member.carry_out, request, self._member)

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is None:
            error, self._member.failure = self._member.failure, None
        if error is not None:
            raise error

    # -- acknowledging ---------------------------------------------------------------------------------

    def acknowledge(self, record: Any, type: int = AcknowledgeType.ACCEPT) -> None:
        """Say what has become of a record: ACCEPT, RELEASE (deliver it again), REJECT (never again), or RENEW
        (it takes longer: once it is renewed, the next ``poll`` returns it again).

        It is sent with the next ``poll`` or ``commit``; until then another type replaces it.

        Raises:
            IllegalStateError: in implicit mode; or the record was not delivered by the last ``poll``, or what
                became of it is already sent.
            TypeError: not a record. ValueError: another type.
        """
        self._check_open()
        if self.config["share_acknowledgement_mode"] != EXPLICIT:
            raise IllegalStateError("Implicit acknowledgement of delivery is being used.")
        self._acks.acknowledge(record, type)

    def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, Exception | None]:
        """Send acknowledgements, in implicit mode of all delivered records, and wait until they are durable.

        Returns the error of each partition, or None.

        Raises:
            KafkaTimeoutError: no answer within ``timeout_ms`` (``request_timeout_ms``). The callback is told
                what has become of them later.
            KafkaError: they could not be sent.
        """
        self._check_open()
        seconds = self._seconds(timeout_ms)
        self._acks.settle(committing=True)
        sent = self._send()
        if sent is None:
            return {}
        self._wait(sent, monotonic() + seconds)
        if not sent.is_over:
            self._check_open()
            raise KafkaTimeoutError(f"The broker did not answer ShareAcknowledge within {in_words(seconds)}")
        self._learn()
        if sent.error is not None:
            self._error = None if self._error is sent.error else self._error
            raise sent.error
        return {partition: exception_of(error) for partition, error in sent.outcome}

    def commit_async(self) -> None:
        """Send acknowledgements without waiting; the callback is told with a later ``poll`` or ``commit``."""
        self._check_open()
        self._acks.settle(committing=True)
        self._send()
        self._learn()

    def acquisition_lock_timeout_ms(self) -> int | None:
        """For how long records are a member's own, as of the last fetch; None before the first."""
        lock = self._member.lock
        return None if lock is None else round(lock * 1000)

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Have ``callback({partition: offsets}, error or None)`` called, within ``poll``, ``commit`` and
        ``close``, for acknowledgements whose outcome is known; None for none. What it raises is logged.

        Raises:
            TypeError: it cannot be called.
        """
        self._check_open()
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is a function or None, not {callback!r:.100}")
        self._acks.callback = callback

    def _send(self) -> Request | None:
        """Send acknowledgements without a fetch; None if there are none."""
        types = self._acks.unsent()
        if not types:
            return None
        sent = Request(types)
        self._acks.types, self._acks.sent = {}, [*self._acks.sent, sent]
        self._begin(sent)
        return sent

    def _learn(self) -> None:
        """Look what has become of acknowledgements."""
        for sent in self._acks.sent:
            self._begin(sent)  # unless Ctrl-C came before
        self._acks.learn()
        if self._error is None:
            self._error, self._acks.failure = self._acks.failure, None

    # -- the end -----------------------------------------------------------------------------------------

    def wakeup(self) -> None:
        """End a waiting ``poll``, or the next one, without records; for any thread."""
        self._woken = True
        self._client.hub.post(self._member.interrupt)

    def metrics(self, raw: bool = False) -> dict[Any, Any] | None:
        """Figures about this consumer, ``{group: {name: value}}``, or with ``raw`` ``{MetricName: metric}``.

        Groups and names are those of Kafka's KafkaShareConsumer. None if metrics are not enabled.
        """
        return None if self._registry is None else self._registry.by_group(raw)

    def close(self, timeout_ms: float | None = None) -> None:
        """Send the acknowledgements that were made, give all other records back, and leave the group.

        It takes ``timeout_ms`` (``request_timeout_ms``) at most, and says no error of the broker.
        """
        seconds = self._seconds(timeout_ms)
        if self._closed:
            return
        self._closed = True
        self._dropped.detach()
        last = Request(self._acks.unsent())
        self._acks.types = {}
        if self._fetch is not None and self._fetch.has_begun:
            self._acks.sent.append(self._fetch)  # to be told what became of the acknowledgements in it
        elif self._fetch is not None:  # Ctrl-C came before it was sent
            self._fetch.has_begun = True
            last = Request({**self._fetch.types, **last.types})
        try:
            self._client.hub.post(self._member.interrupt)
            within = None if seconds == float("inf") else seconds * 1000
            try:
                last.outcome = self._calls.within(within, "ShareAcknowledge", self._member.close, last.types)
            except KafkaTimeoutError as error:
                log.warning("a member of group %s has not left: %s", self.config["group_id"], error)
            self._acks.outcomes += self._acks.outcomes_of(last)
            self._learn()
        finally:
            self._client.close()
            if self._registry is not None:
                self._registry.close()
            for key in ("key_deserializer", "value_deserializer"):
                close = getattr(self.config[key], "close", None)
                if close is not None:
                    close()

    def _seconds(self, timeout_ms: float | None) -> float:
        timeout_ms = timeout_of(timeout_ms)
        if timeout_ms is None:
            timeout_ms = self.config["request_timeout_ms"]
        return max(timeout_ms / 1000, 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise self._client.closed_error(CLOSED)

    def _cut_off(self) -> None:
        """In a forked child."""
        self._closed = True
        self._dropped.detach()


def _abandon(client: Client, member: ShareMember) -> None:
    try:
        client.hub.post(client.hub.spawn, member.close, {})
    except Exception:  # the hub is gone, and the member with it
        return
