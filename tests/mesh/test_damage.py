"""Damaged values of a store that is to pass over them: consumers learn of a gap and come to the end."""

from __future__ import annotations

import time

import pytest
from broker.damaged import LARGE, harm_last

from dafka import Consumer, Producer, Store, Tower


@pytest.mark.parametrize("count", [1, 3])
def test_a_consumer_comes_to_the_end_of_a_partition_whose_last_values_are_damaged(tmp_path, count):
    folder = tmp_path / "db"
    with Tower() as tower:
        with Store(folder, tower=tower), Producer("n", tower=tower) as producer:
            for letter in (b"a", b"b", b"c"):
                producer.send(letter + LARGE)
                producer.flush(100)
        harm_last(folder, count)
        whole = [b"a", b"b", b"c"][: 3 - count]
        seen: list[bytes] = []
        with (
            Store(folder, tower=tower, on_damage="skip"),
            Consumer(["n"], tower=tower, offset_reset="earliest") as consumer,
        ):
            deadline = time.monotonic() + 100
            while seen != whole or not consumer.gaps:
                assert time.monotonic() < deadline, seen
                seen += [record.value[:1] for record in consumer.poll(0.1)]
            (gap,) = consumer.gaps
            assert (gap.first, gap.next) == (len(whole), 3)
            assert consumer.metrics()["lag"] == 0
