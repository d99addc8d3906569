"""``ShareConsumer``: a member of a share group, on a broker in this process, or over TCP.

It runs in the caller's thread and is not thread safe; only ``close`` and ``wakeup`` may come from another
one. Heartbeats and requests are the hub's (:mod:`~compat.kafka.share._member`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from kafka.consumer.group import KafkaConsumer as _Theirs
from kafka.errors import IllegalStateError, KafkaConfigurationError
from kafka.structs import TopicPartition
from kafka.util import ensure_valid_topic_name

from compat.kafka._client import Client, cut_off_in_child
from compat.kafka._counts import check_counts
from compat.kafka._kinds import check_kinds
from compat.kafka._times import check_times, timeout_of
from compat.kafka.share._member import ShareMember
from compat.kafka.share._records import take
from dafka.broker.interface.share import AcknowledgeType, ShareFetchLimits
from dafka.hub.waits import bounded_wait

if TYPE_CHECKING:
    from typing_extensions import Self

IMPLICIT, EXPLICIT = "implicit", "explicit"
BATCH_OPTIMIZED, RECORD_LIMIT = "batch_optimized", "record_limit"
CLOSED = "This consumer has already been closed."

_CONNECTION = (
    *("bootstrap_servers", "bootstrap_timeout_ms", "client_id", "request_timeout_ms", "security_protocol"),
    *(name for name in _Theirs.DEFAULT_CONFIG if name.startswith(("ssl_", "sasl_"))),
    *("key_deserializer", "value_deserializer", "max_poll_records", "fetch_max_wait_ms", "fetch_min_bytes"),
    *("fetch_max_bytes", "consumer_timeout_ms", "client_rack", "api_version"),
)

AcknowledgementCallback = Callable[[dict[TopicPartition, set[int]], "Exception | None"], object]


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
    mode each of them has to be given to :meth:`acknowledge` before the next ``poll``. ``close`` gives back
    what is not acknowledged, and the group delivers it to others.

    Raises:
        KafkaConfigurationError: unknown keys, no group, an unknown mode, or times that are none.
        KafkaTimeoutError: no broker at ``bootstrap_servers``.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = {
        **{name: _Theirs.DEFAULT_CONFIG[name] for name in _CONNECTION if name in _Theirs.DEFAULT_CONFIG},
        "client_rack": "",
        "group_id": None,
        "share_acknowledgement_mode": IMPLICIT,
        "share_acquire_mode": BATCH_OPTIMIZED,
    }

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._closed = True  # until everything below has succeeded
        self.config = _read_config(self.DEFAULT_CONFIG, configs)
        self._client = Client(self.config, self.config["api_version"] is None)
        self._member = ShareMember(self._client, self.config)
        self._topics: tuple[str, ...] = ()
        self._delivered: dict[TopicPartition, dict[int, None]] = {}  # not acknowledged yet
        self._types: dict[TopicPartition, dict[int, int]] = {}  # acknowledgements that are not sent yet
        self._chunk: Iterator[Any] = iter(())
        self._callback: AcknowledgementCallback | None = None
        self._outcomes: list[tuple[TopicPartition, set[int], Any]] = []
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
        self._topics = wanted
        self._client.call(self._member.subscribe, wanted)

    def subscription(self) -> set[str]:
        """The topics that are read."""
        return set(self._topics)

    def unsubscribe(self) -> None:
        """Read no topic any more, and leave the group."""
        self.subscribe(())

    def assignment(self) -> set[TopicPartition]:
        """The partitions that the group lets this member read; others may read them, too."""
        return self._member.assignment

    # -- reading ---------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, list[Any]]:
        """Records by partition, each with its ``delivery_count``; waits up to ``timeout_ms`` for some.

        ``max_records`` (``max_poll_records``) may be exceeded up to the end of a batch, unless
        ``share_acquire_mode`` is "record_limit".

        Raises:
            IllegalStateError: the consumer is closed, or in explicit mode a record of the last ``poll`` is
                not acknowledged.
            TypeError, ValueError: a time that is none, or ``max_records`` that is no count of 1 or more.
            KafkaError: a refusal of the broker. Exception: raised by a deserializer; the record is released.
        """
        self._check_open()
        bounded_wait(timeout_ms, "timeout_ms", "milliseconds")
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms is 0 or more, not {timeout_ms}")
        if max_records is not None and (
            not isinstance(max_records, Integral) or isinstance(max_records, bool)
        ):
            raise TypeError(f"max_records is a count or None, not {max_records!r:.100}")
        if max_records is not None and max_records < 1:
            raise ValueError(f"max_records is 1 or more, not {max_records}")
        records = self._take(monotonic() + timeout_ms / 1000, max_records)
        for partition, some in records.items():
            self._delivered.setdefault(partition, {}).update(dict.fromkeys(one.offset for one in some))
        return records

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        """The next record; ends after ``consumer_timeout_ms`` without one, and when it is closed."""
        for record in self._chunk:
            self._delivered.setdefault(_place(record), {})[record.offset] = None
            return record
        if self._closed:
            raise StopIteration
        timeout_ms = self.config["consumer_timeout_ms"]
        deadline = monotonic() + timeout_ms / 1000 if timeout_ms >= 0 else float("inf")
        found = self._take(deadline, None)
        if not found:
            raise StopIteration
        self._chunk = (record for some in found.values() for record in some)
        return self.__next__()

    def _take(self, deadline: float, max_records: int | None) -> dict[TopicPartition, list[Any]]:
        """Acknowledge what is done with, and wait for further records."""
        for record in self._chunk:  # taken by an iteration that has ended: for others
            self._types.setdefault(_place(record), {})[record.offset] = AcknowledgeType.RELEASE
        self._settle()
        while not self._closed:
            self._raise_failure()
            wait = min(max(deadline - monotonic(), 0.0), self.config["fetch_max_wait_ms"] / 1000)
            records = self._fetch(wait, max_records)
            self._tell()
            if records or monotonic() >= deadline or self._woken:
                self._woken = False
                return records
        return {}

    def _fetch(self, wait: float, max_records: int | None) -> dict[TopicPartition, list[Any]]:
        types, self._types = self._types, {}
        most = self.config["max_poll_records"] if max_records is None else max_records
        if any(AcknowledgeType.RENEW in some.values() for some in types.values()):
            self._note(types, self._client.call(self._member.acknowledge, types))
            types = {}
        limits = ShareFetchLimits(
            wait,
            self.config["fetch_min_bytes"],
            self.config["fetch_max_bytes"],
            most,
            most,
            self.config["share_acquire_mode"] == RECORD_LIMIT,
        )
        fetched, outcome = self._client.call(self._member.fetch, types, limits, self._member)
        self._note(types, outcome)
        records: dict[TopicPartition, list[Any]] = {}
        for partition, one in fetched.items():
            taken = take(partition, one, self._deserialize)
            if taken.others:
                self._types.setdefault(partition, {}).update(taken.others)
            self._error = self._error or taken.error
            if taken.records:
                records[partition] = taken.records
        return records

    def _deserialize(self, topic: str, headers: Any, key: Any, value: Any) -> tuple[Any, Any]:
        found = []
        for deserializer, octets in zip(
            (self.config["key_deserializer"], self.config["value_deserializer"]), (key, value), strict=True
        ):
            if deserializer is None:
                found.append(octets)
            elif hasattr(deserializer, "deserialize"):
                found.append(deserializer.deserialize(topic, headers, octets))
            else:
                found.append(deserializer(octets))
        return found[0], found[1]

    def _raise_failure(self) -> None:
        for error in (self._error, self._member.failure):
            if error is not None:
                self._error = self._member.failure = None
                raise error

    # -- acknowledging ---------------------------------------------------------------------------------

    def acknowledge(self, record: Any, type: int = AcknowledgeType.ACCEPT) -> None:
        """Say what has become of a record: ACCEPT, RELEASE (deliver it again), REJECT (never again), or RENEW
        (it takes longer; acknowledge it again afterwards).

        It is sent with the next ``poll`` or ``commit``.

        Raises:
            IllegalStateError: in implicit mode; or the record was not delivered, or is acknowledged already.
            ValueError: another type.
        """
        self._check_open()
        if self.config["share_acknowledgement_mode"] != EXPLICIT:
            raise IllegalStateError("Implicit acknowledgement of delivery is being used.")
        if type not in (1, 2, 3, 4):
            raise ValueError(f"type is ACCEPT, RELEASE, REJECT or RENEW, not {type!r}")
        partition = _place(record)
        if record.offset not in self._delivered.get(partition, ()):
            raise IllegalStateError("The record cannot be acknowledged.")
        if type != AcknowledgeType.RENEW:
            del self._delivered[partition][record.offset]
        self._types.setdefault(partition, {})[record.offset] = int(type)

    def commit(self, timeout_ms: float | None = None) -> dict[TopicPartition, Exception | None]:
        """Send acknowledgements, in implicit mode of all delivered records, and wait until they are durable.

        Returns the error of each partition, or None. ``timeout_ms`` is there for kafka-python's manner.
        """
        self._check_open()
        timeout_of(timeout_ms)
        self._settle(committing=True)
        types, self._types = self._types, {}
        errors = self._client.call(self._member.acknowledge, types) if types else []
        self._note(types, errors)
        self._tell()
        return {partition: None if error is None else error() for partition, error in errors}

    def commit_async(self) -> None:
        """Send acknowledgements without waiting; the callback is told with a later ``poll`` or ``commit``."""
        self._check_open()
        self._settle(committing=True)
        types, self._types = self._types, {}
        if types:
            hub = self._client.hub
            hub.post(hub.spawn, self._acknowledge_later, types)

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCallback | None) -> None:
        """Have ``callback({partition: offsets}, error or None)`` called, within ``poll``, ``commit`` and
        ``close``, for acknowledgements whose outcome is known; None for none.

        Raises:
            TypeError: it cannot be called.
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is a function or None, not {callback!r:.100}")
        self._callback = callback

    def _acknowledge_later(self, types: Mapping[TopicPartition, Mapping[int, int]]) -> None:
        try:
            self._note(types, self._member.acknowledge(types))
        except Exception as error:
            self._error = self._error or error

    def _settle(self, committing: bool = False) -> None:
        """Decide about delivered records as the mode says."""
        if self.config["share_acknowledgement_mode"] == IMPLICIT:
            for partition, offsets in self._delivered.items():
                if offsets:
                    accepted = dict.fromkeys(offsets, int(AcknowledgeType.ACCEPT))
                    self._types.setdefault(partition, {}).update(accepted)
            self._delivered.clear()
        elif not committing and any(
            offset not in self._types.get(partition, ())
            for partition, offsets in self._delivered.items()
            for offset in offsets
        ):
            raise IllegalStateError("All records must be acknowledged in explicit acknowledgement mode.")

    def _note(self, types: Mapping[TopicPartition, Mapping[int, int]], errors: Any) -> None:
        if self._callback is not None:
            self._outcomes += [
                (partition, set(types.get(partition, ())), error) for partition, error in errors
            ]

    def _tell(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        if self._callback is not None:
            for partition, offsets, error in outcomes:
                self._callback({partition: offsets}, None if error is None else error())

    # -- the end -----------------------------------------------------------------------------------------

    def wakeup(self) -> None:
        """End a waiting ``poll`` soon, without records; for any thread."""
        self._woken = True

    def close(self, timeout_ms: float | None = None) -> None:
        """Send the acknowledgements that were made, give all other records back, and leave the group."""
        timeout_of(timeout_ms)
        if self._closed:
            return
        self._closed = True
        self._dropped.detach()
        types, self._types = self._types, {}
        try:
            self._note(types, self._client.call(self._member.close, types))
            self._tell()
        finally:
            self._client.close()

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


def _place(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def _abandon(client: Client, member: ShareMember) -> None:
    try:
        client.hub.post(client.hub.spawn, member.close, {})
    except Exception:  # the hub is gone, and the member with it
        return


def _read_config(defaults: dict[str, Any], configs: dict[str, Any]) -> dict[str, Any]:
    unknown = set(configs).difference(defaults)
    if unknown:
        raise KafkaConfigurationError(f"Unrecognized configs: {unknown}")
    config = {**defaults, **configs}
    if not isinstance(config["group_id"], str) or not config["group_id"]:
        raise KafkaConfigurationError("a ShareConsumer needs a group_id")
    for key, known in (
        ("share_acknowledgement_mode", (IMPLICIT, EXPLICIT)),
        ("share_acquire_mode", (BATCH_OPTIMIZED, RECORD_LIMIT)),
    ):
        if config[key] not in known:
            raise KafkaConfigurationError(f"{key} is {known[0]!r} or {known[1]!r}, not {config[key]!r}")
    check_kinds(config)
    check_times(config)
    check_counts(config)
    return config
