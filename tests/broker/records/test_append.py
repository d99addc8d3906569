"""The appends of one produce call."""

from __future__ import annotations

import pytest
from broker.clients import batch, counting
from kafka.errors import CorruptRecordError, InvalidRecordError, MessageSizeTooLargeError

from dafka.broker.interface.records import Produced
from dafka.broker.records import append as module
from dafka.broker.records.append import PartitionAppend, Request, check_batches
from dafka.protocol.batch import with_producer
from dafka.protocol.batch_control import encode_marker


def checked(*batches: bytes) -> PartitionAppend:
    found = check_batches(batches, Request())
    assert isinstance(found, PartitionAppend)
    return found


def refused(*batches: bytes) -> Produced:
    found = check_batches(batches, Request())
    assert isinstance(found, Produced)
    assert found.detail
    return found


def test_an_append_knows_how_many_offsets_each_batch_takes_and_the_bytes_of_all():
    batches = [batch(b"a"), batch(b"b", b"c")]
    append = checked(*batches)
    assert list(append.batches) == batches
    assert (append.spans, append.size) == ([1, 2], len(batches[0]) + len(batches[1]))


def test_batches_of_another_log_are_taken_whatever_their_offsets():
    """Bridges and migrations write what they have read."""
    assert checked(batch(b"a", base_offset=100)).spans == [1]


def test_a_clients_batch_begins_with_offset_0():
    request = Request(from_0=True)
    assert isinstance(check_batches([batch(b"a")], request), PartitionAppend)
    found = check_batches([batch(b"a", base_offset=100)], request, 7)
    assert isinstance(found, Produced)
    assert (found.error, found.log_start_offset) == (InvalidRecordError, 7)
    assert "base offset 0, not 100" in found.detail


def test_headers_are_kept():
    idempotent = with_producer(batch(b"b"), 7, 0, 3)
    assert [header.producer_id for header in checked(batch(b"a"), idempotent).headers] == [-1, 7]


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (batch(b"a")[:-1], InvalidRecordError, ""),
        (batch(b"a") + b"more", CorruptRecordError, ""),
        (counting(batch(b"a"), 10**6), InvalidRecordError, ""),  # more records than bytes
        (encode_marker(1, 7, 0, commit=True), InvalidRecordError, "a control batch: clients do not write"),
        (
            with_producer(batch(b"a"), -1, -1, -1, transactional=True),
            InvalidRecordError,
            "without a producer id",
        ),
    ],
)
def test_a_batch_that_no_client_may_write_is_refused_and_all_others_with_it(content, error, says):
    answer = refused(batch(b"good"), content)
    assert answer.error is error
    assert says in answer.detail


def test_a_batch_that_is_too_large_is_refused_without_being_looked_into(monkeypatch):
    monkeypatch.setattr(module, "BATCH_MAX_BYTES", 10)
    assert refused(bytes(11)).error is MessageSizeTooLargeError


def test_no_batch_at_all_is_refused():
    assert refused().error is InvalidRecordError


def test_a_request_is_ready_when_every_partition_has_its_answer():
    request = Request()
    request.left = 2
    request.answer(("t", 0), Produced(None, (5,)))
    assert not request.ready.is_set()
    request.answer(("t", 1), Produced(None, (6,)))
    assert request.ready.is_set()
    assert request.answers == {("t", 0): Produced(None, (5,)), ("t", 1): Produced(None, (6,))}
