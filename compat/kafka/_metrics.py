"""The clients' ``metrics()``: kafka-python's groups, names and statistics, counted per batch.

The sensors are kafka-python's own (``SenderMetrics``, ``FetchManagerMetrics``, ...), so names, descriptions
and time windows are those that its users know. Values are recorded once for a call to the broker or for a
batch, never for a record.

Where there is no connection, a *request* is a call to the broker and its bytes are those of the record
batches it carries; the time that a fetch or a heartbeat was told to wait is part of the former's latency and
not of the latter's. ``throttle-time`` stays without a value: this broker throttles no client. The producer's
``record-size`` figures come from the average record of each batch.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any

from gevent import monkey
from kafka.consumer.fetcher import FetchManagerMetrics
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.base import GroupCoordinatorMetrics
from kafka.coordinator.consumer import ConsumerCoordinatorMetrics
from kafka.metrics import AnonMeasurable, MetricConfig, MetricName, Metrics
from kafka.metrics.stats import Avg
from kafka.net.metrics import KafkaConnectionMetrics, KafkaManagerMetrics
from kafka.producer.sender import SenderMetrics

NODE_ID = 0  # of the one broker

# Sensors are told things by the hub's thread and by the program's, so their locks are native ones even where
# gevent has patched threading. They are held for some bytecodes only.
_new_lock = monkey.get_original("_thread", "RLock")

Gauges = dict[str, tuple[str, Callable[[], float]]]


class Registry(Metrics):
    """kafka-python's registry of metrics, with locks that threads inside and outside of gevent can share."""

    def __init__(self, config: dict[str, Any]) -> None:
        """With the client's configuration: its id as a tag, its reporters, and the window of rates."""
        metric_config = MetricConfig(
            samples=config["metrics_num_samples"],
            time_window_ms=config["metrics_sample_window_ms"],
            tags={"client-id": config["client_id"]},
        )
        super().__init__(metric_config, [reporter() for reporter in config["metric_reporters"]])
        self._lock = _new_lock()

    def sensor(self, *args: Any, **kwargs: Any) -> Any:
        """kafka-python's; made when it is asked for the first time."""
        sensor = super().sensor(*args, **kwargs)
        if type(sensor._lock) is not type(self._lock):
            sensor._lock = _new_lock()
        return sensor

    def add_gauges(self, group: str, gauges: Gauges) -> None:
        """Register figures that are computed when they are asked for: ``{name: (description, read)}``."""
        for name, (description, read) in gauges.items():
            measurable = AnonMeasurable(lambda config, now, read=read: read())
            self.add_metric(self.metric_name(name, group, description), measurable)

    def by_group(self, raw: bool) -> dict[Any, Any]:
        """The result of ``metrics()``: ``{group: {name: value}}``, or ``{MetricName: metric}``."""
        metrics: dict[MetricName, Any] = dict(self.metrics)
        if raw:
            return metrics
        groups: dict[str, dict[str, Any]] = {}
        for name, metric in metrics.items():
            groups.setdefault(name.group, {})[name.name] = metric.value()
        return groups


def new_registry(config: dict[str, Any]) -> Registry | None:
    """A client's registry; None where ``metrics_enabled`` is not set."""
    return Registry(config) if config.get("metrics_enabled", True) else None


class RequestMetrics:
    """Calls to the broker: how many, how long, and what they carry."""

    def __init__(self, registry: Registry, prefix: str) -> None:
        connected = KafkaManagerMetrics(registry, prefix, (NODE_ID,))
        connected.connection_created.record()
        self._sensors = KafkaConnectionMetrics(registry, prefix, NODE_ID)

    def answered(self, began: float, sent: int = 0, received: int = 0) -> None:
        """A call that was made at ``began`` (monotonic seconds) has carried so many bytes."""
        now = monotonic() * 1000
        self._sensors.bytes_sent.record(sent, now)
        self._sensors.bytes_received.record(received, now)
        self._sensors.request_time.record(now - began * 1000, now)


