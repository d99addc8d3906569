"""The hub's side of a producer: runs of bounded size, and waiting callers are told when it cannot go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from timing import until

from dafka import Producer, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.producer_node import ProducerClosedError, ProducerNode
from dafka.protocol.runs import Run


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as one:
        yield one


def published(node: ProducerNode, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that the node publishes from now on."""
    runs: list[Run] = []
    publish = node.endpoint.publish

    def note(origin: object, outputs: list[Run]) -> None:
        runs.extend(output for output in outputs if isinstance(output, Run))
        publish(node, outputs)

    monkeypatch.setattr(node.endpoint, "publish", note)
    return runs


def hand_over(node: ProducerNode, *values: bytes) -> None:
    """As sending threads do, all at once."""

    def fill() -> None:
        node.pending.extend(values)
        node.next += len(values)
        node.sent_bytes += sum(map(len, values))
        node.signal()

    get_hub().run(fill)


def test_waiting_records_are_published_in_runs_of_bounded_length(producer, monkeypatch):
    monkeypatch.setattr(limits, "RUN_RECORDS", 10)
    runs = published(producer._node, monkeypatch)
    hand_over(producer._node, *[b"%d" % number for number in range(25)])
    until(lambda: sum(len(run.contents) for run in runs) == 25)
    assert [(run.first, len(run.contents)) for run in runs] == [(0, 10), (10, 10), (20, 5)]
    assert [content for run in runs for content in run.contents] == [b"%d" % number for number in range(25)]


def test_and_of_bounded_size_but_for_single_records(producer, monkeypatch):
    monkeypatch.setattr(limits, "RUN_BYTES", 100)
    runs = published(producer._node, monkeypatch)
    hand_over(producer._node, *[bytes(40)] * 3, bytes(500), bytes(10))
    until(lambda: sum(len(run.contents) for run in runs) == 5)
    assert [[len(content) for content in run.contents] for run in runs] == [[40, 40], [40], [500], [10]]
    assert producer._node.drained_bytes == producer._node.sent_bytes


def test_while_the_nodes_of_this_process_are_behind_nothing_is_published(producer, monkeypatch):
    node = producer._node
    runs = published(node, monkeypatch)
    waiting: list[Callable[[], object]] = []
    congested = [True]
    monkeypatch.setattr(type(node.endpoint), "congested", property(lambda _: congested[0]))
    monkeypatch.setattr(node.endpoint, "when_clear", waiting.append)
    hand_over(node, b"value")
    until(lambda: waiting)
    assert runs == []
    congested[0] = False
    get_hub().run(waiting[0])
    until(lambda: runs)


def test_after_something_unexpected_senders_and_flush_get_the_error(producer, monkeypatch, caplog):
    node = producer._node

    def fails(*_: object) -> None:
        raise RuntimeError("nobody expects it")

    monkeypatch.setattr(node._role, "publish", fails)
    producer.send(b"value")
    until(lambda: node.failed)
    with pytest.raises(ProducerClosedError, match="nobody expects it"):
        producer.send(b"value")
    with pytest.raises(ProducerClosedError, match="nobody expects it"):
        producer.flush(100)
    with pytest.raises(ProducerClosedError):
        producer.close()
    assert "Traceback" in caplog.text


def test_with_no_store_to_wait_for_the_oldest_are_let_go_of(producer, monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 1000)
    monkeypatch.setattr(limits, "RUN_BYTES", 100)
    for _ in range(50):
        producer.send(bytes(100))
    until(lambda: producer.metrics()["records_out"] == 50)
    assert producer.metrics()["retained_bytes"] <= 1000
    assert producer.metrics()["unacknowledged"] == 0
