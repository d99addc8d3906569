"""Where positions begin, what they forbid, and what goes on around them: retention, damage, lost records."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import pytest
from broker.clients import Client, batch
from broker.damaged import LARGE, harm_last
from broker.positions.octets import Octets, produce, size
from broker.transactions.transactional import Producer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import (
    KafkaStorageError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from protocol.material import assembled
from timing import until

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import EARLIEST, TopicSpec
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import DamagedPositionError
from dafka.broker.positions.checkpoints import POSITIONS
from dafka.log import DamagedError, LogWriteError
from dafka.log.limits import FILE_BYTES
from dafka.protocol import raw

TOPIC, ALL_BROKERS, THIS_BROKER = (
    Resource(ResourceType.TOPIC, "t"),
    Resource(ResourceType.BROKER, ""),
    Resource(ResourceType.BROKER, "0"),
)


def configure(client: Client, resource: Resource, **configs: Any) -> tuple[Any, str]:
    """Set, or with None delete, settings; the error and its text."""
    changes = [
        ConfigChange(
            name.replace("_", "."), ConfigOperation.DELETE if value is None else ConfigOperation.SET, value
        )
        for name, value in configs.items()
    ]
    return client.call("alter_configs", {resource: changes})[resource]


def create(client: Client, **configs: str) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    assert client.change("create_topics", {"t": TopicSpec(1, named)}) == {"t": None}


# -- compaction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_has_no_positions(client: Client, policy: str) -> None:
    create(client, cleanup_policy=policy)
    with pytest.raises(PolicyViolationError, match=r"'t' is compacted .* ZPER"):
        Octets(client)
    assert configure(client, TOPIC, cleanup_policy="delete")[0] is None
    assert Octets(client).end == 0


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_topic_with_positions_cannot_become_compacted(client: Client, policy: str) -> None:
    create(client)
    Octets(client)
    error, text = configure(client, TOPIC, cleanup_policy=policy)
    assert error is PolicyViolationError
    assert "'t' cannot be compacted (cleanup.policy)" in text
    assert "ZPER" in text
    assert configure(client, TOPIC, cleanup_policy="delete", retention_ms="5")[0] is None


def test_so_it_is_for_a_change_that_is_only_validated(client: Client) -> None:
    create(client)
    Octets(client)
    changes = {TOPIC: [ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact")]}
    assert client.call("alter_configs", changes, validate_only=True)[TOPIC].error is PolicyViolationError


def test_a_topic_created_again_may_be_compacted(client: Client) -> None:
    create(client)
    Octets(client)
    client.change("delete_topics", ["t"])
    create(client, cleanup_policy="compact")
    with pytest.raises(PolicyViolationError):
        Octets(client)


@pytest.mark.parametrize("resource", [ALL_BROKERS, THIS_BROKER])
def test_the_default_of_all_topics_cannot_become_compact_either(client: Client, resource: Resource) -> None:
    create(client)
    Octets(client)
    error, text = configure(client, resource, log_cleanup_policy="compact")
    assert error is PolicyViolationError
    assert "topic 't'" in text
    assert "log.cleanup.policy" in text
    assert configure(client, TOPIC, cleanup_policy="delete")[0] is None
    assert configure(client, resource, log_cleanup_policy="compact")[0] is None
    assert configure(client, TOPIC, cleanup_policy=None)[0] is PolicyViolationError


def test_a_default_that_hides_another_one_cannot_be_taken_away(client: Client) -> None:
    assert configure(client, ALL_BROKERS, log_cleanup_policy="compact")[0] is None
    assert configure(client, THIS_BROKER, log_cleanup_policy="delete")[0] is None
    create(client)
    Octets(client)
    assert configure(client, THIS_BROKER, log_cleanup_policy=None)[0] is PolicyViolationError
    assert configure(client, ALL_BROKERS, log_cleanup_policy="delete")[0] is None
    assert configure(client, THIS_BROKER, log_cleanup_policy=None)[0] is None


def test_a_topic_that_is_compacted_by_default_has_no_positions(client: Client) -> None:
    create(client)
    assert configure(client, ALL_BROKERS, log_cleanup_policy="compact")[0] is None
    with pytest.raises(PolicyViolationError):
        Octets(client)


def test_kafka_s_clients_are_told_by_name() -> None:
    with Broker(listen="127.0.0.1:0") as broker:
        client = Client(broker)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            admin.create_topics(
                [NewTopic("t", 1, 1), NewTopic("c", 1, 1, topic_configs={"cleanup.policy": "compact"})]
            )
            Octets(client)
            with pytest.raises(PolicyViolationError):
                Octets(client, "c")
            wanted = ConfigResource(ConfigResourceType.TOPIC, "t", {"cleanup.policy": "compact"})
            (said,) = admin.alter_configs([wanted])["topic"].values()
            assert "ZPER" in str(said)
        finally:
            admin.close()


def test_compaction_that_is_under_way_ends_where_positions_begin(client: Client) -> None:
    """A step that has read its records already must not write them back."""
    create(client, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    core = client.core
    for number in range(8):
        client.call("produce", {("t", 0): [raw.encode_bulk([[b"k", b"%d" % number + LARGE]], 1000)]})
    core_writer, begun = core._writer, []
    write = core_writer._add

    def add(item: Any) -> Any:
        if item.rewrites and not begun:
            begun.append(True)
            core._topics.get("t").configs["cleanup.policy"] = "delete"
            core._topics.get("t").settings = None
            core.positions.open("t", 0)
        return write(item)

    core_writer._add = add
    client.connection.hub.run(core._log_cleaner.configured)
    until(lambda: begun)
    client.connection.hub.run(core._log_cleaner._cleaner.close)
    octets = Octets(client)
    assert octets.end == sum(2 + 1 + 9 + 1 + len(LARGE) for _ in range(8))


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


def test_what_nobody_has_looked_at_is_measured_before_retention_takes_it(tmp_path: Path) -> None:
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


def test_what_is_in_front_of_a_codec_that_has_gone_can_be_read(
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


# -- a power cut --------------------------------------------------------------------------------


def power_cut(folder: Path, kept: int) -> None:
    """Only the first ``kept`` large values had reached the disk when the power went."""
    for file in sorted((folder / "values").iterdir(), key=lambda path: path.stat().st_mtime_ns)[kept:]:
        file.write_bytes(b"")
    (folder / "dafka.boot").unlink()


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_what_gets_the_offsets_of_lost_records_gets_its_own_positions(tmp_path: Path, kept: int) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for number in range(5):
            produce(client, [[b"%d" % number + LARGE]])
        assert octets.end == 5 * size([b"0" + LARGE])
    power_cut(tmp_path, kept)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        octets = Octets(client)
        # One offset is not given again even if nothing is left.
        assert octets.end == max(kept, 1) * size([b"0" + LARGE])
        produce(client, [[b"other"]])
        assert octets.all() == [*([b"%d" % number + LARGE] for number in range(kept)), [b"other"]]


# -- damage -------------------------------------------------------------------------------------


@pytest.fixture
def harmed(tmp_path: Path) -> Iterator[tuple[Path, list[list[bytes]]]]:
    """Five values of which the fourth is damaged; all were measured before."""
    messages = [[b"%d" % number + LARGE] for number in range(5)]
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for message in messages[:4]:
            produce(client, [message])
        assert octets.end
    harm_last(tmp_path)
    with Broker(tmp_path) as broker:
        produce(Client(broker), [messages[4]])
    yield tmp_path, messages


def test_octets_behind_damage_keep_their_positions(harmed: tuple[Path, list[list[bytes]]]) -> None:
    folder, messages = harmed
    one = size(messages[0])
    with Broker(folder, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        assert octets.end == 5 * one
        assert octets.read(0) == raw.encode_messages(messages[:3])
        damage = f"from position {3 * one} to {4 * one - 1} are damaged"
        with pytest.raises(DamagedPositionError, match=damage) as why:
            octets.read(3 * one)
        assert why.value.next == 4 * one
        assert octets.read(4 * one - 0) == raw.encode_messages(messages[4:])
        assert octets.call("messages", 2 * one, one) == ([messages[2]], 3 * one)
        assert octets.call("messages", 3 * one, 1 << 30) == ([messages[4]], 5 * one)
        assert [octets.call("position_of", offset) for offset in range(6)] == [
            0, one, 2 * one, 3 * one, 4 * one, 5 * one,
        ]  # fmt: skip
        assert octets.call("offset_of", 4 * one) == 4
        with pytest.raises(DamagedPositionError):
            octets.call("offset_of", 3 * one + 5)
        assert client.call("delete_records", {("t", 0): 3})["t", 0].error is None
        assert octets.first == 3 * one
        assert octets.call("messages", octets.first, 1 << 30) == ([messages[4]], 5 * one)


def test_where_the_front_is_damaged_positions_begin_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found backwards from the next checkpoint, so in front of damage there are none."""
    for name in ("CHECKPOINT_OCTETS", "CHECKPOINT_BYTES"):
        monkeypatch.setattr(f"dafka.broker.positions.checkpoints.{name}", 1 << 40)
    messages = [[b"%d" % number + LARGE] for number in range(5)]
    one = size(messages[0])
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        octets = Octets(client)
        for message in messages[:3]:
            produce(client, [message])
        assert octets.end == 3 * one
    harm_last(tmp_path)
    with Broker(tmp_path, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        for message in messages[3:]:
            produce(client, [message])
        assert octets.end == 5 * one
        assert octets.first == 0
        assert client.call("delete_records", {("t", 0): 1})["t", 0].error is None
        assert octets.first == 3 * one
        assert octets.all() == messages[3:]


def test_where_damage_is_an_error_it_ends_reading_and_not_deleting(harmed: tuple[Path, Any]) -> None:
    folder, messages = harmed
    one = size(messages[0])
    with Broker(folder) as broker:
        client = Client(broker)
        octets = Octets(client)
        assert octets.end == 5 * one
        assert octets.read(0) == raw.encode_messages(messages[:3])
        with pytest.raises(DamagedError):
            octets.read(3 * one)
        assert octets.read(4 * one) == raw.encode_messages(messages[4:])
        assert client.call("delete_records", {("t", 0): 4})["t", 0].error is None
        assert octets.first == 4 * one
        assert octets.all() == [messages[4]]


def test_records_that_were_damaged_before_they_were_measured_have_no_octets(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        create(client)
        for number in range(3):
            produce(client, [[b"%d" % number + LARGE]])
    harm_last(tmp_path, 2)
    with Broker(tmp_path, on_damage="skip") as broker:
        client = Client(broker)
        octets = Octets(client)
        produce(client, [[b"behind"]])
        assert octets.all() == [[b"0" + LARGE], [b"behind"]]


def test_a_batch_that_nobody_can_read_has_no_octets(client: Client) -> None:
    """A client has compressed something else; the broker takes it as it comes."""
    create(client)
    octets = Octets(client)
    produce(client, [[b"before"]])
    assert (
        client.call("produce", {("t", 0): [assembled(gzip.compress(b"no records"), 5, attributes=1)]})[
            "t", 0
        ].error
        is None
    )
    produce(client, [[b"behind"]])
    assert octets.all() == [[b"before"], [b"behind"]]


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
            producer.flush(10)
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
                producer.flush(10)
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
