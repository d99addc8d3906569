"""Where positions begin, what they forbid, and what goes on around them: retention, damage, lost records."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import gevent
import gevent.event
import pytest
from broker.clients import Client, batch
from broker.damaged import LARGE
from broker.positions.configuring import TOPIC, configure, create
from broker.positions.octets import Octets, produce, size
from broker.transactions.transactional import Producer
from kafka.errors import (
    KafkaStorageError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from timing import until

from dafka import Broker
from dafka.broker.interface.broker import EARLIEST
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import PositionOutOfRangeError
from dafka.broker.positions.checkpoints import POSITIONS
from dafka.broker.positions.reading import Reading
from dafka.log import LogWriteError
from dafka.log.limits import FILE_BYTES
from dafka.protocol import raw

# -- retention ----------------------------------------------------------------------------------


def test_retention_changes_no_position(client: Client) -> None:
    create(client)
    octets = Octets(client)
    messages = [[b"%d" % number + LARGE] for number in range(9)]
    for message in messages:
        produce(client, [message])
    whole, end = octets.read(0), octets.end
    whole = octets.read(0)
    assert configure(client, TOPIC, retention_bytes=str(4 * FILE_BYTES))[0] is None
    until(lambda: client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset > 3)
    first = octets.first
    assert 0 < first < end
    assert octets.end == end
    assert octets.read(first) == whole[first:]


def test_unmeasured_batches_are_measured_before_retention_drops_them(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        Octets(client)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        for _ in range(3):
            produce(client, [[LARGE]])
        assert configure(client, TOPIC, retention_ms="1000")[0] is None
        until(lambda: client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset == 3)
        octets = Octets(client)
        assert octets.first == octets.end == 3 * size([LARGE])


def test_a_codec_that_is_missing_does_not_keep_records_for_ever(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    octets = Octets(client)
    produce(client, [[b"before"]])
    client.call("produce", {("t", 0): [batch(b"x" * 100, compression="gzip")]})
    monkeypatch.setattr("dafka.protocol.compression.is_available", lambda name: False)
    with pytest.raises(UnsupportedCompressionTypeError, match="not installed"):
        octets.call("catch_up")
    assert octets.positions.end == size([b"before"])
    assert octets.read(0) == raw.encode_message([b"before"])
    assert client.call("delete_records", {("t", 0): 2})["t", 0].error is None
    assert octets.end == size([b"before"])


def test_batches_in_front_of_one_with_a_missing_codec_can_be_read(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client)
    octets = Octets(client)
    produce(client, [[b"before"]])
    client.call("produce", {("t", 0): [batch(b"x" * 100, compression="gzip")]})
    assert octets.end == size([b"before"], [b"x" * 100])
    monkeypatch.setattr("dafka.protocol.compression.is_available", lambda name: False)
    assert octets.read(0) == raw.encode_message([b"before"])
    with pytest.raises(UnsupportedCompressionTypeError, match="not installed"):
        octets.read(size([b"before"]))


@pytest.mark.parametrize("method", ["read", "messages", "bounds", "offset_of"])
@pytest.mark.parametrize("written", [1, 2])
def test_positions_of_records_that_are_deleted_while_they_are_read_name_no_others(
    client: Client, monkeypatch: pytest.MonkeyPatch, method: str, written: int
) -> None:
    create(client)
    octets = Octets(client)
    for number in range(6):
        produce(client, [[b"%d" % number]] * written)
    end, hub = octets.end, client.connection.hub
    reading, goes_on, read = Event(), gevent.event.Event(), Reading._read

    def held(self: Reading, *arguments: Any) -> Any:
        if not reading.is_set():
            reading.set()
            goes_on.wait(100)
        return read(self, *arguments)

    monkeypatch.setattr(Reading, "_read", held)
    rest = (1 << 20,) if method in ("read", "messages") else ()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(octets.call, method, size([b"0"]), *rest)
        until(reading.is_set)
        assert client.call("delete_records", {("t", 0): 4 * written})["t", 0].error is None
        hub.run(goes_on.set)
        with pytest.raises(PositionOutOfRangeError) as told:
            asked.result(100)
    assert (told.value.first, told.value.end) == (4 * written * size([b"0"]), end)


def test_nothing_is_measured_while_records_are_deleted(client: Client) -> None:
    """A transaction that ends meanwhile would get positions for records that are gone after a crash."""
    create(client)
    octets = Octets(client)
    producer = Producer(client)
    producer.send(b"open")
    hub, core = client.connection.hub, client.core
    stored = core._topics.partition("t", 0).stored
    deleting, go_on, seen = gevent.event.Event(), gevent.event.Event(), []

    def delete() -> None:
        with core.positions.trimming(stored, 1):
            deleting.set()
            go_on.wait()
            core._writer.trim_and_wait(stored, before_offset=1)

    def look() -> None:
        octets.positions.catch_up()
        seen.append(octets.positions.end)

    hub.run(lambda: hub.spawn(delete) and deleting.wait())
    producer.commit()
    hub.run(lambda: hub.spawn(look) and gevent.sleep(0.05))
    assert seen == []
    hub.run(go_on.set)
    until(lambda: seen)
    assert seen == [0]
    produce(client, [[b"behind"]])
    assert octets.all() == [[b"behind"]]
    assert octets.first == 0


# -- many checkpoints ---------------------------------------------------------------------------


def rows(client: Client) -> list[str]:
    return client.connection.hub.run(lambda: list(client.core.log.table(POSITIONS)))


def fill(client: Client, count: int) -> list[list[bytes]]:
    """Batches of one message each, with some more than the octets between two checkpoints."""
    messages = [[b"%06d" % number + bytes(70_000)] for number in range(count)]
    for message in messages:
        produce(client, [message])
    return messages


def test_checkpoints_stand_in_rows_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.broker.positions.checkpoints.CHECKPOINT_BLOCK", 4)
    one = size([bytes(70_006)])
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        messages = fill(client, 30)
        assert octets.end == 30 * one
        assert len(rows(client)) == 8
    with Broker(tmp_path) as broker:
        client = Client(broker)
        octets = Octets(client)
        assert [octets.call("position_of", offset) for offset in range(31)] == [
            offset * one for offset in range(31)
        ]
        assert octets.all() == messages
        client.call("delete_records", {("t", 0): 17})
        octets.call("store")
        assert len(rows(client)) == 5  # the first one, which says where they began, and those in use
        assert octets.all() == messages[17:]
        more = fill(client, 10)
        assert octets.all() == messages[17:] + more
        assert octets.first == 17 * one
    with Broker(tmp_path) as broker:
        octets = Octets(Client(broker), base=0)
        assert octets.all() == messages[17:] + more
        assert octets.first == 17 * one


def test_a_full_disk_ends_no_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.broker.positions.checkpoints.CHECKPOINT_BLOCK", 2)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        messages = fill(client, 10)

        def full(*rows: object) -> None:
            raise LogWriteError(client.core.log.path, "no space")

        with monkeypatch.context() as patched:
            patched.setattr(client.core.log._storage, "commit", full)
            assert octets.all() == messages
            assert client.call("delete_records", {("t", 0): 5})["t", 0].error is KafkaStorageError
            assert octets.all() == messages
        assert client.call("delete_records", {("t", 0): 5})["t", 0].error is None
        assert octets.all() == messages[5:]
    with Broker(tmp_path) as broker:
        assert Octets(Client(broker)).all() == messages[5:]


def test_batches_without_octets_have_checkpoints_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a reader would have to go through all aborted records before its position."""
    monkeypatch.setattr("dafka.broker.positions.checkpoints.CHECKPOINT_BYTES", 10_000)
    create(client)
    octets = Octets(client)
    producer = Producer(client)
    for _ in range(100):
        producer.send(b"aborted" + bytes(1000))
    producer.abort()
    produce(client, [[b"seen"]])
    assert octets.all() == [[b"seen"]]
    assert len(octets.positions._checkpoints._tail) > 3


