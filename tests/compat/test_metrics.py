"""What ``metrics()`` says: kafka-python's groups and names, with figures that follow what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from types import SimpleNamespace
from typing import Any, ClassVar

import kafka
import pytest
from kafka.metrics.metrics_reporter import AbstractMetricsReporter
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka._metrics import ProducerMetrics, new_registry
from dafka.testing import TestBroker

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 6)}

Consumers = Callable[..., KafkaConsumer]


def names(metrics: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
    return {(group, name) for group, figures in metrics.items() for name in figures}


def described(raw: dict[Any, Any]) -> dict[tuple[str, str], Any]:
    """Descriptions and tags. The connection that kafka-python bootstraps by counts as the one to broker 0."""
    return {
        (one.group.replace("bootstrap-0", "0"), one.name): (one.description, set(one.tags)) for one in raw
    }


@pytest.fixture
def theirs(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client of kafka-python, of the class that the parameter names, which is connected to nothing."""
    client = getattr(kafka, request.param)(**NOWHERE)
    yield client
    client.close()


@pytest.mark.parametrize("theirs", ["KafkaProducer", "KafkaConsumer"], indirect=True)
def test_groups_and_names_are_those_of_kafka_python(dafka_broker: TestBroker, theirs: Any) -> None:
    ours = KafkaProducer if isinstance(theirs, kafka.KafkaProducer) else KafkaConsumer
    with ours(bootstrap_servers=dafka_broker.bootstrap_servers) as client:
        figures = client.metrics()
        raw = client.metrics(raw=True)
    assert described(theirs.metrics(raw=True)).items() <= described(raw).items()
    assert names(figures) == set(described(raw))


def test_a_producer_counts_its_records_and_bytes(kafka_producer: KafkaProducer) -> None:
    for _ in range(100):
        kafka_producer.send("t", bytes(1000))
    kafka_producer.flush()
    figures = kafka_producer.metrics()["producer-metrics"]
    assert figures["record-send-total"] == 100
    assert figures["record-send-rate"] > 0
    assert figures["byte-rate"] > 0
    assert 1000 < figures["batch-size-avg"] <= figures["batch-size-max"] < 20_000
    assert 1000 < figures["record-size-avg"] < 1100
    assert 0.9 < figures["compression-rate-avg"] <= 1.1
    assert figures["request-latency-max"] > 0
    assert figures["requests-in-flight"] == 0
    assert figures["record-error-rate"] == figures["record-retry-rate"] == 0
    assert 0 <= figures["metadata-age"] < 60
    assert kafka_producer.metrics()["producer-topic-metrics.t"]["record-send-rate"] > 0


def test_a_call_of_many_batches_counts_as_if_they_were_recorded_one_by_one() -> None:
    now, sizes = 1000 * monotonic(), [300.0, 1000.0, 50.0, 650.0]
    figures = []
    for parts in ([sizes], [[size] for size in sizes]):
        registry = new_registry(KafkaProducer.DEFAULT_CONFIG)
        assert registry is not None
        metrics = ProducerMetrics(registry)
        for part in parts:
            batches = [SimpleNamespace(content=bytes(int(size)), size=size, count=2) for size in part]
            for batch in batches:
                batch.created = now / 1000 - batch.size
            metrics.answered(now / 1000, [("t", batches)])
        figures.append(registry.by_group(raw=False)["producer-metrics"])
    for name in ("batch-size", "record-size", "record-queue-time"):
        for kind in ("avg", "max"):
            assert figures[0][f"{name}-{kind}"] == pytest.approx(figures[1][f"{name}-{kind}"])
    assert (figures[0]["batch-size-avg"], figures[0]["batch-size-max"]) == (500, 1000)


def test_compression_shows(dafka_broker: TestBroker) -> None:
    with KafkaProducer(
        bootstrap_servers=dafka_broker.bootstrap_servers, compression_type="gzip", linger_ms=50
    ) as producer:
        for _ in range(100):
            producer.send("t", bytes(1000))
        producer.flush()
        assert producer.metrics()["producer-metrics"]["compression-rate-avg"] < 0.5


