"""Produce and list offsets: numbers, refusals, failures, pushing back."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch, timed
from protocol.material import codecs
from timing import until

from dafka import Broker
from dafka.broker.interface.broker import CommittedOffset, ListedOffset, Produced, TopicSpec
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.limits import MESSAGE_MAX_BYTES
from dafka.log import LogWriteError
from dafka.protocol.batch import read_header
from dafka.protocol.batch_records import examine
from dafka.protocol.batch_walk import walk_records

# -- produce ------------------------------------------------------------------------------------


def test_batches_are_numbered_one_behind_the_other(client):
    client.create("t")
    assert client.produce("t", b"a", b"b") == Produced(None, (0,), -1, 0)
    assert client.produce("t", b"c") == Produced(None, (2,), -1, 0)
    assert client.values("t") == [b"a", b"b", b"c"]


def test_several_batches_for_a_partition_are_taken_in_their_order(client):
    client.create("t")
    answers = client.call("produce", {("t", 0): [batch(b"a"), batch(b"b", b"c"), batch(b"d")]})
    assert answers["t", 0].base_offset == 0
    assert client.values("t") == [b"a", b"b", b"c", b"d"]


def test_a_batch_is_stored_unchanged_except_for_its_offset(client):
    client.create("t")
    client.produce("t", b"first")
    content = batch(b"second", compression="gzip", producer_id=7, producer_epoch=1, base_sequence=5)
    client.call("produce", {("t", 0): [content]})
    stored = client.fetch("t", 1).batches[0]
    assert stored[12:] == b"\0\0\0\0" + content[16:]
    assert read_header(stored).base_offset == 1


def test_concurrent_calls_get_offsets_without_gaps(client):
    client.create("t")

    def produce_together():
        greens = [gevent.spawn(client.core.produce, {("t", 0): [batch(b"%d" % n)]}) for n in range(50)]
        gevent.joinall(greens, raise_error=True)
        return [green.value["t", 0].base_offset for green in greens]

    offsets = client.connection.hub.run(produce_together)
    assert sorted(offsets) == list(range(50))
    values = client.values("t")
    assert [values[offset] for offset in offsets] == [b"%d" % n for n in range(50)]


def test_acks_0_does_not_wait_for_the_commit(client):
    client.create("t")
    assert client.call("produce", {("t", 0): [batch(b"a")]}, acks=0) == {("t", 0): Produced(None)}
    assert until(lambda: client.values("t")) == [b"a"]


def damaged(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ([batch(b"good"), damaged(batch(b"bad"))], errors.CorruptRecordError),
        ([batch(b"good"), batch(b"short")[:-1]], errors.InvalidRecordError),
        ([batch(b"good") + b"more"], errors.CorruptRecordError),
        ([b""], errors.InvalidRecordError),
        ([b"raw" * 30], errors.InvalidRecordError),
        ([], errors.InvalidRecordError),
        ([batch(b"good"), batch(b"x" * MESSAGE_MAX_BYTES)], errors.MessageSizeTooLargeError),
    ],
)
def test_an_invalid_batch_is_refused_with_all_batches_of_its_partition(client, contents, error):
    client.create("t", 2)
    answers = client.call("produce", {("t", 0): contents, ("t", 1): [batch(b"other")]})
    assert (answers["t", 0].error, answers["t", 0].base_offset) == (error, -1)
    assert answers["t", 0].detail
    assert answers["t", 1] == Produced(None, (0,), -1, 0)
    assert client.values("t") == []


def test_a_batch_of_exactly_the_largest_size_is_taken(client):
    client.create("t")
    room = MESSAGE_MAX_BYTES - len(batch(b"x" * 1_000_000)) + 1_000_000
    assert len(batch(b"x" * room)) == MESSAGE_MAX_BYTES
    assert client.produce("t", b"x" * room).error is None


@pytest.mark.parametrize("partition", [("t", 1), ("t", -1), ("unknown", 0)])
def test_an_unknown_partition_is_refused(client, partition):
    client.create("t")
    answer = client.call("produce", {partition: [batch(b"a")]})[partition]
    assert answer.error is errors.UnknownTopicOrPartitionError


def test_invalid_acks_are_refused(client):
    client.create("t")
    answer = client.call("produce", {("t", 0): [batch(b"a")]}, acks=2)["t", 0]
    assert answer.error is errors.InvalidRequiredAcksError


def test_a_failed_write_is_an_error_and_the_next_records_take_its_offsets(client, monkeypatch):
    client.create("t", 2)
    client.produce("t", b"before")

    def full(*_):
        raise LogWriteError(client.core.log.path, "no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(client.core.log._storage, "commit", full)
        answer = client.produce("t", b"lost")
        assert answer.error is errors.KafkaStorageError
        assert "no space" in answer.detail
        assert client.change("create_topics", {"other": TopicSpec(1)}) == {"other": errors.KafkaStorageError}
        committed = client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1)})
        assert committed == {("t", 0): errors.KafkaStorageError}
        assert client.change("delete_topics", ["t"]) == {"t": errors.KafkaStorageError}
    assert client.produce("t", b"after") == Produced(None, (1,), -1, 0)
    assert client.values("t") == [b"before", b"after"]


def test_produce_waits_while_too_many_bytes_wait_for_their_commit(client, monkeypatch):
    client.create("t")
    monkeypatch.setattr("dafka.broker.records.pending.PENDING_BYTES", 100)

    def produce_much():
        for number in range(20):
            client.core.produce({("t", 0): [batch(b"%d" % number)]}, acks=0)
            assert client.core._pending.bytes <= 200

    client.connection.hub.run(produce_much)
    assert until(lambda: len(client.values("t")) == 20)
    assert client.core._pending.bytes == 0


@pytest.mark.parametrize("records_at_once", [50_000, 10], ids=["taken", "late"])
def test_a_call_for_very_many_partitions_lets_others_write_in_between(client, monkeypatch, records_at_once):
    monkeypatch.setattr("dafka.broker.embedded.records.RECORDS_AT_ONCE", records_at_once)
    at_once = 100
    for module in ("embedded.records", "records.pending"):
        monkeypatch.setattr(f"dafka.broker.{module}.WIDE_PRODUCE", at_once)
    wide, content = 12 * at_once, batch(b"x")
    client.create("wide", partitions=wide)
    client.create("small")

    def written() -> int:
        topic = client.core._topics.get("wide")
        return sum(partition.high_watermark for partition in topic.partitions)

    def written_beside_one() -> int:
        many = gevent.spawn(client.core.produce, {("wide", number): [content] for number in range(wide)})
        while written() < wide / 4:
            gevent.sleep(0.001)
        before = written()
        client.core.produce({("small", 0): [content]})
        meanwhile = written() - before
        assert all(one.error is None for one in many.get().values())
        return meanwhile

    assert client.connection.hub.run(written_beside_one) <= 3 * at_once


def test_the_next_call_does_not_overtake_the_other_batches_of_a_call_with_a_refused_one(client):
    client.create("t")
    compacted = TopicSpec(1, {"cleanup.policy": "compact"})
    assert client.change("create_topics", {"compacted": compacted}) == {"compacted": None}
    without_key = batch(b"x")

    def produce_both():
        first = {("compacted", 0): [without_key], ("t", 0): [batch(b"first")]}
        calls = [first, {("t", 0): [batch(b"second")]}]
        greens = [gevent.spawn(client.core.produce, call) for call in calls]
        gevent.joinall(greens, raise_error=True)
        return greens[0].value["compacted", 0]

    refused = client.connection.hub.run(produce_both)
    assert refused.error is errors.InvalidRecordError
    assert [index for index, _ in refused.record_errors] == [0]
    assert client.values("t") == [b"first", b"second"]


def test_calls_whose_batches_are_being_compressed_end_when_the_broker_stops(client):
    compressed = TopicSpec(1, {"compression.type": "gzip"})
    assert client.change("create_topics", {"t": compressed}) == {"t": None}
    content = batch(random.Random(1).randbytes(900_000))

    def stop_meanwhile():
        greens = [gevent.spawn(client.core.produce, {("t", 0): [content]}) for _ in range(3)]
        with gevent.Timeout(100):
            while client.core._topics.partition("t", 0) not in client.core._record_calls._lines:
                gevent.sleep(0)
        client.core.close()
        gevent.joinall(greens, timeout=100)
        return [green.exception for green in greens]

    ends = client.connection.hub.run(stop_meanwhile)
    assert [type(error) for error in ends] == [BrokerStoppedError] * 3


def test_a_killed_call_for_very_many_partitions_blocks_none_of_them(client):
    wide, content = 6000, batch(b"x")
    compressed = TopicSpec(wide, {"compression.type": "gzip"})
    assert client.change("create_topics", {"t": compressed}) == {"t": None}

    def produce_after_an_end():
        lines = client.core._record_calls._lines
        partitions = client.core._topics.get("t").partitions
        many = gevent.spawn(client.core.produce, {("t", number): [content] for number in range(wide)})
        while partitions[0] not in lines:
            gevent.sleep(0)
        assert partitions[-1] not in lines  # it is still joining them
        many.kill()
        with gevent.Timeout(100):
            return client.core.produce({("t", 0): [content]})["t", 0]

    assert client.connection.hub.run(produce_after_an_end).error is None


# -- batches that are examined beside the hub ----------------------------------------------------


@pytest.mark.parametrize("codec", [name for name in codecs if name])
def test_an_idempotent_producers_batches_keep_their_order_while_large_ones_are_unfolded(client, codec):
    """As those of one connection that has several requests under way."""
    client.create("t")
    noise = random.Random(1)
    contents = []
    for sequence in range(20):
        size = 40_000 if sequence % 3 == 0 else 5
        value = b"%d " % sequence + noise.randbytes(size) + bytes(size)
        contents.append(
            batch(value, compression=codec, producer_id=7, producer_epoch=0, base_sequence=sequence)
        )

    def produce_all() -> list[Produced]:
        greens = [
            gevent.spawn(lambda content=content: client.core.produce({("t", 0): [content]})["t", 0])
            for content in contents
        ]
        gevent.joinall(greens, raise_error=True)
        return [green.value for green in greens]

    outcomes = client.connection.hub.run(produce_all)
    assert [(one.error, one.base_offset) for one in outcomes] == [(None, n) for n in range(20)]
    assert [value.split()[0] for value in client.values("t")] == [b"%d" % n for n in range(20)]


def test_a_batch_that_is_examined_while_the_broker_stops_is_not_acknowledged(tmp_path, monkeypatch):
    walking, go_on = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        walking.set()
        assert go_on.wait(100)
        return examine(*args)

    value = random.Random(1).randbytes(50_000) + bytes(50_000)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        monkeypatch.setattr("dafka.broker.records.admission.examine", slow)
        outcomes: list[Any] = []

        def produce_it() -> None:
            try:
                outcomes.append(
                    client.call("produce", {("t", 0): [batch(value, compression="gzip")]})["t", 0].error
                )
            except Exception as error:
                outcomes.append(type(error))

        thread = threading.Thread(target=produce_it)
        thread.start()
        assert walking.wait(100)
        stopping = threading.Thread(target=broker.stop)
        stopping.start()
        time.sleep(0.05)  # it may be anywhere by now
        go_on.set()
        thread.join(100)
        stopping.join(100)
    monkeypatch.undo()
    with Broker(tmp_path) as broker:
        stored = Client(broker).values("t")
    assert (outcomes, stored) in (([BrokerStoppedError], []), ([None], [value]))


# -- list offsets -------------------------------------------------------------------------------


def test_offsets_by_time(client):
    client.create("t")
    for timestamp in (1000, 3000, 2000, 4000):
        client.produce("t", b"a", b"b", timestamp=timestamp)

    def listed(timestamp: int) -> ListedOffset:
        return client.call("list_offsets", {("t", 0): timestamp})["t", 0]

    assert listed(-2) == ListedOffset(None, 0, -1, 0)
    assert listed(-1) == ListedOffset(None, 8, -1, 0)
    assert listed(-3) == ListedOffset(None, 6, 4000, 0)
    assert listed(0) == ListedOffset(None, 0, 1000, 0)
    assert listed(1001) == ListedOffset(None, 2, 3000, 0)
    assert listed(3001) == ListedOffset(None, 6, 4000, 0)
    assert listed(4001) == ListedOffset(None, -1, -1)
    assert listed(-9).error is errors.UnsupportedVersionError


def test_a_search_by_timestamp_lets_other_green_threads_run(client):
    """Records without a timestamp: their batches say when they came, so each has to be looked at."""
    client.create("t")
    for _ in range(20):
        client.produce("t", bytes(9000), timestamp=-1)
    turns = 0

    def take_turns():
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0)

    def look():
        green = gevent.spawn(take_turns)
        try:
            return client.core.list_offsets({("t", 0): 0})["t", 0]
        finally:
            green.kill()

    assert client.connection.hub.run(look) == ListedOffset(None, -1, -1)
    assert turns >= 19


def test_the_largest_timestamp_is_searched_for_in_the_values_that_have_it(client, monkeypatch):
    client.create("t")
    for timestamp in range(1000, 1100):
        client.produce("t", b"a", b"b", timestamp=timestamp)
    opened = []

    def counting(content):
        opened.append(content)
        return walk_records(content)

    monkeypatch.setattr("dafka.log.timestamps.walk_records", counting)
    assert client.call("list_offsets", {("t", 0): -3})["t", 0] == ListedOffset(None, 198, 1099, 0)
    assert len(opened) == 1


def test_the_largest_timestamp_is_found_even_if_batch_headers_have_later_ones(client):
    client.create("t")
    client.produce("t", b"a", timestamp=1000)
    client.produce("t", b"b", timestamp=3000)
    client.call("produce", {("t", 0): [timed(batch(b"c", timestamp=2000), 2000, 5000)]})
    client.produce("t", b"d", timestamp=-1)
    assert client.call("list_offsets", {("t", 0): -3})["t", 0] == ListedOffset(None, 1, 3000, 0)


def test_offsets_of_an_empty_and_of_an_unknown_partition(client):
    client.create("t")
    found = client.call("list_offsets", {("t", 0): -1, ("t", 1): -1})
    assert found["t", 0] == ListedOffset(None, 0, -1, 0)
    assert found["t", 1].error is errors.UnknownTopicOrPartitionError
    assert client.call("list_offsets", {("t", 0): -3})["t", 0] == ListedOffset(None, -1, -1)
