"""Topics: created, extended and deleted, led and native partitions, and all of it after a restart."""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from timing import until

from dafka import Broker, Producer, Tower
from dafka.broker.interface.broker import CommittedOffset, TopicSpec
from dafka.broker.topics.table import TopicTable, leader_addresses
from dafka.hub import limits as hub_limits
from dafka.hub import turns
from dafka.log import LogWriteError


def send(broker, topic, *values, address=None):
    """Have a native producer write records and wait until the broker's store has them."""
    with Producer(topic, tower=broker.tower, address=address) as producer:
        for value in values:
            producer.send(value)
        producer.flush(100)
        return producer.address


def test_a_leaders_address_is_the_uuid_v5_of_topic_id_and_number(client):
    client.create("t", 2)
    topic_id = client.call("metadata", ["t"]).topics["t"].topic_id
    assert isinstance(topic_id, UUID)
    expected = [uuid5(topic_id, str(number)).hex.upper() for number in range(2)]
    assert client.partitions("t") == [(address, True) for address in expected]
    assert leader_addresses(topic_id, range(2)) == [address.encode() for address in expected]


def test_leaders_addresses_have_the_version_and_the_variant_of_a_uuid_v5():
    topic_id, numbers = uuid4(), range(200)
    expected = [uuid5(topic_id, str(number)).hex.upper().encode() for number in numbers]
    assert leader_addresses(topic_id, numbers) == expected


@pytest.mark.parametrize(
    ("name", "partitions", "error"),
    [
        ("t", 1, errors.TopicAlreadyExistsError),
        ("a/b", 1, errors.InvalidTopicError),
        ("u", 0, errors.InvalidPartitionsError),
        ("u", -2, errors.InvalidPartitionsError),
        ("u", 10**9, errors.PolicyViolationError),
        ("u", -1, None),
    ],
)
def test_creating_topics(client, name, partitions, error):
    client.create("t")
    assert client.change("create_topics", {name: TopicSpec(partitions)}) == {name: error}


def test_others_have_turns_while_a_folder_of_many_topics_is_opened(tmp_path, monkeypatch):
    with Broker(tmp_path) as broker:
        Client(broker).call("create_topics", {f"t{number}": TopicSpec(1) for number in range(160)})
    loaded, pauses, in_later_turn = [0], [0], turns.in_later_turn
    load = TopicTable._load

    def counted(*arguments):
        loaded[0] += 1
        load(*arguments)

    def pause(go_on):
        pauses[0] += 0 < loaded[0] < 160
        in_later_turn(go_on)

    monkeypatch.setattr(hub_limits, "PACE_SECONDS", 0.0)  # whoever may pause does
    monkeypatch.setattr(turns, "in_later_turn", pause)
    monkeypatch.setattr(TopicTable, "_load", counted)
    with Broker(tmp_path) as broker:
        assert len(Client(broker).call("metadata", None).topics) == 160
    assert loaded == [160]
    assert pauses[0] >= 9


