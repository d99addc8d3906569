"""The row of a producer in a partition."""

from __future__ import annotations

import pytest

from dafka.broker.records.producer_row import (
    NO_TRANSACTION,
    PRODUCER_ROWS,
    UNKNOWN,
    Append,
    ProducerState,
    unpack,
)
from dafka.protocol.batch import SEQUENCES, read_header, with_producer
from dafka.protocol.batch_writer import encode_batch

STATE = ProducerState(3, 1_000, 40, (Append(0, 2, 10), Append(2, 3, 20)), 900)


def header(first: int, count: int):
    content = encode_batch([(1, None, b"v", ())] * count)
    return read_header(with_producer(content, 7, 3, first))


@pytest.mark.parametrize("state", [UNKNOWN, STATE, STATE._replace(transaction_start=NO_TRANSACTION)])
def test_a_state_is_read_as_it_was_written_and_has_the_shape_of_its_table(state: ProducerState):
    packed = state.pack()
    assert unpack(packed) == state
    key = f"{'0' * 32}/0/7"
    assert PRODUCER_ROWS.key(key)
    assert PRODUCER_ROWS.value(key, packed)


@pytest.mark.parametrize("state", [UNKNOWN, STATE])
def test_a_row_of_an_older_release_has_the_time_of_the_last_write_alone(state: ProducerState):
    packed = state.pack()
    older = packed[:18] + packed[26:]
    assert PRODUCER_ROWS.value(f"{'0' * 32}/0/7", older)
    assert unpack(older) == state._replace(last_timestamp=state.time)


@pytest.mark.parametrize("key", ["", "t/0/7", f"{'0' * 32}/0", f"{'0' * 32}/0/x", f"{'0' * 31}/0/7"])
def test_a_key_names_a_topics_id_a_partition_and_a_producer(key: str):
    assert not PRODUCER_ROWS.key(key)


@pytest.mark.parametrize("value", [b"", STATE.pack()[:-1], STATE.pack() + b"x", "text", None])
def test_a_value_has_a_head_and_whole_appends(value: object):
    assert not PRODUCER_ROWS.value(f"{'0' * 32}/0/7", value)


def test_the_last_sequence_is_that_of_the_last_record_and_wraps_around():
    assert UNKNOWN.last_sequence == -1
    assert STATE.last_sequence == 4
    assert STATE._replace(appends=(Append(SEQUENCES - 1, 3, 0),)).last_sequence == 1


@pytest.mark.parametrize(
    ("first", "count", "offset"),
    [(0, 2, 10), (1, 1, 11), (2, 3, 20), (3, 2, 21), (1, 2, None), (4, 2, None), (5, 1, None)],
)
def test_a_batch_within_an_earlier_append_has_the_offset_of_its_records(
    first: int, count: int, offset: int | None
):
    assert STATE.duplicate(header(first, count)) == offset
