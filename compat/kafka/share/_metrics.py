"""A share consumer's ``metrics()``: the groups and names of Kafka's KafkaShareConsumer, with kafka-python's
statistics.

Values are recorded once for a call of ``poll``, or for a request to the broker, never for a record. Names of
groups begin with ``metric_group_prefix`` ("consumer-share"). What a *request* is where there is no connection
is said in :mod:`compat.kafka._metrics`; throttle times have no value there.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from kafka.metrics.stats import Avg, Count, Max, Rate, Total
from kafka.metrics.stats.rate import TimeUnit

from compat.kafka._metrics import Registry, RequestMetrics, new_registry


class ShareMetrics:
    """A share consumer's figures, for its member in the hub and for its program's thread."""

    def __init__(self, registry: Registry, prefix: str) -> None:
        self._requests = RequestMetrics(registry, prefix)
        self._polled = float("-inf")  # monotonic seconds, as all below
        self._paused = 0.0  # between the last two polls
        self._heartbeat = float("-inf")

        def add(sensor: Any, group: str, *statistics: tuple[str, str, Any]) -> None:
            for name, description, statistic in statistics:
                sensor.add(registry.metric_name(name, group, description), statistic)

        group = f"{prefix}-metrics"
        registry.add_gauges(
            group,
            {
                "last-poll-seconds-ago": (
                    "The number of seconds since the last poll() invocation.",
                    lambda: _since(self._polled),
                )
            },
        )
        self._between = registry.sensor("time-between-poll")
        add(
            self._between,
            group,
            ("time-between-poll-avg", "The average milliseconds from one poll() to the next.", Avg()),
            ("time-between-poll-max", "The most milliseconds from one poll() to the next.", Max()),
        )
        self._idle = registry.sensor("poll-idle-ratio-avg")
        idle = "The average share of time that is spent in poll() and not with records."
        add(self._idle, group, ("poll-idle-ratio-avg", idle, Avg()))

        group = f"{prefix}-fetch-manager-metrics"
        self._octets = registry.sensor("bytes-fetched")
        add(
            self._octets,
            group,
            ("fetch-size-avg", "The average number of bytes fetched per request", Avg()),
            ("fetch-size-max", "The maximum number of bytes fetched per request", Max()),
            ("bytes-consumed-rate", "The average number of bytes consumed per second", Rate()),
            ("bytes-consumed-total", "The total number of bytes consumed", Total()),
        )
        self._records = registry.sensor("records-fetched")
        add(
            self._records,
            group,
            ("records-per-request-avg", "The average number of records in each request", Avg()),
            ("records-per-request-max", "The maximum number of records in a request.", Max()),
            ("records-consumed-rate", "The average number of records consumed per second", Rate()),
            ("records-consumed-total", "The total number of records consumed", Total()),
        )
        self._sent = registry.sensor("sent-acknowledgements")
        add(
            self._sent,
            group,
            ("acknowledgements-send-rate", "Acknowledgements of records sent per second.", Rate()),
            ("acknowledgements-send-total", "Acknowledgements of records sent.", Total()),
        )
        self._failed = registry.sensor("failed-acknowledgements")
        add(
            self._failed,
            group,
            ("acknowledgements-error-rate", "Acknowledgements with an error per second.", Rate()),
            ("acknowledgements-error-total", "Acknowledgements with an error.", Total()),
        )
        self._fetches = registry.sensor("fetch-latency")
        self._fetch_count = registry.sensor("fetch-count")
        add(
            self._fetches,
            group,
            ("fetch-latency-avg", "The average time taken for a fetch request.", Avg()),
            ("fetch-latency-max", "The max time taken for any fetch request.", Max()),
            ("fetch-rate", "The number of fetch requests per second.", Rate(sampled_stat=Count())),
        )
        add(self._fetch_count, group, ("fetch-total", "The total number of fetch requests.", Total()))
        add(
            registry.sensor("fetch-throttle-time"),
            group,
            ("fetch-throttle-time-avg", "The average throttle time in ms", Avg()),
            ("fetch-throttle-time-max", "The maximum throttle time in ms", Max()),
        )

        group = f"{prefix}-coordinator-metrics"
        self._beats = registry.sensor("heartbeat-latency")
        self._beat_count = registry.sensor("heartbeat-count")
        longest = "The max time taken to receive a response to a heartbeat request"
        add(
            self._beats,
            group,
            ("heartbeat-response-time-max", longest, Max()),
            ("heartbeat-rate", "The number of heartbeats per second", Rate(sampled_stat=Count())),
        )
        add(self._beat_count, group, ("heartbeat-total", "The total number of heartbeats", Total()))
        registry.add_gauges(
            group,
            {
                "last-heartbeat-seconds-ago": (
                    "The number of seconds since the last coordinator heartbeat was sent",
                    lambda: _since(self._heartbeat),
                )
            },
        )
        self._rebalances = registry.sensor("rebalance-latency")
        hourly = Rate(TimeUnit.HOURS, Count())
        add(
            self._rebalances,
            group,
            ("rebalance-total", "The total number of rebalance events", Total()),
            ("rebalance-rate-per-hour", "The number of rebalance events per hour", hourly),
        )

    # -- of the program's thread ------------------------------------------------------------------------

    def polling(self) -> float:
        """A poll begins; its time."""
        now, last = monotonic(), self._polled
        self._polled, self._paused = now, max(now - last, 0.0) if last > 0 else 0.0
        self._between.record(self._paused * 1000)
        return now

    def polled(self, began: float) -> None:
        """It has ended."""
        taken = monotonic() - began
        if taken + self._paused > 0:
            self._idle.record(taken / (taken + self._paused))

    # -- of the member ----------------------------------------------------------------------------------

    def fetched(self, began: float, octets: int, records: int) -> None:
        """A fetch is answered with batches of so many octets, of which so many records are acquired."""
        self._fetches.record((monotonic() - began) * 1000)
        self._fetch_count.record(1)
        if records:
            self._octets.record(octets)
            self._records.record(records)
        self._requests.answered(began, received=octets)

    def acknowledged(self, began: float) -> None:
        """Acknowledgements without a fetch are answered."""
        self._requests.answered(began)

    def sent(self, records: int, failed: int) -> None:
        """So many records were acknowledged, and so many of them with an error."""
        if records:
            self._sent.record(records)
        if failed:
            self._failed.record(failed)

    def beaten(self, began: float) -> None:
        """A heartbeat is answered."""
        self._heartbeat = began
        self._beats.record((monotonic() - began) * 1000)
        self._beat_count.record(1)
        self._requests.answered(began)

    def rebalanced(self) -> None:
        """The member was given other partitions."""
        self._rebalances.record(1)


def share_metrics(config: Mapping[str, Any]) -> tuple[Registry | None, ShareMetrics | None]:
    """A consumer's registry and its sensors; None where metrics are not enabled."""
    registry = new_registry(dict(config))
    return registry, None if registry is None else ShareMetrics(registry, config["metric_group_prefix"])


def _since(moment: float) -> float:
    """Seconds since then; -1 if there was none, as in Kafka."""
    return monotonic() - moment if moment > 0 else -1.0