def test_the_table_knows_which_topics_have_changed(client, monkeypatch):
    table = client.core._topics
    before = table.version
    client.create("t")
    client.create("u")
    assert sorted(table.changed_since(before)) == ["t", "u"] and table.changed_since(table.version) == []
    between = table.version
    client.call("create_partitions", {"t": 2})

    def fail(*rows):
        raise LogWriteError(client.core.log.path, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(client.core.log._storage, "commit", fail)
        client.call("delete_topics", ["u"])  # it is there again
    assert set(table.changed_since(between)) == {"t", "u"} and len(table.changed_since(between)) == 3
    assert table.changed_since(table.version - 10_000) is None


def test_added_partitions_stand_behind_and_can_be_written(client):
    client.create("t")
    before = client.partitions("t")
    assert client.change("create_partitions", {"t": 3}) == {"t": None}
    assert client.partitions("t")[:1] == before
    assert client.produce("t", b"a", partition=2).error is None


@pytest.mark.parametrize(
    ("name", "total", "error"),
    [
        ("t", 2, errors.InvalidPartitionsError),
        ("t", 1, errors.InvalidPartitionsError),
        ("u", 3, errors.UnknownTopicOrPartitionError),
    ],
)
def test_partitions_are_only_ever_added(client, name, total, error):
    client.create("t", 2)
    assert client.change("create_partitions", {name: total}) == {name: error}


# -- native partitions --------------------------------------------------------------------------


def test_a_topic_first_seen_on_the_mesh_has_the_default_partitions_in_front():
    with Broker(default_partitions=2) as broker:
        client = Client(broker)
        address = send(broker, "n", b"a")
        until(lambda: len(client.partitions("n")) == 3)
        assert [writable for _, writable in client.partitions("n")] == [True, True, False]
        assert client.partitions("n")[2][0] == address
        assert client.values("n", partition=2) == [b"a"]


def test_native_partitions_are_numbered_in_the_order_they_were_first_stored(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("n")
        native = [(send(broker, "n", b"%d" % number), False) for number in range(3)]
        until(lambda: len(client.partitions("n")) == 4)
        client.call("create_partitions", {"n": 6})
        native_too = (send(broker, "n", b"late"), False)
        partitions = until(lambda: len(client.partitions("n")) == 7 and client.partitions("n"))
        assert partitions[1:4] == native
        assert partitions[6] == native_too
        assert [writable for _, writable in partitions] == [True, False, False, False, True, True, False]
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.partitions("n") == partitions
        assert client.values("n", partition=6) == [b"late"]


def test_a_native_partition_that_was_stored_and_not_registered_is_registered_at_the_next_start(
    tmp_path, monkeypatch
):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        with monkeypatch.context() as crash:
            crash.setattr(client.core._adoption, "_adopt", lambda: None)
            address = send(broker, "n", b"a")
        assert client.call("metadata", None).topics == {}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert client.partitions("n")[1:] == [(address, False)]
        assert client.values("n", partition=1) == [b"a"]


def test_a_native_partition_cannot_be_written_through_the_broker(broker, client):
    send(broker, "n", b"a")
    until(lambda: len(client.partitions("n")) == 2)
    answer = client.produce("n", b"b", partition=1)
    assert answer.error is errors.PolicyViolationError
    assert not answer.error.retriable, "a client would ask again until its time is over"
    assert "native producer" in answer.detail
    assert client.values("n", partition=1) == [b"a"]


def test_native_topics_with_a_name_that_kafka_refuses_are_not_adopted(broker, client):
    send(broker, b"not \xff Kafka's", b"a")
    send(broker, "n", b"a")
    until(lambda: len(client.partitions("n")) == 2)
    assert list(client.call("metadata", None).topics) == ["n"]


# -- deleting -----------------------------------------------------------------------------------


def test_a_deleted_topic_is_gone_and_a_new_one_of_its_name_is_empty(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        old = client.partitions("t")
        client.produce("t", b"old")
        client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1)})
        assert client.change("delete_topics", ["t", "u"]) == {
            "t": None,
            "u": errors.UnknownTopicOrPartitionError,
        }
        assert client.call("metadata", None).topics == {}
        assert client.fetch("t").error is errors.UnknownTopicOrPartitionError
        assert client.call("fetch_offsets", "g") == {}
        client.create("t")
        assert client.partitions("t") != old
        assert client.values("t") == []
        assert client.produce("t", b"new").base_offset == 0
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert list(client.call("metadata", None).topics) == ["t"]
        assert client.values("t") == [b"new"]
        assert client.call("fetch_offsets", "g") == {}


