"""Contents pass a node as they were cut from the receive buffer; who takes records makes them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.commit.writer import Writer
from dafka.hub.hub import get_hub
from dafka.mesh.record import Record
from dafka.protocol.runs import Inbound
from dafka.protocol.stretches import Stretches

COUNT = 1000
FAR: dict[str, Any] = {"transport": "zmtp", "beacon_interval": 0.1}
"""Nodes with timeouts of their own are on endpoints of their own, and connected by TCP."""


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """The contents that were cut from receive buffers, by their identity."""
    contents: dict[int, bytes] = {}
    read = Stretches.read

    def noted(self: Stretches, messages: Any) -> Inbound:
        inbound = read(self, messages)
        for run in inbound.runs:
            contents.update((id(content), content) for content in run.contents)
        return inbound

    monkeypatch.setattr(Stretches, "read", noted)
    return contents


@contextmanager
def hub_stands_still() -> Iterator[None]:
    """In here nothing may wait for the hub."""
    stands, goes_on = threading.Event(), threading.Event()
    waited_for: list[bool] = []

    def stand() -> None:
        stands.set()
        waited_for.append(not goes_on.wait(100))

    get_hub().post(stand)
    stands.wait()
    try:
        yield
    finally:
        goes_on.set()
        until(lambda: waited_for)
    assert waited_for == [False]


@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batches"])
def test_the_log_is_given_the_octets_that_were_cut(monkeypatch, tmp_path, cut, batch):
    appended: list[bytes] = []
    append = Writer.append

    def noted(
        self: Writer, partition: Any, first: int, contents: list[bytes], *rest: Any, **more: Any
    ) -> None:
        appended.extend(contents)
        append(self, partition, first, contents, *rest, **more)

    monkeypatch.setattr(Writer, "append", noted)
    with (
        Tower() as tower,
        Store(tmp_path, tower=tower, beacon_timeout=33.0, **FAR),
        Producer("t", tower=tower, batch=batch, beacon_timeout=34.0, **FAR) as producer,
    ):
        for number in range(COUNT):
            producer.send(b"%100d" % number)
        producer.flush(100)
    assert len(appended) == COUNT or batch
    assert all(cut.get(id(content)) is content for content in appended)


def test_the_value_of_a_record_is_the_octets_that_were_cut(cut):
    with (
        Tower() as tower,
        Consumer(["t"], tower=tower, offset_reset="earliest", beacon_timeout=33.0, **FAR) as consumer,
        Producer("t", tower=tower, min_stores=0, beacon_timeout=34.0, **FAR) as producer,
    ):
        for number in range(COUNT):
            producer.send(b"%100d" % number)
        values = [next(consumer).value for _ in range(COUNT)]
    assert values == [b"%100d" % number for number in range(COUNT)]
    assert all(cut.get(id(value)) is value for value in values)


@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batches"])
def test_the_thread_that_takes_records_makes_them(batch):
    options: dict[str, Any] = {"batch": True, "linger": 60} if batch else {}
    with (
        Tower() as tower,
        Consumer(["t"], tower=tower, offset_reset="earliest", beacon_timeout=33.0, **FAR) as consumer,
        Producer("t", tower=tower, min_stores=0, beacon_timeout=34.0, **options, **FAR) as producer,
    ):

        def made() -> int:
            return sum(type(one) is Record and one.partition == producer.address for one in gc.get_objects())

        for number in range(COUNT):
            producer.send(b"%100d" % number)
        producer.flush(100)
        messages = 1 if batch else COUNT
        until(lambda: consumer.metrics()["inbox_records"] == messages)
        assert not made()
        with hub_stands_still():
            records = consumer.poll(0.0, COUNT)
        assert [record.value for record in records] == [b"%100d" % number for number in range(COUNT)]
        assert made() == COUNT
