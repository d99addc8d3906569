"""What a broker says of records that a power cut took, and that it had noted something about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from broker.clients import MEGABYTE, Client, batch
from broker.damaged import power_cut
from broker.transactions.transactional import Producer, committed, everything, fetch, visible

from dafka import Broker
from dafka.broker.embedded import truncated
from dafka.broker.groups.offsets import OFFSETS
from dafka.broker.interface.broker import EARLIEST, CommittedOffset, Produced, TopicSpec
from dafka.commit.rows import Rows
from dafka.commit.writer import Writer
from dafka.log import LOST_TABLE, Log, LogWriteError
from dafka.log.limits import FILE_BYTES
from dafka.protocol.batch import with_producer

LARGE = bytes(FILE_BYTES)


@contextmanager
def running(folder: Path) -> Iterator[Client]:
    with Broker(folder) as broker:
        yield Client(broker)


def send(client: Client, value: bytes, sequence: int) -> Produced:
    content = with_producer(batch(value + LARGE), 7, 0, sequence)
    return client.call("produce", {("t", 0): [content]})["t", 0]


def test_a_producer_s_batch_that_was_lost_is_stored_when_it_comes_again(tmp_path: Path) -> None:
    """Or its producer would be told an offset where there is nothing, or another record."""
    with running(tmp_path) as client:
        client.create("t")
        for sequence in range(3):
            assert send(client, b"%d" % sequence, sequence).base_offset == sequence
    power_cut(tmp_path, 1)
    with running(tmp_path) as client:
        assert client.produce("t", b"another").base_offset == 1
        assert send(client, b"2", 2).base_offset == 2
        assert send(client, b"2", 2).base_offset == 2
        assert [value[:1] for value in everything(client)] == [b"0", b"a", b"2"]
        assert len(client.core.log.table(LOST_TABLE)) == 0


@pytest.mark.parametrize("kept", [1, 2])
def test_an_aborted_transaction_that_was_lost_hides_nothing_that_comes_later(
    tmp_path: Path, kept: int
) -> None:
    with running(tmp_path) as client:
        client.create("t")
        client.produce("t", b"before" + LARGE)
        producer = Producer(client)
        for _ in range(2):
            producer.send(b"aborted" + LARGE)
        producer.abort()
    power_cut(tmp_path, kept)
    with running(tmp_path) as client:
        producer.client = client
        producer.init()
        for value in (b"later", b"and later"):
            producer.send(value)
            producer.commit()
        seen = [value[:6] for value in committed(client)]
        assert seen == [b"before", b"later", b"and la"]
        assert len(fetch(client, max_bytes=MEGABYTE).aborted) == kept - 1


def test_a_transaction_that_was_lost_in_part_is_not_committed(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.create("t")
        producer = Producer(client)
        for value in (b"a", b"b", b"c"):
            producer.send(value + LARGE)
    power_cut(tmp_path, 1)
    with running(tmp_path) as client:
        producer.client = client
        assert producer.write(b"d").error is not None
        producer.abort()
        client.produce("t", b"after")
        assert committed(client) == [b"after"]


def test_a_group_that_had_read_lost_records_continues_at_the_end_of_the_partition(tmp_path: Path) -> None:
    """Or it would miss what gets the lost offsets before it is back."""
    with running(tmp_path) as client:
        client.call("create_topics", {"t": TopicSpec(2)})
        for value in (b"a", b"b", b"c"):
            client.produce("t", value + LARGE)
        for group, offset in (("ahead", 3), ("behind", 1)):
            offsets = {("t", number): CommittedOffset(offset, "mine") for number in (0, 1)}
            client.call("commit_offsets", group, offsets)
    power_cut(tmp_path, 2)
    with running(tmp_path) as client:
        for group, offset, other in (("ahead", 2, 3), ("behind", 1, 1)):
            found = client.call("fetch_offsets", group, [("t", 0), ("t", 1)])
            assert [(one.offset, one.metadata) for one in found.values()] == [
                (offset, "mine"),
                (other, "mine"),
            ]


def test_a_producer_s_only_batch_that_was_lost_is_stored_when_it_comes_again(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.create("t")
        assert send(client, b"0", 0).base_offset == 0
    power_cut(tmp_path, 0)
    with running(tmp_path) as client:
        assert send(client, b"0", 0).base_offset == 1
        assert send(client, b"0", 0).base_offset == 1
        assert [value[:1] for value in client.values("t", 1)] == [b"0"]


def test_an_aborted_transaction_that_was_all_there_is_hides_nothing_that_comes_later(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.create("t")
        producer = Producer(client)
        producer.send(LARGE)
        producer.abort()
    power_cut(tmp_path, 0)
    with running(tmp_path) as client:
        producer.client = client
        producer.init()
        producer.send(b"value")
        producer.commit()
        start = client.call("list_offsets", {("t", 0): EARLIEST})["t", 0].offset
        assert visible(fetch(client, start)) == [b"value"]


def test_a_partition_of_which_nothing_is_left_goes_on_at_its_end(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.create("t")
        client.produce("t", LARGE)
    power_cut(tmp_path, 0)
    with running(tmp_path) as client:
        assert everything(client) == []
        assert client.produce("t", b"a").base_offset == 1
        assert len(client.core.log.table(LOST_TABLE)) == 0


def test_lost_records_of_partitions_that_the_broker_does_not_write_are_only_noted(
    tmp_path: Path,
) -> None:
    with Log(tmp_path) as log:
        native = log.partition(b"t", b"A" * 32)
        log.write([(native, [b"message"])])
        log.write([], {(LOST_TABLE, str(native.number)): 1, (LOST_TABLE, "77"): 5})
    with running(tmp_path) as client:
        assert len(client.core.log.table(LOST_TABLE)) == 0
        assert client.values("t", partition=1) == [b"message"]


def test_a_kill_between_two_rounds_of_corrections_leaves_the_others_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = "a", "b", "c"
    with running(tmp_path) as client:
        client.create("t")
        for producer in range(3):
            for sequence in range(2):
                content = with_producer(batch(LARGE), producer, 0, sequence)
                assert client.call("produce", {("t", 0): [content]})["t", 0].error is None
        for group in groups:
            assert client.call("commit_offsets", group, {("t", 0): CommittedOffset(5)}) == {("t", 0): None}
    power_cut(tmp_path, 1)
    rounds: list[int] = []
    put_and_wait = Writer.put_and_wait

    def failing(writer: Writer, rows: Rows) -> None:
        if any(table == OFFSETS for table, _ in rows):
            rounds.append(len(rows))
            if len(rounds) == 2:
                raise LogWriteError(tmp_path, "killed")
        put_and_wait(writer, rows)

    monkeypatch.setattr(truncated, "ROWS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "put_and_wait", failing)
        with pytest.raises(LogWriteError, match="killed"):
            Broker(tmp_path).start()
    assert rounds == [1, 1]
    with running(tmp_path) as client:
        for group in groups:
            assert client.call("fetch_offsets", group, [("t", 0)])["t", 0].offset == 1
        (described,) = client.call("describe_producers", [("t", 0)]).values()
        assert not described.producers  # the last append of each was lost
        assert len(client.core.log.table(LOST_TABLE)) == 0
