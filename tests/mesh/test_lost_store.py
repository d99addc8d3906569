"""A store is gone with its disk and with the only copy of what it acknowledged."""

from __future__ import annotations

import shutil

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh import limits
from dafka.mesh import producer as producing
from dafka.mesh.producer import UnacknowledgedError


def lose_a_store(tower: Tower, folder, producer: Producer) -> None:
    with Store(folder, tower=tower):
        for number in range(3):
            producer.send(b"%d" % number)
        producer.flush(100)


def test_a_new_store_takes_the_place_of_a_lost_one_if_the_producer_gives_it_up(tmp_path, monkeypatch):
    monkeypatch.setattr(producing, "SHORTEST_STORE_TIMEOUT", 0.0)
    with Tower() as tower, Producer("hello", tower=tower, store_timeout=0.5, head_interval=0.2) as producer:
        lose_a_store(tower, tmp_path / "lost", producer)
        producer.send(b"3")
        with Store(tmp_path / "new", tower=tower) as store:
            producer.flush(100)
            assert store.heads() == {(b"hello", producer.address): 3}
            with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
                assert [record.value for record in consumer.poll(timeout=200)] == [b"3"]
                assert [(gap.first, gap.next) for gap in consumer.gaps] == [(0, 3)]


def test_otherwise_followers_wait_and_say_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(limits, "UNANSWERED_SECONDS", 0.5)
    with Tower() as tower, Producer("hello", tower=tower, head_interval=0.2) as producer:
        lose_a_store(tower, tmp_path / "lost", producer)
        with (
            Store(tmp_path / "new", tower=tower) as store,
            Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        ):
            until(lambda: store.metrics()["partitions_unanswered"] == 1)
            until(lambda: consumer.metrics()["partitions_unanswered"] == 1)
            assert (store.metrics()["lag"], consumer.metrics()["lag"]) == (3, 3)
            where = f"topic 'hello', partition {producer.address}, sequences 0 to 2"
            for who in (f"the store in {tmp_path / 'new'}", f"the consumer {consumer.address}"):
                said = f"{who}: 1 partition is known to have records that nobody sends, the first of them "
                until(lambda said=said: caplog.text.count(said + where) == 1)
            with Store(tmp_path / "lost", tower=tower):  # it was not lost after all
                until(lambda: store.metrics()["lag"] == 0)
                assert [next(consumer).value for _ in range(3)] == [b"0", b"1", b"2"]
            assert consumer.gaps == []


def test_a_store_that_comes_back_without_its_last_records_goes_on_behind_them(tmp_path, caplog):
    """As after a power cut, or from a copy of the folder."""
    with Tower() as tower, Producer("hello", tower=tower, head_interval=0.2) as producer:
        producer.send(b"0")
        with Store(tmp_path / "db", tower=tower):
            producer.flush(100)
        shutil.copytree(tmp_path / "db", tmp_path / "copy")
        with Store(tmp_path / "db", tower=tower):
            producer.send(b"1")
            producer.flush(100)
        producer.send(b"2")
        with (
            Store(tmp_path / "copy", tower=tower) as store,
            Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
        ):
            producer.flush(100)
            assert store.heads() == {(b"hello", producer.address): 2}
            assert [next(consumer).value for _ in range(2)] == [b"0", b"2"]
            assert [(gap.first, gap.next) for gap in consumer.gaps] == [(1, 2)]
    lost = f"topic 'hello' partition {producer.address}: nobody has records 1 to 1 any more"
    assert caplog.text.count(lost) == 1


@pytest.mark.parametrize("wrong", [0, 29.9, -1])
def test_a_time_in_which_a_living_store_may_be_silent_is_refused(wrong):
    with Tower() as tower, pytest.raises(ValueError, match="store_timeout is a time of 30 s or more"):
        Producer("hello", tower=tower, store_timeout=wrong)


def test_an_acknowledgement_that_never_comes_is_still_told(tmp_path):
    with Tower() as tower:
        producer = Producer("hello", tower=tower)
        lose_a_store(tower, tmp_path / "lost", producer)
        producer.send(b"3")
        with pytest.raises(UnacknowledgedError, match="1 record of topic 'hello'"):
            producer.close(0.2)
