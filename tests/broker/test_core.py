"""The interface as a whole: metadata, produce, list offsets, and what is left after stop and restart."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client, batch, until

from dafka import Broker
from dafka.broker import BrokerStoppedError
from dafka.broker.interface import CommittedOffset, FetchFrom, ListedOffset, Produced, TopicSpec
from dafka.broker.limits import MESSAGE_MAX_BYTES
from dafka.log import LogWriteError
from dafka.protocol.batch import read_header

# -- metadata -----------------------------------------------------------------------------------


def test_metadata_names_the_broker_under_its_own_address(broker, client):
    found = client.call("metadata", None)
    host, port = broker.bootstrap_servers.split(":")
    assert found.brokers == [(0, host, int(port))]
    assert found.controller_id == 0
    assert len(found.cluster_id) == 22
    assert found.topics == {}


def test_metadata_creates_a_topic_only_when_asked_to(client):
    assert client.call("metadata", ["t"]).topics["t"].error is errors.UnknownTopicOrPartitionError
    assert client.call("metadata", None).topics == {}
    assert client.call("metadata", ["t"], True).topics["t"].error is None
    assert list(client.call("metadata", None).topics) == ["t"]
    assert client.call("metadata", ()).topics == {}


def test_default_partitions_are_those_of_the_broker():
    with Broker(default_partitions=3) as broker:
        client = Client(broker)
        client.call("metadata", ["t"], True)
        assert [writable for _, writable in client.partitions("t")] == [True] * 3


def test_no_topic_is_created_by_use_if_the_broker_is_told_so():
    with Broker(auto_create_topics=False) as broker:
        found = Client(broker).call("metadata", ["t"], True)
        assert found.topics["t"].error is errors.UnknownTopicOrPartitionError


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a\n"])
def test_illegal_names_are_refused(client, name):
    assert client.call("metadata", [name], True).topics[name].error is errors.InvalidTopicError


def test_callers_that_create_the_same_topic_at_once_get_the_same(client):
    def create_together():
        greens = [gevent.spawn(client.core.metadata, ["t"], True) for _ in range(10)]
        gevent.joinall(greens, raise_error=True)
        return {green.value.topics["t"].topic_id for green in greens}

    assert len(client.connection.hub.run(create_together)) == 1


# -- produce ------------------------------------------------------------------------------------


def test_batches_are_numbered_one_behind_the_other(client):
    client.create("t")
    assert client.produce("t", b"a", b"b") == Produced(None, 0, -1, 0)
    assert client.produce("t", b"c") == Produced(None, 2, -1, 0)
    assert client.values("t") == [b"a", b"b", b"c"]


def test_several_batches_for_a_partition_are_taken_in_their_order(client):
    client.create("t")
    answers = client.call("produce", {("t", 0): [batch(b"a"), batch(b"b", b"c"), batch(b"d")]})
    assert answers["t", 0].base_offset == 0
    assert client.values("t") == [b"a", b"b", b"c", b"d"]


def test_a_batch_is_stored_as_it_came_but_for_its_offset(client):
    client.create("t")
    client.produce("t", b"first")
    content = batch(b"second", compression="gzip", producer_id=7, producer_epoch=1, base_sequence=5)
    client.call("produce", {("t", 0): [content]})
    stored = client.fetch("t", 1).batches[0]
    assert stored[12:] == b"\0\0\0\0" + content[16:]
    assert read_header(stored).base_offset == 1


def test_calls_under_way_together_get_offsets_without_gaps(client):
    client.create("t")

    def produce_together():
        greens = [gevent.spawn(client.core.produce, {("t", 0): [batch(b"%d" % n)]}) for n in range(50)]
        gevent.joinall(greens, raise_error=True)
        return [green.value["t", 0].base_offset for green in greens]

    offsets = client.connection.hub.run(produce_together)
    assert sorted(offsets) == list(range(50))
    values = client.values("t")
    assert [values[offset] for offset in offsets] == [b"%d" % n for n in range(50)]


def test_acks_0_does_not_wait_and_what_it_sent_is_there_soon(client):
    client.create("t")
    assert client.call("produce", {("t", 0): [batch(b"a")]}, acks=0) == {("t", 0): Produced(None)}
    assert until(lambda: client.values("t")) == [b"a"]


def damaged(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ([batch(b"good"), damaged(batch(b"bad"))], errors.CorruptRecordError),
        ([batch(b"good"), batch(b"short")[:-1]], errors.CorruptRecordError),
        ([batch(b"good") + b"more"], errors.CorruptRecordError),
        ([b""], errors.CorruptRecordError),
        ([b"raw" * 30], errors.InvalidRecordError),
        ([], errors.InvalidRecordError),
        ([batch(b"good"), batch(b"x" * MESSAGE_MAX_BYTES)], errors.MessageSizeTooLargeError),
    ],
)
def test_a_bad_batch_is_refused_with_all_that_came_for_its_partition(client, contents, error):
    client.create("t", 2)
    answers = client.call("produce", {("t", 0): contents, ("t", 1): [batch(b"other")]})
    assert (answers["t", 0].error, answers["t", 0].base_offset) == (error, -1)
    assert answers["t", 0].detail
    assert answers["t", 1] == Produced(None, 0, -1, 0)
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


def test_other_acks_than_kafkas_are_refused(client):
    client.create("t")
    answer = client.call("produce", {("t", 0): [batch(b"a")]}, acks=2)["t", 0]
    assert answer.error is errors.InvalidRequiredAcksError


def test_what_cannot_be_written_is_an_error_and_the_next_records_take_its_offsets(client, monkeypatch):
    client.create("t", 2)
    client.produce("t", b"before")

    def full(*_):
        raise LogWriteError(client.core.log.path, "no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(client.core.log._storage, "commit", full)
        answer = client.produce("t", b"lost")
        assert answer.error is errors.KafkaStorageError
        assert "no space" in answer.detail
        assert client.call("create_topics", {"other": TopicSpec(1)}) == {"other": errors.KafkaStorageError}
        committed = client.call("commit_offsets", "g", {("t", 0): CommittedOffset(1)})
        assert committed == {("t", 0): errors.KafkaStorageError}
        assert client.call("delete_topics", ["t"]) == {"t": errors.KafkaStorageError}
    assert client.produce("t", b"after") == Produced(None, 1, -1, 0)
    assert client.values("t") == [b"before", b"after"]


def test_produce_waits_while_too_much_waits_for_its_commit(client, monkeypatch):
    client.create("t")
    monkeypatch.setattr("dafka.broker.core.PENDING_BYTES", 100)

    def produce_much():
        for number in range(20):
            client.core.produce({("t", 0): [batch(b"%d" % number)]}, acks=0)
            assert client.core._pending_bytes <= 200

    client.connection.hub.run(produce_much)
    assert until(lambda: len(client.values("t")) == 20)
    assert client.core._pending_bytes == 0


# -- list offsets -------------------------------------------------------------------------------


def test_offsets_by_time(client):
    client.create("t")
    for timestamp in (1000, 3000, 2000, 4000):
        client.produce("t", b"a", b"b", timestamp=timestamp)

    def listed(timestamp: int) -> ListedOffset:
        return client.call("list_offsets", {("t", 0): timestamp})["t", 0]

    assert listed(-2) == ListedOffset(None, 0, -1)
    assert listed(-1) == ListedOffset(None, 8, -1)
    assert listed(-3) == ListedOffset(None, 6, 4000)
    assert listed(0) == ListedOffset(None, 0, 1000)
    assert listed(1001) == ListedOffset(None, 2, 3000)
    assert listed(3001) == ListedOffset(None, 6, 4000)
    assert listed(4001) == ListedOffset(None, -1, -1)
    assert listed(-9).error is errors.UnsupportedVersionError


def test_offsets_of_an_empty_and_of_an_unknown_partition(client):
    client.create("t")
    found = client.call("list_offsets", {("t", 0): -1, ("t", 1): -1})
    assert found["t", 0] == ListedOffset(None, 0, -1)
    assert found["t", 1].error is errors.UnknownTopicOrPartitionError
    assert client.call("list_offsets", {("t", 0): -3})["t", 0] == ListedOffset(None, -1, -1)


# -- stop and restart ---------------------------------------------------------------------------


def test_everything_comes_back_after_a_restart(tmp_path):
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t", 2)
        client.produce("t", b"a", b"b", partition=1)
        client.call("commit_offsets", "g", {("t", 1): CommittedOffset(1, "half", 0)})
        before = client.call("metadata", None)
    with Broker(tmp_path) as broker:
        client = Client(broker)
        after = client.call("metadata", None)
        assert (after.cluster_id, after.topics) == (before.cluster_id, before.topics)
        assert client.values("t", partition=1) == [b"a", b"b"]
        assert client.call("fetch_offsets", "g") == {("t", 1): CommittedOffset(1, "half", 0)}
        assert client.produce("t", b"c", partition=1).base_offset == 2


def test_a_stopped_broker_says_so_to_every_caller(tmp_path):
    broker = Broker(tmp_path).start()
    client = Client(broker)
    client.create("t")
    broker.stop()
    for method, args in [
        ("metadata", (None,)),
        ("create_topics", ({},)),
        ("create_partitions", ({},)),
        ("delete_topics", ([],)),
        ("produce", ({("t", 0): [batch(b"a")]},)),
        ("list_offsets", ({},)),
        ("commit_offsets", ("g", {})),
        ("fetch_offsets", ("g",)),
    ]:
        with pytest.raises(BrokerStoppedError, match="stopped"):
            client.call(method, *args)
    with pytest.raises(BrokerStoppedError):
        client.fetch("t")


def test_stop_wakes_fetches_and_commits_what_was_accepted(tmp_path):
    broker = Broker(tmp_path).start()
    client = Client(broker)
    client.create("t")
    hub = client.connection.hub

    def fetch():
        with pytest.raises(BrokerStoppedError):
            client.core.fetch({("t", 0): FetchFrom(0, 100)}, max_wait=30, min_bytes=10**9, max_bytes=10**9)
        return True

    def accept_and_stop():
        waiting = gevent.spawn(fetch)
        gevent.sleep(0)
        for number in range(20):
            client.core.produce({("t", 0): [batch(b"%d" % number)]}, acks=0)
        gevent.sleep(0)
        client.core.stop()
        return waiting.get(timeout=5)

    assert hub.run(accept_and_stop)
    broker.stop()
    with Broker(tmp_path) as again:
        assert len(Client(again).values("t")) == 20


KILLED = textwrap.dedent(
    """
    import os, sys
    sys.path[:0] = {path!r}
    from broker.clients import Client
    from dafka import Broker

    client = Client(Broker({folder!r}).start())
    client.create("t")
    for number in range(100_000):
        assert client.produce("t", b"%d" % number).base_offset == number
        os.write(1, b"%d\\n" % number)
    """
)


def test_every_acknowledged_record_survives_sigkill(tmp_path):
    script = KILLED.format(folder=str(tmp_path / "data"), path=sys.path)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(150)]
        child.send_signal(signal.SIGKILL)
        *lines, _incomplete = child.stdout.read().split(b"\n")
        acknowledged += map(int, lines)
    with Broker(tmp_path / "data") as broker:
        client = Client(broker)
        values = client.values("t")
        assert values[: len(acknowledged)] == [b"%d" % number for number in acknowledged]
        assert len(values) <= len(acknowledged) + 1
        assert client.produce("t", b"next").base_offset == len(values)
