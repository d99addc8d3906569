"""Leader epochs: a reader of records that a power cut took does not go on behind them in silence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import confluent_kafka
import gevent
import kafka
import kafka.errors as errors
import pytest
from broker.clients import MEGABYTE, Client, batch
from broker.records.machine import Machine
from broker.transactions.transactional import Producer, committed
from kafka import TopicPartition
from ports import free_port
from timing import until

from compat.kafka import KafkaConsumer
from dafka import Broker
from dafka.backup.creating import create
from dafka.backup.restoring import restore
from dafka.broker.interface.broker import EARLIEST, LATEST, CommittedOffset, EpochEnd, Fetched, FetchFrom
from dafka.broker.records.leader_epochs import RESTORED
from dafka.log import LogWriteError
from dafka.log.boot import restored_ahead
from dafka.protocol.batch import read_header

PLACE = TopicPartition("t", 0)
FENCED, UNKNOWN = errors.FencedLeaderEpochError, errors.UnknownLeaderEpochError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def epochs(client: Client, topic: str = "t", partition: int = 0) -> list[tuple[int, int]]:
    """Base offset and epoch of each batch."""
    found = client.fetch(
        topic, client.call("list_offsets", {(topic, partition): EARLIEST})[topic, partition][1]
    )
    return [(header.base_offset, header.leader_epoch) for header in map(read_header, found.batches)]


def current(client: Client, topic: str = "t") -> int:
    return client.call("metadata", [topic]).topics[topic].partitions[0].leader_epoch


def end_of(client: Client, epoch: int, leader_epoch: int = -1) -> EpochEnd:
    return client.call("epoch_ends", {PLACE: epoch}, leader_epochs={PLACE: leader_epoch})[PLACE]


def fetch(client: Client, offset: int, leader_epoch: int = -1, last_epoch: int = -1) -> Fetched:
    wanted = {PLACE: FetchFrom(offset, MEGABYTE, leader_epoch, last_epoch)}
    return client.call("fetch", wanted, max_wait=10, min_bytes=1, max_bytes=MEGABYTE)[PLACE]


def cut(machine: Machine, kept: int, lost: int) -> None:
    """Have a topic with so many records, of which some are lost with the power; no broker runs."""
    with Broker(machine.path) as broker:
        client = Client(broker)
        client.create("t")
        for number in range(kept):
            client.produce("t", b"%d" % number)
    machine.synced()
    with Broker(machine.path) as broker:
        for number in range(lost):
            Client(broker).produce("t", b"lost %d" % number)
    machine.power_cut()


# -- the epochs of a broker ---------------------------------------------------------------------


def test_a_leader_keeps_its_epoch_while_nothing_can_be_lost(machine: Machine) -> None:
    for number in range(3):
        with Broker(machine.path) as broker:
            client = Client(broker)
            if not number:
                client.create("t")
            client.produce("t", b"a")
            assert current(client) == 0
            assert epochs(client)[-1] == (number, 0)
            assert len(client.core.log.table("epochs")) == 0


def test_a_power_cut_raises_the_epoch_of_the_batches_that_follow(machine: Machine) -> None:
    cut(machine, kept=3, lost=3)
    with Broker(machine.path) as broker:
        client = Client(broker)
        assert current(client) == 1
        assert end_of(client, 0) == EpochEnd(None, 0, 3)  # before anything is written
        for _ in range(6):
            client.produce("t", b"new")
        assert epochs(client) == [(0, 0), (1, 0), (2, 0), *((offset, 1) for offset in range(3, 9))]
        assert end_of(client, 0) == EpochEnd(None, 0, 3)
        assert end_of(client, 1) == EpochEnd(None, 1, 9)
        assert end_of(client, 2) == EpochEnd(None)
    with Broker(machine.path) as broker:  # it is stored
        client = Client(broker)
        assert current(client) == 1
        assert end_of(client, 0) == EpochEnd(None, 0, 3)
        assert client.produce("t", b"more").base_offset == 9
        assert epochs(client)[-1] == (9, 1)


def test_an_epoch_is_not_given_again_though_all_its_records_were_lost(machine: Machine) -> None:
    """It was synced before anything bore it."""
    cut(machine, kept=3, lost=3)
    for epoch in (1, 2, 3):
        with Broker(machine.path) as broker:
            client = Client(broker)
            assert current(client) == epoch
            assert client.produce("t", b"lost, too").base_offset == 3
            assert epochs(client)[-1] == (3, epoch)
        machine.power_cut()


def test_markers_of_transactions_have_the_epoch_too(machine: Machine) -> None:
    cut(machine, kept=1, lost=1)
    with Broker(machine.path) as broker:
        client = Client(broker)
        producer = Producer(client)
        producer.send(b"a")
        producer.commit()
        assert epochs(client) == [(0, 0), (1, 1), (2, 1)]
        assert committed(client) == [b"0", b"a"]


def test_a_round_that_fails_does_not_begin_the_epoch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(machine, kept=2, lost=2)
    with Broker(machine.path) as broker:
        client = Client(broker)

        def fail(*rows: object) -> None:
            raise LogWriteError(client.core.log.path, "no space")

        with monkeypatch.context() as patch:
            patch.setattr(client.core.log._storage, "commit", fail)
            assert client.produce("t", b"a").error is errors.KafkaStorageError
        assert client.produce("t", b"b").base_offset == 2
    with Broker(machine.path) as broker:
        assert end_of(Client(broker), 0) == EpochEnd(None, 0, 2)


def test_several_batches_of_the_first_round_begin_it_once(machine: Machine) -> None:
    cut(machine, kept=2, lost=2)
    with Broker(machine.path) as broker:
        client = Client(broker)

        def together() -> None:
            calls = [gevent.spawn(client.core.produce, {PLACE: [batch(b"a")]}) for _ in range(5)]
            gevent.joinall(calls, raise_error=True)

        client.connection.hub.run(together)
        assert end_of(client, 0) == EpochEnd(None, 0, 2)
    with Broker(machine.path) as broker:
        assert end_of(Client(broker), 0) == EpochEnd(None, 0, 2)


def test_a_topic_takes_its_history_with_it(machine: Machine) -> None:
    cut(machine, kept=1, lost=1)
    with Broker(machine.path) as broker:
        client = Client(broker)
        client.produce("t", b"a")
        assert len(client.core.log.table("epochs")) == 1
        client.call("delete_topics", ["t"])
        assert len(client.core.log.table("epochs")) == 0


def test_a_topic_that_is_created_later_begins_in_the_epoch_of_its_leader(machine: Machine) -> None:
    cut(machine, kept=1, lost=1)
    with Broker(machine.path) as broker:
        client = Client(broker)
        client.create("u")
        client.produce("u", b"a")
        assert current(client, "u") == 1
        assert epochs(client, "u") == [(0, 1)]


# -- what clients are told ----------------------------------------------------------------------


def test_offsets_are_listed_with_the_epochs_of_their_records(machine: Machine) -> None:
    cut(machine, kept=3, lost=3)
    with Broker(machine.path) as broker:
        client = Client(broker)
        client.produce("t", b"new", timestamp=5000)

        def listed(timestamp: int) -> tuple[int, int]:
            found = client.call("list_offsets", {PLACE: timestamp})[PLACE]
            return found.offset, found.leader_epoch

        assert [listed(one) for one in (EARLIEST, LATEST, 0, 5000, 9000)] == [
            (0, 0),
            (4, 1),
            (0, 0),
            (3, 1),
            (-1, -1),
        ]


@pytest.mark.parametrize(("leader_epoch", "error"), [(-1, None), (0, FENCED), (1, None), (2, UNKNOWN)])
def test_a_client_that_expects_another_leader_epoch_is_refused(
    machine: Machine, leader_epoch: int, error: object
) -> None:
    cut(machine, kept=1, lost=1)
    with Broker(machine.path) as broker:
        client = Client(broker)
        assert fetch(client, 0, leader_epoch).error is error
        assert end_of(client, 0, leader_epoch).error is error
        answers = client.call("list_offsets", {PLACE: LATEST}, leader_epochs={PLACE: leader_epoch})
        assert answers[PLACE].error is error


def test_a_fetch_behind_lost_records_is_told_where_they_begin(machine: Machine) -> None:
    cut(machine, kept=3, lost=3)
    with Broker(machine.path) as broker:
        client = Client(broker)
        for end in (3, 9):  # before and after the lost offsets are given again
            for _ in range(end - 3):
                client.produce("t", b"new")
            diverging = fetch(client, 6, last_epoch=0)
            assert (diverging.error, diverging.diverging) == (None, (0, 3))
            assert not diverging.batches
        assert fetch(client, 3, last_epoch=0).diverging is None
        assert len(fetch(client, 3, last_epoch=0).batches) == 6
        assert len(fetch(client, 6, last_epoch=1).batches) == 3
        assert fetch(client, 6, last_epoch=2).error is errors.OffsetOutOfRangeError


def kafka_python(servers: str) -> tuple[object, Callable[[], list[bytes]]]:
    return of_kafka_python(kafka.KafkaConsumer, servers)


def in_this_process(servers: str) -> tuple[object, Callable[[], list[bytes]]]:
    return of_kafka_python(KafkaConsumer, servers)


def of_kafka_python(consumer_class: type, servers: str) -> tuple[object, Callable[[], list[bytes]]]:
    consumer = consumer_class(
        bootstrap_servers=servers, auto_offset_reset="earliest", retry_backoff_ms=50, metadata_max_age_ms=500
    )
    consumer.assign([PLACE])

    def poll() -> list[bytes]:
        return [record.value for records in consumer.poll(100).values() for record in records]

    return consumer, poll


def librdkafka(servers: str) -> tuple[object, Callable[[], list[bytes]]]:
    settings = {
        "bootstrap.servers": servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 500,
        "log_level": 2,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])

    def poll() -> list[bytes]:
        message = consumer.poll(0.1)
        return [] if message is None or message.error() else [message.value()]

    return consumer, poll


@pytest.mark.parametrize("client_of", [kafka_python, librdkafka, in_this_process])
def test_consumers_go_on_where_the_records_were_lost(machine: Machine, client_of) -> None:
    servers = f"127.0.0.1:{free_port()}"
    with Broker(machine.path, listen=servers) as broker:
        Client(broker).create("t")
        for number in range(3):
            Client(broker).produce("t", b"%d" % number)
    machine.synced()
    seen: list[bytes] = []
    with Broker(machine.path, listen=servers) as broker:
        for number in range(3):
            Client(broker).produce("t", b"lost %d" % number)
        consumer, poll = client_of(servers)

        def has(count: int) -> bool:
            seen.extend(poll())
            return len(seen) >= count

        until(lambda: has(6))
    with closing(consumer):  # type: ignore[type-var]
        machine.power_cut()
        with Broker(machine.path, listen=servers) as broker:
            for number in range(6):
                Client(broker).produce("t", b"new %d" % number)
            until(lambda: has(7) and seen[-1] == b"new 5")
    assert seen[-6:] == [b"new %d" % number for number in range(6)]


def test_our_consumer_without_a_reset_policy_raises_the_error_of_kafka_pythons(machine: Machine) -> None:
    cut(machine, kept=3, lost=3)
    with Broker(machine.path) as broker:
        client = Client(broker)
        for _ in range(6):
            client.produce("t", b"new")
        client.call("commit_offsets", "g", {PLACE: CommittedOffset(6, "", 0)})
        servers = broker.bootstrap_servers
        with KafkaConsumer(bootstrap_servers=servers, group_id="g", auto_offset_reset="none") as consumer:
            consumer.assign([PLACE])
            with pytest.raises(errors.LogTruncationError) as raised:
                consumer.poll(1000)
    assert raised.value.divergent_offsets == {PLACE: kafka.OffsetAndMetadata(3, "", 0)}


# -- a folder that was restored -----------------------------------------------------------------


def test_a_consumer_that_has_read_records_after_a_backup_is_told_where_the_restored_ones_end(
    tmp_path: Path,
) -> None:
    data, backups, restored = (str(tmp_path / name) for name in ("data", "backups", "restored"))
    with Broker(data) as broker:
        client = Client(broker)
        client.create("t")
        for _ in range(3):
            client.produce("t", b"kept")
        create(data, backups)
        for _ in range(3):
            client.produce("t", b"later")
        epoch = current(client)
    restore(backups, restored)
    for _ in range(2):
        with Broker(restored) as broker:
            client = Client(broker)
            assert current(client) == epoch + RESTORED, "it goes up once"
            for known in (epoch, epoch + 3):  # the machine may have gone down after the backup
                assert end_of(client, known) == EpochEnd(None, epoch, 3)
                assert fetch(client, 5, last_epoch=known).diverging == (epoch, 3)
    with Broker(restored) as broker:
        client = Client(broker)
        client.produce("t", b"new")
        assert epochs(client)[-1] == (3, epoch + RESTORED)


def test_a_broker_that_is_killed_at_its_start_after_a_restore_raises_the_epoch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, backups, restored = (str(tmp_path / name) for name in ("data", "backups", "restored"))
    with Broker(data) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"kept")
        epoch = current(client)
        create(data, backups)
    for number in (1, 2):
        restore(backups, restored)
        for is_killed in (True, True, False, False):
            with monkeypatch.context() as patch:
                if is_killed:
                    patch.setattr("dafka.broker.records.leader_epochs.forget_restored", lambda folder: None)
                with Broker(restored) as broker:
                    assert current(Client(broker)) == epoch + number * RESTORED
                assert restored_ahead(restored) == int(is_killed)
        backups = str(tmp_path / "backups of the restored")
        create(restored, backups)
        restored = str(tmp_path / "restored again")


def test_two_brokers_that_were_restored_from_one_backup_never_lead_in_the_same_epoch(tmp_path: Path) -> None:
    data, backups = (str(tmp_path / name) for name in ("data", "backups"))
    with Broker(data) as broker:
        client = Client(broker)
        client.create("t")
        client.produce("t", b"kept")
        epoch = current(client)
        create(data, backups)
    for number in (1, 2):
        restore(backups, str(tmp_path / f"restored-{number}"))
        with Broker(str(tmp_path / f"restored-{number}")) as broker:
            client = Client(broker)
            assert current(client) == epoch + number * RESTORED
            for _ in range(3 - number):  # the first one writes more
                client.produce("t", b"%d" % number)
            for known in range(epoch, epoch + number * RESTORED, RESTORED):
                assert end_of(client, known) == EpochEnd(None, epoch, 1), (
                    "a reader of another history goes back"
                )
