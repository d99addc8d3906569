"""A producer of raw records as its user has it: its input, its waits, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub.hub import get_hub
from dafka.mesh import limits
from dafka.mesh.address import InvalidAddressError, InvalidTopicError
from dafka.mesh.producer import (
    AddressInUseError,
    MessageKindError,
    ProducerClosedError,
    RecordTooLargeError,
    SendTimeoutError,
    UnacknowledgedError,
)
from dafka.protocol.batch_writer import encode_batch


@pytest.fixture
def tower() -> Iterator[Tower]:
    with Tower() as one:
        yield one


@pytest.fixture
def producer(tower: Tower) -> Iterator[Producer]:
    """For consumers only, so that nothing has to be acknowledged."""
    with Producer("hello", tower=tower, min_stores=0) as one:
        yield one


def test_records_are_numbered_from_0_in_the_order_of_sending(tower, producer):
    assert [producer.send(b"%d" % number) for number in range(5)] == list(range(5))
    with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
        taken = [next(consumer) for _ in range(5)]
    assert [(record.offset, record.value) for record in taken] == [(n, b"%d" % n) for n in range(5)]
    assert {record.partition for record in taken} == {producer.address}


@pytest.mark.parametrize("value", [bytearray(b"value"), memoryview(b"value")])
def test_a_value_is_taken_as_it_is_when_it_is_sent(tower, producer, value):
    producer.send(value)
    if isinstance(value, bytearray):
        value[:] = b"later"
    with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
        assert next(consumer).value == b"value"


@pytest.mark.parametrize("value", ["text", None, 5])
def test_values_other_than_octets_are_refused(producer, value):
    with pytest.raises(TypeError, match=type(value).__name__):
        producer.send(value)
    assert producer.send(b"next") == 0


@pytest.mark.parametrize("more", [{"key": b"k"}, {"headers": [("a", b"b")]}, {"timestamp": 5}])
def test_raw_records_have_a_value_only(producer, more):
    with pytest.raises(MessageKindError, match="batch=True"):
        producer.send(b"value", **more)


def test_a_value_that_readers_would_take_for_a_batch_is_refused(producer):
    with pytest.raises(MessageKindError, match="record batches"):
        producer.send(encode_batch([(1000, None, b"value", ())]))


def test_a_record_larger_than_nodes_take_is_refused(producer, monkeypatch):
    monkeypatch.setattr(limits, "RECORD_OCTETS", 10)
    with pytest.raises(RecordTooLargeError, match="at most 10 octets, this one has 11"):
        producer.send(bytes(11))
    assert producer.send(bytes(10)) == 0


def test_flush_waits_until_a_store_has_everything(tower, tmp_path):
    with Producer("hello", tower=tower) as producer, Store(tmp_path / "db", tower=tower) as store:
        for _ in range(100):
            producer.send(b"value")
        producer.flush(100)
        assert producer.unacknowledged == 0
        assert list(store.heads().values()) == [99]


def test_records_not_acknowledged_in_time_are_named(tower):
    producer = Producer("hello", tower=tower)
    producer.send(b"one")
    producer.send(b"two")
    with pytest.raises(UnacknowledgedError) as caught:
        producer.flush(0.1)
    error = caught.value
    assert (error.topic, error.partition, error.first, error.last) == ("hello", producer.address, 0, 1)
    assert producer.unacknowledged == 2
    with pytest.raises(UnacknowledgedError):
        producer.close(0.1)
    producer.close()


def test_a_thread_that_sends_much_gives_way_to_the_hub_and_one_that_sends_little_does_not(tower, monkeypatch):
    monkeypatch.setattr(limits, "WAY_RECORDS", 4)
    hub = get_hub()
    given: list[int] = []
    go_on = threading.Event()
    with Producer("ways", tower=tower, min_stores=0) as producer:
        monkeypatch.setattr(hub, "give_way", lambda: given.append(producer._node.next))
        for _ in range(8):
            producer.send(b"alone")
            until(lambda: not producer._node.pending)
        assert given == []
        hub.post(go_on.wait, 60)
        try:
            for _ in range(9):
                producer.send(b"one of many")
        finally:
            go_on.set()
    assert given == [13, 17]


def test_sending_waits_for_room_no_longer_than_it_is_told_to(tower, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 1000)
    monkeypatch.setattr(limits, "PENDING_RECORDS", 5)
    with Producer("hello", tower=tower) as producer:
        with pytest.raises(SendTimeoutError, match=r"no room for a record of topic 'hello' within 0\.2 s"):
            for _ in range(100):
                producer.send(bytes(400), timeout=0.2)
        sent = producer.unacknowledged
        assert 5 <= sent < 20
        with Store(tmp_path / "db", tower=tower):
            assert producer.send(bytes(400), timeout=200) == sent
            producer.flush(100)


def test_a_producer_that_is_closed_takes_nothing(tower):
    producer = Producer("hello", tower=tower, min_stores=0)
    producer.close()
    producer.close()
    with pytest.raises(ProducerClosedError, match="topic 'hello' is closed"):
        producer.send(b"value")


def test_closing_wakes_callers_waiting_for_room(tower, monkeypatch):
    monkeypatch.setattr(limits, "RETAINED_BYTES", 100)
    monkeypatch.setattr(limits, "PENDING_RECORDS", 1)
    producer = Producer("hello", tower=tower)
    errors: list[BaseException] = []

    def send() -> None:
        try:
            while True:
                producer.send(bytes(100))
        except ProducerClosedError as error:
            errors.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    until(lambda: producer._node.waiting)
    with pytest.raises(UnacknowledgedError):
        producer.close(0.0)
    thread.join(100)
    assert len(errors) == 1


def test_an_error_in_the_block_is_not_hidden_behind_what_is_not_acknowledged(tower, caplog):
    with pytest.raises(ZeroDivisionError), Producer("hello", tower=tower) as producer:
        producer.send(b"value")
        _ = 1 / 0
    assert "1 record of topic 'hello'" in caplog.text


def test_threads_share_a_producer_and_no_number_is_given_twice(tower, producer):
    offsets: list[int] = []

    def send() -> None:
        mine = [producer.send(b"value") for _ in range(500)]
        assert mine == sorted(mine)
        offsets.extend(mine)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert sorted(offsets) == list(range(2000))
    until(lambda: producer.metrics()["records_out"] == 2000)


def test_an_address_has_one_producer_in_a_process(tower):
    alone: dict[str, Any] = {
        "address": "AB" * 16,
        "min_stores": 0,
        "end_timeout": 0.1,
        "end_unknown": "begin",
    }
    with Producer("hello", tower=tower, **alone) as first:
        assert first.address == "AB" * 16
        with pytest.raises(AddressInUseError, match="has the address"):
            Producer("hello", tower=tower, **alone)
    Producer("hello", tower=tower, **alone).close()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"min_stores": -1}, ValueError),
        ({"min_stores": "2"}, ValueError),
        ({"head_interval": 0}, ValueError),
        ({"store_timeout": 1}, ValueError),
        ({"address": "ab"}, InvalidAddressError),
        ({"linger": 0.1}, ValueError),
    ],
)
def test_settings_that_cannot_be_are_named(tower, wrong, error):
    with pytest.raises(error, match=next(iter(wrong)) if error is ValueError else "ab"):
        Producer("hello", tower=tower, **wrong)


def test_a_topic_that_cannot_be_is_refused(tower):
    with pytest.raises(InvalidTopicError):
        Producer("", tower=tower)
