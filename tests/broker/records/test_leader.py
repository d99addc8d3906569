"""A leader numbers batches, appends them, and only after the commit publishes and answers them."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client, batch
from timing import until

from dafka.broker.interface.broker import Produced
from dafka.broker.records.append import Request, check_batches
from dafka.broker.topics.table import Partition
from dafka.log import LogWriteError
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_control import commits


@pytest.fixture(autouse=True)
def partition(client: Client) -> Partition:
    """t/0, whose leader is tested."""
    client.create("t")
    return client.core._topics.partition("t", 0)


def append(client: Client, partition: Partition, *contents: bytes) -> Request:
    """Hand batches to the leader of the partition, without waiting."""
    request = Request()
    request.left = 1
    client.connection.hub.run(client.core._leaders.append, partition, check_batches(contents, request))
    return request


def answer(client: Client, request: Request) -> Produced:
    assert client.connection.hub.run(request.ready.wait, 100)
    return request.answers["t", 0]


def end(
    client: Client, partition: Partition, check: Any = lambda: None, commit: bool = True
) -> list[Exception | None]:
    """What ``done`` is called with at the end of a transaction of producer 7."""
    ended: list[Exception | None] = []
    client.connection.hub.run(
        client.core._leaders.end_transaction, partition, 7, 0, commit, ended.append, check
    )
    until(lambda: ended)
    return ended


def test_batches_get_the_offsets_behind_the_end_of_the_partition(client, partition):
    first, second = (
        append(client, partition, batch(b"a", b"b"), batch(b"c")),
        append(client, partition, batch(b"d")),
    )
    assert answer(client, first).base_offsets == (0, 2)
    assert answer(client, second).base_offsets == (3,)
    assert [read_header(content).base_offset for content in client.fetch("t").batches] == [0, 2, 3]


def test_a_large_batch_gets_its_offset_where_it_is(client, partition):
    client.produce("t", b"a", b"b")
    memory = bytearray(batch(bytes(200_000)))
    assert answer(client, append(client, partition, memoryview(memory))).base_offsets == (2,)
    assert client.fetch("t", 2).batches == [memory]
    assert read_header(memory).base_offset == 2


def test_a_request_is_answered_and_its_records_are_read_after_the_commit_and_not_before(
    client, partition, monkeypatch
):
    storage, seen = client.core.log._storage, []
    commit, answered = storage.commit, Request.answer

    def observed(*args: Any, **kwargs: Any) -> None:
        seen.append(("commit begins", partition.high_watermark))
        commit(*args, **kwargs)
        seen.append(("commit ends", partition.high_watermark))

    def noted(request: Request, *args: Any) -> None:
        seen.append(("answered", partition.high_watermark))
        answered(request, *args)

    monkeypatch.setattr(storage, "commit", observed)
    monkeypatch.setattr(Request, "answer", noted)
    request = append(client, partition, batch(b"a"))
    assert answer(client, request) == Produced(None, (0,), -1, 0)
    assert seen == [("commit begins", 0), ("commit ends", 0), ("answered", 1)]
    assert client.values("t") == [b"a"]


def test_a_round_that_cannot_be_written_leaves_its_offsets_to_the_next_one(client, partition, monkeypatch):
    def fail(*args: Any, **kwargs: Any) -> None:
        raise LogWriteError("/data", "disk full")

    with monkeypatch.context() as failing:
        failing.setattr(client.core.log._storage, "commit", fail)
        refused = answer(client, append(client, partition, batch(b"a")))
    assert (refused.error, refused.base_offsets, refused.detail) == (
        errors.KafkaStorageError,
        (),
        "disk full",
    )
    assert answer(client, append(client, partition, batch(b"b"))).base_offset == 0


def test_a_batch_for_a_topic_that_is_deleted_before_its_round_is_refused(client, partition):
    client.call("delete_topics", ["t"])
    refused = answer(client, append(client, partition, batch(b"a")))
    assert refused.error is errors.UnknownTopicOrPartitionError
    assert refused.detail == "topic 't' was deleted"


def test_a_repeated_batch_of_an_idempotent_producer_gets_the_offset_that_it_has(client, partition):
    content = with_producer(batch(b"a"), 7, 0, 0)
    assert answer(client, append(client, partition, content)).base_offset == 0
    assert answer(client, append(client, partition, batch(b"b"))).base_offset == 1
    assert answer(client, append(client, partition, content)).base_offset == 0
    assert client.values("t") == [b"a", b"b"]


def test_a_refused_batch_takes_the_batches_before_it_in_its_append_along(client, partition):
    out_of_order = with_producer(batch(b"b"), 7, 0, 5)
    refused = answer(client, append(client, partition, with_producer(batch(b"a"), 7, 0, 0), out_of_order))
    assert refused.error is errors.OutOfOrderSequenceNumberError
    assert client.values("t") == []
    assert answer(client, append(client, partition, with_producer(batch(b"a"), 7, 0, 0))).base_offset == 0


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_is_a_marker_in_the_partition(client, partition, commit):
    assert end(client, partition, commit=commit) == [None]
    (marker,) = client.fetch("t").batches
    assert read_header(marker).is_control
    assert commits(marker) is commit
    assert client.produce("t", b"a").base_offset == 1


def test_no_marker_is_written_if_the_check_at_the_round_fails(client, partition):
    def fail() -> None:
        raise RuntimeError("ended otherwise")

    assert [str(error) for error in end(client, partition, fail)] == ["ended otherwise"]
    assert client.fetch("t").high_watermark == 0


def test_ending_a_transaction_in_a_deleted_topic_succeeds(client, partition):
    client.call("delete_topics", ["t"])
    assert end(client, partition) == [None]


def test_a_failure_to_publish_is_not_a_failure_of_the_client(client, partition, monkeypatch, caplog):
    def fail(*args: Any) -> None:
        raise OSError("no mesh")

    monkeypatch.setattr(client.core._presence, "publish_committed", fail)
    assert answer(client, append(client, partition, batch(b"a"))).error is None
    assert any("publishing 1 batches of 't' failed" in message for message in caplog.messages)


def test_appends_are_pending_until_their_commit(client, partition):
    request = append(client, partition, batch(b"a"))
    answer(client, request)
    assert (client.core._pending.bytes, client.core._pending.count) == (0, 0)