@pytest.mark.parametrize("again", [True, False])
def test_a_deletion_that_takes_several_rounds_and_breaks_off_is_finished_later(tmp_path, monkeypatch, again):
    monkeypatch.setattr("dafka.broker.topics.table.DELETED_ROWS", 2)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 7)
        client.create("other")
        for number in range(7):
            client.produce("t", b"old", partition=number)
        addresses = [address for address, _ in client.partitions("t")]
        writer = client.core._writer
        original, rounds = writer.put_and_wait, []

        def breaking_off(values):
            rounds.append(values)
            if len(rounds) == 3:
                raise LogWriteError(client.core.log.path, "no space left")
            original(values)

        monkeypatch.setattr(writer, "put_and_wait", breaking_off)
        assert client.change("delete_topics", ["t"]) == {"t": errors.KafkaStorageError}
        assert list(client.call("metadata", None).topics) == ["other"]
        assert client.produce("t", b"more").error is errors.UnknownTopicOrPartitionError
        assert client.change("create_topics", {"t": TopicSpec()}) == {"t": errors.TopicAlreadyExistsError}
        assert client.change("create_partitions", {"t": 9}) == {"t": errors.UnknownTopicOrPartitionError}
        if again:
            assert client.change("delete_topics", ["t"]) == {"t": None}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert list(client.call("metadata", None).topics) == ["other"]
        client.create("t")
        assert client.values("t") == []
        core = client.core
        until(lambda: all(core.log.find(b"t", address.encode()) is None for address in addresses))


def test_one_of_several_calls_deletes_a_topic_and_a_new_topic_of_its_name_stays(client):
    client.create("t")

    def together() -> list[object]:
        other = gevent.spawn(client.core.create_topics, {"u": TopicSpec()})  # the others wait for it
        calls = [
            gevent.spawn(client.core.delete_topics, ["t"]),
            gevent.spawn(client.core.create_topics, {"t": TopicSpec(2)}),
            gevent.spawn(client.core.delete_topics, ["t"]),
        ]
        gevent.joinall([other, *calls], raise_error=True)
        return [call.value["t"].error for call in calls]

    # They came in this order, and the last one was about the topic that the first one deleted.
    assert client.connection.hub.run(together) == [None, None, errors.UnknownTopicOrPartitionError]
    assert len(client.partitions("t")) == 2


def test_a_native_producer_that_goes_on_brings_its_topic_back_without_the_old_records(tmp_path):
    with Tower() as tower, Producer("n", tower=tower) as producer:
        with Broker(tmp_path, tower=tower) as broker:
            client = Client(broker)
            producer.send(b"old")
            producer.flush(100)
            until(lambda: len(client.partitions("n")) == 2)
            client.call("delete_topics", ["n"])
            assert client.call("metadata", None).topics == {}
        with Broker(tmp_path, tower=tower) as broker:
            client = Client(broker)
            assert client.call("metadata", None).topics == {}
            producer.send(b"new")
            producer.flush(100)
            until(lambda: len(client.partitions("n")) == 2)
            assert client.fetch("n", 0, partition=1).error is errors.OffsetOutOfRangeError
            assert client.fetch("n", 0, partition=1).log_start_offset == 1
            assert client.call("list_offsets", {("n", 1): -2})["n", 1].offset == 1
            assert client.call("list_offsets", {("n", 1): 0})["n", 1].offset == 1
            assert client.values("n", 1, partition=1) == [b"new"]


def test_batches_that_wait_for_their_round_are_refused_when_the_topic_is_deleted(client):
    client.create("t")

    def produce_and_delete():
        producing = gevent.spawn(client.core.produce, {("t", 0): [batch(b"a")]})
        # before the round
        deleting = gevent.spawn(client.core._topic_calls._delete, client.core._topics.get("t"))
        gevent.joinall([producing, deleting], raise_error=True)
        return producing.value["t", 0].error, deleting.value

    assert client.connection.hub.run(produce_and_delete) == (errors.UnknownTopicOrPartitionError, None)
    client.create("t")
    assert client.values("t") == []


# -- many ---------------------------------------------------------------------------------------


def test_ten_thousand_partitions(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 10_000)
        answers = client.call("produce", {("t", number): [batch(b"a")] for number in range(0, 10_000, 100)})
        assert {answer.error for answer in answers.values()} == {None}
    with Broker(tmp_path) as broker:
        client = Client(broker)
        assert len(client.partitions("t")) == 10_000
        assert client.values("t", partition=9_900) == [b"a"]