def test_retries_and_errors_show(dafka_broker: TestBroker, kafka_producer: KafkaProducer) -> None:
    dafka_broker.fail_next_produce(kafka.errors.NotLeaderForPartitionError)
    kafka_producer.send("t", b"again").get(100)
    assert kafka_producer.metrics()["producer-metrics"]["record-retry-rate"] > 0
    dafka_broker.fail_next_produce(kafka.errors.InvalidRecordError)
    with pytest.raises(kafka.errors.InvalidRecordError):
        kafka_producer.send("t", b"never").get(100)
    assert kafka_producer.metrics()["producer-metrics"]["record-error-rate"] > 0
    assert kafka_producer.metrics()["producer-topic-metrics.t"]["record-error-rate"] > 0


def test_a_consumer_counts_its_records_and_bytes(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.preload("t", [bytes(100)] * 50)
    consumer = kafka_consumer_factory("t", max_poll_records=10)
    assert sum(map(len, until(lambda: consumer.poll(100)).values())) == 10
    figures = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert figures["records-consumed-total"] == 10
    assert figures["records-lag-max"] == 40
    assert figures["records-per-request-avg"] == 50
    assert figures["fetch-size-max"] > 5000
    for rate in ("bytes-consumed-rate", "records-consumed-rate", "fetch-rate", "fetch-latency-max"):
        assert figures[rate] > 0
    assert consumer.metrics()["consumer-metrics"]["incoming-byte-rate"] > 0
    assert consumer.metrics()["consumer-metrics"]["connection-count"] == 1


def test_a_member_counts_joins_commits_and_heartbeats(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.preload("t", [b"v"])
    consumer = kafka_consumer_factory("t", group_id="g", heartbeat_interval_ms=20)
    until(lambda: consumer.poll(100))
    consumer.commit()

    def figures() -> dict[str, Any]:
        return consumer.metrics()["consumer-coordinator-metrics"]

    assert figures()["assigned-partitions"] == 1
    for rate in ("join-rate", "sync-rate", "commit-rate", "commit-latency-max"):
        assert figures()[rate] > 0
    until(lambda: figures()["heartbeat-rate"] > 0)
    assert 0 <= figures()["last-heartbeat-seconds-ago"] < 60


def test_figures_of_one_topic_carry_its_name(
    dafka_broker: TestBroker, kafka_consumer_factory: Consumers
) -> None:
    dafka_broker.preload("a.b", [b"v"])
    consumer = kafka_consumer_factory(metric_group_prefix="mine", client_id="me")
    consumer.assign([TopicPartition("a.b", 0)])
    until(lambda: consumer.poll(100))
    tags = [name.tags for name in consumer.metrics(raw=True) if name.name == "records-consumed-rate"]
    assert {"client-id": "me"} in tags and {"client-id": "me", "topic": "a_b"} in tags
    assert "mine-fetch-manager-metrics" in consumer.metrics()


def test_reporters_are_told_of_every_metric(dafka_broker: TestBroker) -> None:
    class Reporter(AbstractMetricsReporter):
        told: ClassVar[set[str]] = set()
        closed: ClassVar[list[bool]] = []

        def init(self, metrics: Any) -> None:
            self.told.update(metric.metric_name.name for metric in metrics)

        def metric_change(self, metric: Any) -> None:
            self.told.add(metric.metric_name.name)

        def metric_removal(self, metric: Any) -> None:
            self.told.discard(metric.metric_name.name)

        def configure(self, configs: Any) -> None:
            pass

        def close(self) -> None:
            self.closed.append(True)

    with KafkaProducer(
        bootstrap_servers=dafka_broker.bootstrap_servers, metric_reporters=[Reporter]
    ) as producer:
        assert {name.name for name in producer.metrics(raw=True)} <= Reporter.told
    assert Reporter.closed == [True]


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer])
def test_metrics_can_be_switched_off(dafka_broker: TestBroker, client: Any) -> None:
    with client(bootstrap_servers=dafka_broker.bootstrap_servers, metrics_enabled=False) as made:
        assert made.metrics() is None