class ProducerMetrics:
    """A producer's figures. Told by its sender, in the hub."""

    def __init__(self, registry: Registry) -> None:
        self._requests = RequestMetrics(registry, "producer")
        self._sensors = SenderMetrics(registry, self, self)
        self._get_sensor = registry.get_sensor
        self._under_way = 0
        self._last_successful_refresh_ms = monotonic() * 1000  # read by kafka-python's metadata-age

    def in_flight_request_count(self) -> int:
        """How many calls wait for the broker; read by kafka-python's requests-in-flight."""
        return self._under_way

    def refreshed(self) -> None:
        """The metadata of topics is fresh."""
        self._last_successful_refresh_ms = monotonic() * 1000

    def began(self) -> float:
        """A call is made; its time."""
        self._under_way += 1
        return monotonic()

    def answered(self, began: float, work: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """The call is over; it carried these batches of these topics."""
        self._under_way -= 1
        now = monotonic() * 1000
        sensors = self._sensors
        total = records = 0
        for topic, batches in work:
            sensors.maybe_register_topic_metrics(topic)
            sizes = [len(batch.content or b"") for batch in batches]
            octets = sum(sizes)
            raw = sum([max(batch.size, 1) for batch in batches])
            count = sum([batch.count for batch in batches])
            _record_each(sensors.batch_size_sensor, sizes, now)
            averages = [batch.size / max(batch.count, 1) for batch in batches]
            _record_each(sensors.max_record_size_sensor, averages, now)
            waits = [(began - batch.created) * 1000 for batch in batches]
            _record_each(sensors.queue_time_sensor, waits, now)
            compression = octets / raw if raw else 1.0
            sensors.compression_rate_sensor.record(compression, now)
            self._record(topic, "records-per-batch", count, now)
            self._record(topic, "bytes", octets, now)
            self._record(topic, "compression-rate", compression, now)
            total += octets
            records += count
        sensors.records_per_request_sensor.record(records, now)
        sensors.byte_rate_sensor.record(total, now)
        self._requests.answered(began, sent=total)

    def _record(self, topic: str, name: str, value: float, now: float) -> None:
        self._get_sensor(f"topic.{topic}.{name}").record(value, now)

    def retried(self, topic: str, records: int) -> None:
        """So many records are sent again."""
        self._sensors.record_retries(topic, records)

    def failed(self, topic: str, records: int) -> None:
        """So many records were not sent."""
        self._sensors.record_errors(topic, records)


def _record_each(sensor: Any, values: Sequence[float], now: float) -> None:
    """What ``sensor.record()`` of each value does, in a fraction of its time; at least one.

    For sensors that have averages and maxima only.
    """
    first, *others = values
    sensor.record(first, now)
    if not others:
        return
    for metric in sensor.metrics:
        statistic = metric.measurable
        sample = statistic.current(now)
        joined = sum(others) if isinstance(statistic, Avg) else max(others)
        statistic.update(sample, metric.config, joined, now)
        sample.event_count += len(others)


class ConsumerMetrics:
    """A consumer's figures. Nothing here keeps the subscription, and with it the consumer, alive."""

    def __init__(self, registry: Registry, prefix: str, subscription: SubscriptionState) -> None:
        self._requests = RequestMetrics(registry, prefix)
        self._fetches = FetchManagerMetrics(registry, prefix)
        self._commits = ConsumerCoordinatorMetrics(registry, prefix, weakref.proxy(subscription))
        self._group = GroupCoordinatorMetrics(self, registry, prefix)
        self.last_send = float("-inf")  # monotonic seconds; read by kafka-python's last-heartbeat

    def fetched(self, began: float, topics: dict[str, tuple[int, int]]) -> None:
        """A fetch is over; it brought ``{topic: (bytes, records)}``."""
        self._fetches.fetch_latency.record((monotonic() - began) * 1000)
        octets = sum(size for size, _ in topics.values())
        if topics:
            self._fetches.bytes_fetched.record(octets)
            self._fetches.records_fetched.record(sum(count for _, count in topics.values()))
            for topic, (size, count) in topics.items():
                self._fetches.record_topic_fetch_metrics(topic, size, count)
        self._requests.answered(began, received=octets)

    def lagged(self, records: int) -> None:
        """A partition has so many records behind the ones just handed out."""
        self._fetches.records_fetch_lag.record(records)

    def committed(self, began: float) -> None:
        """A commit is over."""
        self._commits.commit_latency.record((monotonic() - began) * 1000)
        self._requests.answered(began)

    def joined(self, began: float) -> None:
        """A join is answered."""
        self._group.join_latency.record((monotonic() - began) * 1000)
        self._requests.answered(began)

    def synced(self, began: float) -> None:
        """A sync is answered."""
        self._group.sync_latency.record((monotonic() - began) * 1000)
        self._requests.answered(began)

    def heartbeat(self, began: float, waited: float) -> None:
        """A heartbeat is answered that the coordinator was to keep for ``waited`` seconds."""
        self.last_send = began
        self._group.heartbeat_latency.record(max(monotonic() - began - waited, 0.0) * 1000)
        self._requests.answered(began)


def consumer_metrics(
    registry: Registry | None, config: dict[str, Any], subscription: SubscriptionState
) -> ConsumerMetrics | None:
    """The sensors of a consumer; None if metrics are not enabled."""
    if registry is None:
        return None
    return ConsumerMetrics(registry, config["metric_group_prefix"], subscription)


def add_fetch_totals(registry: Registry | None, config: dict[str, Any], fetches: Any) -> None:
    """Register a consumer's totals, which do not keep its ``fetches`` alive."""
    if registry is None:
        return
    fetches = weakref.proxy(fetches)
    gauges: Gauges = {
        "records-consumed-total": ("records handed out", lambda: fetches.records_taken),
        "bytes-consumed-total": ("octets of fetched batches", lambda: fetches.bytes_fetched),
        "fetch-total": ("fetches", lambda: fetches.fetches),
    }
    registry.add_gauges(f"{config['metric_group_prefix']}-fetch-manager-metrics", gauges)
