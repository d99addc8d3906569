"""How many stores have a record is counted by distinct store, by what they are called and not by ACKs."""

from __future__ import annotations

import pytest
from timing import until

from dafka import Producer, Store, Tower
from dafka.mesh.producer import UnacknowledgedError


def test_one_store_is_one_however_often_it_acknowledges_and_starts_again(tmp_path):
    with Tower() as tower, Producer("hello", tower=tower, min_stores=2, head_interval=0.1) as producer:
        producer.send(b"value")
        for _ in range(2):
            with Store(tmp_path / "one", tower=tower) as store:
                until(lambda store=store: store.heads())
                with pytest.raises(UnacknowledgedError):
                    producer.flush(1.0)  # in which the HEADs have it acknowledge again
        assert producer.metrics()["retained_records"] == 1
        with Store(tmp_path / "other", tower=tower) as other:
            producer.flush(100)  # the first one is gone: the producer still has what the second one needs
            assert list(other.heads().values()) == [0]
        assert producer.metrics()["retained_records"] == 0


def test_stores_of_one_process_are_several(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "one", tower=tower) as one,
        Store(tmp_path / "other", tower=tower) as other,
        Producer("hello", tower=tower, min_stores=2) as producer,
    ):
        for number in range(100):
            producer.send(b"%d" % number)
        producer.flush(100)
        assert one.heads() == other.heads() == {(b"hello", producer.address): 99}
