"""The options of the data source: Spark's Kafka names and meanings, checked before anything is connected.

Names are case-insensitive, as all of Spark's. Options of Kafka's own clients go by ``kafka.NAME``; those
listed in _WITHOUT_EFFECT there are accepted and change nothing, because they tune something that does not
exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from dafka.protocol.batch import CODECS
from dafka.protocol.compression import LIBRARIES, is_available
from dafka.security import SaslError, TlsError
from dafka.security.client_properties import NAMES as SECURITY
from dafka.security.client_properties import ClientSecurity, client_security
from dafka.spark import option_values as values
from dafka.spark.errors import OptionError
from dafka.spark.option_values import TopicPartition

T = TypeVar("T")
EARLIEST, LATEST = -2, -1

_READ = (
    "assign",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "subscribe",
    "subscribePattern",
)
# Spark hands the options of its own streaming writers to the sink as well.
_WRITE = ("checkpointLocation", "exactlyOnce", "includeHeaders", "includeTimestamp", "queryName", "topic")

_KAFKA_READ = (
    "bootstrap.servers",
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "isolation.level",
    "max.partition.fetch.bytes",
    "request.timeout.ms",
    *SECURITY,
)
_KAFKA_WRITE = (
    "acks",
    "bootstrap.servers",
    "batch.size",
    "compression.type",
    "default.api.timeout.ms",
    "delivery.timeout.ms",
    "max.request.size",
    "request.timeout.ms",
    *SECURITY,
    "transaction.timeout.ms",
)
_WITHOUT_EFFECT = (
    "allow.auto.create.topics",
    "auto.include.jmx.reporter",
    "buffer.memory",
    "check.crcs",
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "connections.max.idle.ms",
    "enable.idempotence",
    "enable.metrics.push",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)
# As in Spark's own source, which decides these itself.
_NOT_TO_BE_SET = (
    "auto.offset.reset",
    "enable.auto.commit",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "value.deserializer",
    "value.serializer",
)
_WITHOUT_PREFIX = ("bootstrap.servers",)  # of Kafka's own, those that may be said without "kafka."


class Subscription(NamedTuple):
    """The partitions to read; one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


class Position(NamedTuple):
    """Where a range begins or ends, for all partitions or for each.

    ``everywhere`` EARLIEST or LATEST; ``timestamp`` (ms) for all partitions; else ``offsets`` or
    ``timestamps`` by partition. ``option`` is the name that said so, for messages.
    """

    option: str
    everywhere: int | None = None
    timestamp: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamps: Mapping[TopicPartition, int] | None = None


class Access(NamedTuple):
    """How a broker is reached. Times in seconds: to find a broker, and to wait for one that went away."""

    servers: str
    connect_timeout: float = 60.0
    patience: float = 120.0
    security: ClientSecurity = ClientSecurity()


class ReadOptions(NamedTuple):
    """The parsed options of a read."""

    access: Access
    subscription: Subscription
    starting: Position | None
    ending: Position | None
    latest_for_late_timestamp: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    read_committed: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay: float = 900.0
    fetch_bytes: int = 8 * 1024 * 1024


class WriteOptions(NamedTuple):
    """The parsed options of a write. ``compression`` None: uncompressed; sizes in octets."""

    access: Access
    topic: str | None = None
    include_timestamp: bool = False
    exactly_once: bool = False
    compression: str | None = None
    acks: int = -1
    batch_bytes: int = 256 * 1024
    transaction_timeout: float = 900.0


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of a read. Raises :class:`OptionError`."""
    given = _Given(options, _READ, _KAFKA_READ)
    minimum = given.get("minOffsetsPerTrigger", values.positive)
    maximum = given.get("maxOffsetsPerTrigger", values.positive)
    if minimum is not None and maximum is not None and minimum > maximum:
        raise OptionError(f"minOffsetsPerTrigger ({minimum}) is more than maxOffsetsPerTrigger ({maximum})")
    strategy = values.one_of("error", "latest")
    isolation = values.one_of("read_uncommitted", "read_committed")
    for name in ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"):
        given.get(name, values.not_negative)
    default = ReadOptions(_access(given), _subscription(given), None, None)
    fetch = given.get("kafka.max.partition.fetch.bytes", values.positive) or given.get(
        "kafka.fetch.max.bytes", values.positive
    )
    return default._replace(
        starting=_position(given, "starting"),
        ending=_position(given, "ending"),
        latest_for_late_timestamp=given.get("startingOffsetsByTimestampStrategy", strategy) == "latest",
        fail_on_data_loss=given.get("failOnDataLoss", values.boolean) is not False,
        include_headers=bool(given.get("includeHeaders", values.boolean)),
        read_committed=given.get("kafka.isolation.level", isolation) == "read_committed",
        min_partitions=given.get("minPartitions", values.positive),
        max_records_per_partition=given.get("maxRecordsPerPartition", values.positive),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay=_or(given.get("maxTriggerDelay", values.duration), default.max_trigger_delay),
        fetch_bytes=_or(fetch, default.fetch_bytes),
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of a write. Raises :class:`OptionError`."""
    given = _Given(options, _WRITE, _KAFKA_WRITE)
    given.get("includeHeaders", values.boolean)  # columns say whether there are headers
    default = WriteOptions(_access(given))
    compression = given.get("kafka.compression.type", values.one_of("none", *filter(None, CODECS)))
    if compression not in (None, "none") and not is_available(compression):
        raise OptionError(
            f"kafka.compression.type: {compression} is not installed: pip install {LIBRARIES[compression]}"
        )
    most = given.get("kafka.max.request.size", values.positive)
    wanted = max(given.get("kafka.batch.size", values.positive) or 0, default.batch_bytes)
    acks = given.get("kafka.acks", values.one_of("all", "-1", "1", "0"))
    exactly_once = bool(given.get("exactlyOnce", values.boolean))
    if exactly_once and acks in ("0", "1"):
        raise OptionError(f"exactlyOnce needs kafka.acks=all, not {acks}")
    timeout = given.get("kafka.transaction.timeout.ms", values.positive)
    return default._replace(
        topic=given.get("topic", values.name),
        include_timestamp=bool(given.get("includeTimestamp", values.boolean)),
        exactly_once=exactly_once,
        compression=None if compression == "none" else compression,
        acks=int(acks) if acks in ("0", "1") else -1,
        # As small as a producer's batch.size usually is, they would not pay here.
        batch_bytes=min(wanted, most or wanted),
        transaction_timeout=default.transaction_timeout if timeout is None else timeout / 1000,
    )


