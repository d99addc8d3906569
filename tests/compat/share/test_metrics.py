"""``metrics()`` of a share consumer: Kafka's groups and names, with figures that follow what happens."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.errors import KafkaConfigurationError

from compat.kafka.share._config import DEFAULTS, read_config
from compat.kafka.share._metrics import share_metrics
from tests.compat.share.scene import Scene, poll, until

FETCHES = {
    *("fetch-size-avg", "fetch-size-max", "bytes-consumed-rate", "bytes-consumed-total"),
    *("records-per-request-avg", "records-per-request-max", "records-consumed-rate"),
    *("records-consumed-total", "acknowledgements-send-rate", "acknowledgements-send-total"),
    *("acknowledgements-error-rate", "acknowledgements-error-total", "fetch-latency-avg"),
    *("fetch-latency-max", "fetch-rate", "fetch-total", "fetch-throttle-time-avg", "fetch-throttle-time-max"),
}
MEMBERS = {
    *("heartbeat-response-time-max", "heartbeat-rate", "heartbeat-total", "last-heartbeat-seconds-ago"),
    *("rebalance-total", "rebalance-rate-per-hour"),
}
POLLS = {"last-poll-seconds-ago", "time-between-poll-avg", "time-between-poll-max", "poll-idle-ratio-avg"}


def test_groups_and_names_are_those_of_kafkas_share_consumer(scene: Scene) -> None:
    figures = scene.consumer().metrics()
    assert figures is not None
    assert set(figures["consumer-share-fetch-manager-metrics"]) == FETCHES
    assert set(figures["consumer-share-coordinator-metrics"]) == MEMBERS
    assert set(figures["consumer-share-metrics"]) >= POLLS | {"connection-count", "request-rate"}


def test_records_requests_and_acknowledgements_are_counted(scene: Scene) -> None:
    scene.send(b"a" * 500, b"b", b"c")
    consumer = scene.consumer()
    for most in (2, 1):
        poll(consumer, max_records=most)
    consumer.commit()
    figures: Any = consumer.metrics()
    fetches = figures["consumer-share-fetch-manager-metrics"]
    assert fetches["records-consumed-total"] == 3
    assert (fetches["records-per-request-max"], fetches["records-per-request-avg"]) == (2, 1.5)
    assert fetches["bytes-consumed-total"] > 500
    assert (fetches["acknowledgements-send-total"], fetches["acknowledgements-error-total"]) == (3, 0)
    assert fetches["fetch-total"] >= 2
    assert fetches["fetch-latency-max"] > 0
    assert figures["consumer-share-coordinator-metrics"]["heartbeat-total"] >= 1
    assert figures["consumer-share-coordinator-metrics"]["rebalance-total"] == 1
    assert 0 <= figures["consumer-share-coordinator-metrics"]["last-heartbeat-seconds-ago"] < 60
    assert 0 <= figures["consumer-share-metrics"]["last-poll-seconds-ago"] < 60
    assert 0 < figures["consumer-share-metrics"]["poll-idle-ratio-avg"] <= 1
    assert figures["consumer-share-metrics"]["incoming-byte-rate"] > 0


def test_acknowledgements_that_fail_are_counted(scene: Scene) -> None:
    scene.configure("g", share_record_lock_duration_ms="30")
    scene.send(b"a", b"b")
    slow = scene.consumer()
    poll(slow)
    poll(scene.consumer())
    slow.commit()
    figures: Any = slow.metrics()
    until(lambda: slow.metrics()["consumer-share-fetch-manager-metrics"]["acknowledgements-error-total"] == 2)
    assert figures["consumer-share-fetch-manager-metrics"]["acknowledgements-send-total"] == 2


def test_figures_of_what_has_not_happened_are_none(scene: Scene) -> None:
    consumer = scene.consumer(group_id="another")
    figures: Any = consumer.metrics()
    assert figures["consumer-share-metrics"]["last-poll-seconds-ago"] == -1
    assert figures["consumer-share-fetch-manager-metrics"]["records-consumed-total"] == 0


def test_metrics_are_configured_as_those_of_kafka_python(scene: Scene) -> None:
    assert scene.consumer(metrics_enabled=False).metrics() is None
    raw = scene.consumer(metric_group_prefix="mine", client_id="me").metrics(raw=True)
    assert raw is not None
    assert {name.group.split("-")[0] for name in raw if name.group != "kafka-metrics-count"} == {"mine"}
    assert {name.tags["client-id"] for name in raw} == {"me"}
    with pytest.raises(KafkaConfigurationError, match="metrics_num_samples is a whole number from 1"):
        scene.consumer(metrics_num_samples=0)


def test_a_poll_of_no_time_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    _, figures = share_metrics(read_config(DEFAULTS, {"group_id": "g"}))
    assert figures is not None
    monkeypatch.setattr("compat.kafka.share._metrics.monotonic", lambda: 1000.0)
    figures.polled(figures.polling())
    figures.polled(figures.polling())