# -- deletion -----------------------------------------------------------------------------------


def test_a_deleted_topic_leaves_no_rows(client: Client) -> None:
    create(client)
    octets = Octets(client)
    produce(client, [[b"x"]])
    assert octets.end == 3
    assert len(rows(client)) == 1
    client.change("delete_topics", ["t"])
    assert rows(client) == []
    with pytest.raises(UnknownTopicOrPartitionError):
        octets.call("store")
    assert rows(client) == []


def test_a_reader_is_told_of_a_deletion_and_not_of_what_it_leads_to(client: Client) -> None:
    create(client)
    octets = Octets(client)
    for _ in range(40):
        produce(client, [[bytes(1000)]] * 64)  # 64 kB each
    assert octets.end
    hub, told = client.connection.hub, []

    def read_all() -> None:
        try:
            while True:
                position = octets.positions.first
                while position < octets.positions.end:
                    position += len(octets.positions.read(position, 100_000))
        except Exception as error:
            told.append(type(error))

    for _ in range(5):
        hub.post(lambda: hub.spawn(read_all))
    client.change("delete_topics", ["t"])
    until(lambda: len(told) == 5)
    assert set(told) == {UnknownTopicOrPartitionError}


def test_rows_of_topics_that_are_gone_go_at_the_next_start(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        Octets(client)
        left = {(POSITIONS, rows(client)[0]): b"\0" * 16}
        client.change("delete_topics", ["t"])
        create(client)
        Octets(client)
        client.connection.hub.run(client.core._writer.put_and_wait, left)
        assert len(rows(client)) == 2
    with Broker(tmp_path) as broker:
        client = Client(broker)
        until(lambda: len(rows(client)) == 1)
        assert Octets(client).end == 0


# -- native producers ---------------------------------------------------------------------------


def test_messages_of_native_producers_have_one_frame(tmp_path: Path) -> None:
    from dafka import Producer as NativeProducer
    from dafka import Tower

    with Tower() as tower, Broker(tmp_path, tower=tower) as broker:
        client = Client(broker)
        create(client)
        with NativeProducer("t", tower=tower) as producer:
            for number in range(20):
                producer.send(b"%d" % number)
            producer.flush(100)
            until(lambda: len(client.partitions("t")) == 2)
            octets = Octets(client, partition=1)
            until(lambda: octets.end == 10 * 3 + 10 * 4)
            assert octets.all() == [[b"%d" % number] for number in range(20)]
            assert octets.call("position_of", 10) == 30
            assert octets.call("offset_of", 33) == 10


def test_messages_of_native_producers_that_are_deleted_were_measured_before(tmp_path: Path) -> None:
    from dafka import Producer as NativeProducer
    from dafka import Tower

    with Tower() as tower:
        with Broker(tmp_path, tower=tower) as broker:
            client = Client(broker)
            create(client)
            with NativeProducer("t", tower=tower) as producer:
                for number in range(20):
                    producer.send(b"x" * number)
                producer.flush(100)
            until(lambda: len(client.partitions("t")) == 2)
            Octets(client, partition=1)
            until(lambda: client.fetch("t", partition=1).high_watermark == 20)
            assert client.call("delete_records", {("t", 1): 7})["t", 1].error is None
        with Broker(tmp_path, tower=tower) as broker:
            octets = Octets(Client(broker), partition=1)
            assert octets.first == size(*([b"x" * number] for number in range(7)))
            assert octets.all() == [[b"x" * number] for number in range(7, 20)]


# -- the end ------------------------------------------------------------------------------------


def test_a_stopped_broker_ends_the_waiting(tmp_path: Path) -> None:
    broker = Broker(tmp_path).start()
    client = Client(broker)
    create(client)
    octets = Octets(client)
    ended: list[object] = []
    hub = client.connection.hub
    hub.post(lambda: hub.spawn(lambda: ended.append(octets.positions.wait(60))))
    time.sleep(0.05)
    broker.stop()
    until(lambda: ended)
    for call in (lambda: octets.first, lambda: octets.end, lambda: Octets(client)):
        with pytest.raises(BrokerStoppedError):
            call()
