"""Times to wait and intervals, where a program gives them to a node: NaN is refused, infinity is for ever."""

from __future__ import annotations

import math

import pytest

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh.observer import Observer

NAN = math.nan

WAITS = {
    "send": lambda producer, consumer, observer: producer.send(b"x", NAN),
    "flush": lambda producer, consumer, observer: producer.flush(NAN),
    "close": lambda producer, consumer, observer: producer.close(NAN),
    "poll": lambda producer, consumer, observer: consumer.poll(NAN),
    "observe": lambda producer, consumer, observer: observer.poll(NAN),
}
PRODUCER = ("head_interval", "store_timeout", "end_timeout", "linger")


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_node_refuses_to_wait_nan_seconds(wait, batch):
    with (
        Tower() as tower,
        Producer("t", tower=tower, min_stores=0, batch=batch) as producer,
        Consumer(["t"], tower=tower) as consumer,
        Observer([b"H"], tower=tower) as observer,
    ):
        with pytest.raises(ValueError, match=r"timeout is a number of seconds.*, not nan"):
            wait(producer, consumer, observer)
        assert producer.send(b"x", 60) == 0  # it is still open


@pytest.mark.parametrize("setting", PRODUCER)
def test_an_interval_of_a_producer_is_a_number(setting):
    with Tower() as tower:
        with pytest.raises(ValueError, match=f"{setting} is a number of seconds.*, not nan"):
            Producer("t", tower=tower, batch=True, **{setting: NAN})
        with pytest.raises(TypeError, match=f"{setting} is a number of seconds.*, not str: '5'"):
            Producer("t", tower=tower, batch=True, **{setting: "5"})


@pytest.mark.parametrize("setting", ["beacon_interval", "beacon_timeout"])
def test_an_interval_of_beacons_is_a_number(setting):
    with pytest.raises(ValueError, match=f"{setting} is a number of seconds, not nan"):
        Consumer(["t"], **{setting: NAN})
    with pytest.raises(TypeError, match=f"{setting} is a number of seconds, not str: '5'"):
        Consumer(["t"], **{setting: "5"})


def test_an_interval_of_a_store_is_a_number(tmp_path):
    for nan in (NAN, -NAN):
        with pytest.raises(ValueError, match="retention_check_interval is a number of seconds above 0"):
            Store(tmp_path, retention_check_interval=nan)


def test_infinity_is_for_ever(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path, tower=tower),
        Producer("t", tower=tower) as producer,
        Consumer(["t"], tower=tower, offset_reset="earliest") as consumer,
        Observer([b"H"], tower=tower) as observer,
    ):
        producer.send(b"x", math.inf)
        producer.flush(math.inf)
        assert [record.value for record in consumer.poll(math.inf)] == [b"x"]
        assert observer.poll(math.inf)
        producer.close(math.inf)