class _Given:
    """Options by their names in lower case, all of them known."""

    def __init__(self, options: Mapping[str, str], names: Iterable[str], kafka_names: Iterable[str]) -> None:
        known = {name.lower(): name for name in names}
        known |= {f"kafka.{name}": f"kafka.{name}" for name in kafka_names}
        self._values: dict[str, str] = {}
        for name, value in options.items():
            name = name.lower()
            full = f"kafka.{name}" if name in _WITHOUT_PREFIX else name
            if full in known:
                if full in self._values and self._values[full] != value:
                    raise OptionError(f"{full.removeprefix('kafka.')} and {full} contradict each other")
                self._values[full] = value
            else:
                _refuse(name, known)

    def get(self, name: str, convert: Callable[[str], T]) -> T | None:
        """The value of an option, or None; errors of ``convert`` name the option."""
        value = self._values.get(name.lower())
        if value is None:
            return None
        try:
            return convert(value)
        except ValueError as error:
            raise OptionError(f"option {name}: {error}") from None


def _refuse(name: str, known: Mapping[str, str]) -> None:
    """Raise the error for an unknown option, unless it is one without effect."""
    if name.startswith("kafka."):
        own = name.removeprefix("kafka.")
        if own in _WITHOUT_EFFECT:
            return
        if own in _NOT_TO_BE_SET:
            raise OptionError(f"option {name} is not to be set: the data source decides it")
        if own.startswith(("sasl.", "ssl.")):
            raise OptionError(
                f"option {name} is not supported; of security there are "
                + ", ".join(f"kafka.{one}" for one in SECURITY)
            )
    # Without the prefix, which would make all that have it alike.
    everything = {f"kafka.{other}": f"kafka.{other}" for other in _WITHOUT_EFFECT} | dict(known)
    bare = {lower.removeprefix("kafka."): full for lower, full in everything.items()}
    near = get_close_matches(name.removeprefix("kafka."), bare, 1, 0.6)
    hint = f"; did you mean {bare[near[0]]}?" if near else ""
    raise OptionError(f"unknown option {name!r}{hint}")


def _access(given: _Given) -> Access:
    servers = given.get("kafka.bootstrap.servers", values.servers)
    if servers is None:
        raise OptionError("option kafka.bootstrap.servers (or bootstrap.servers) is missing: HOST:PORT")
    default = Access(servers)
    connect = given.get("kafka.default.api.timeout.ms", values.positive) or given.get(
        "kafka.request.timeout.ms", values.positive
    )
    patience = given.get("kafkaConsumer.pollTimeoutMs", values.positive) or given.get(
        "kafka.delivery.timeout.ms", values.positive
    )
    return Access(
        servers,
        default.connect_timeout if connect is None else connect / 1000,
        default.patience if patience is None else patience / 1000,
        _security(given),
    )


def _security(given: _Given) -> ClientSecurity:
    said = ((name, given.get(f"kafka.{name}", str)) for name in SECURITY)
    try:
        return client_security({name: value for name, value in said if value is not None})
    except (TlsError, SaslError) as error:
        raise OptionError(f"option kafka.{error}") from None


def _subscription(given: _Given) -> Subscription:
    kinds = ("subscribe", "subscribePattern", "assign")
    topics, pattern = given.get("subscribe", values.names), given.get("subscribePattern", values.pattern)
    partitions = given.get("assign", values.assignment)
    said = [
        kind for kind, value in zip(kinds, (topics, pattern, partitions), strict=True) if value is not None
    ]
    if len(said) != 1:
        raise OptionError(
            f"exactly one of the options {', '.join(kinds)} says what is read; "
            + (f"{' and '.join(said)} are set" if said else "none is set")
        )
    return Subscription(topics or (), pattern, partitions or ())


def _position(given: _Given, side: str) -> Position | None:
    """Timestamps for all partitions go before those by partition, and both before offsets, as in Spark."""
    option = f"{side}Timestamp"
    if (timestamp := given.get(option, values.not_negative)) is not None:
        return Position(option, timestamp=timestamp)
    option = f"{side}OffsetsByTimestamp"
    if (timestamps := given.get(option, values.by_partition)) is not None:
        if negative := [place for place, value in timestamps.items() if value < 0]:
            raise OptionError(f"option {option}: a timestamp below 0 for {negative[0]}")
        return Position(option, timestamps=timestamps)
    option = f"{side}Offsets"
    return given.get(option, lambda text: _offsets(option, text))


def _offsets(option: str, text: str) -> Position:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Position(option, everywhere=EARLIEST if word == "earliest" else LATEST)
    offsets = values.by_partition(text)
    if wrong := [(place, value) for place, value in offsets.items() if value < EARLIEST]:
        (topic, number), value = wrong[0]
        raise ValueError(
            f"{value} is not an offset (-1 latest, -2 earliest), for partition {number} of {topic!r}"
        )
    return Position(option, offsets=offsets)


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
