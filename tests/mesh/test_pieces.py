"""Runs of a consumer, taken apart into pieces whose records are made as they are taken."""

from __future__ import annotations

import pytest

from dafka.mesh.pieces import NOTHING, next_piece
from dafka.protocol.batch_writer import encode_batch
from dafka.roles.outputs import Deliver

ADDRESS = b"AB" * 16
RAW = Deliver(b"t", ADDRESS, 7, [b"a", b"b", b"c"])


def batch(*values: bytes) -> bytes:
    return encode_batch([(1000, None, value, ()) for value in values])


def test_raw_messages_are_one_piece_whose_position_is_behind_what_was_taken() -> None:
    piece = next_piece(RAW, 0)
    assert (piece.partition, piece.first, piece.end, piece.behind) == ("AB" * 16, 7, 10, 3)
    assert [(piece.position, piece.left_over, one.value, piece.position) for one in piece.records] == [
        (8, 2, b"a", 8),
        (9, 1, b"b", 9),
        (10, 0, b"c", 10),
    ]


def test_each_batch_is_a_piece_and_the_position_is_at_it_until_all_its_records_are_taken() -> None:
    run = Deliver(b"t", ADDRESS, 7, [batch(b"a", b"b"), batch(b"c")])
    piece = next_piece(run, 0)
    assert (piece.position, piece.behind) == (7, 1)
    assert [(one.value, piece.position) for one in piece.records] == [(b"a", 7), (b"b", 8)]
    piece = next_piece(run, 1)
    assert (piece.position, piece.behind, piece.run) == (8, 2, run)
    assert [(one.sequence, one.value, piece.position) for one in piece.records] == [(8, b"c", 9)]


def test_a_raw_message_among_batches_is_a_piece() -> None:
    run = Deliver(b"t", ADDRESS, 7, [batch(b"a"), b"raw", batch(b"c")])
    assert [one.value for place in range(3) for one in next_piece(run, place).records] == [b"a", b"raw", b"c"]


def test_a_batch_that_cannot_be_read_is_dropped_and_the_position_is_behind_it(caplog, monkeypatch) -> None:
    monkeypatch.setattr("dafka.protocol.batch_reader.RECORDS_LIMIT", 1)
    piece = next_piece(Deliver(b"t", ADDRESS, 7, [batch(b"a", b"b")]), 0)
    assert (list(piece.records), piece.position) == ([], 8)
    assert "message 7 is dropped" in caplog.text


@pytest.mark.parametrize(
    ("run", "value"),
    [(RAW._replace(contents=[b"c"]), b"c"), (RAW._replace(contents=[batch(b"a", b"b")]), b"b")],
    ids=["raw", "batch"],
)
def test_the_newest_is_the_last_record_alone(run: Deliver, value: bytes) -> None:
    piece = next_piece(run, 0, newest=True)
    assert piece.position == 7
    assert [(one.value, piece.position) for one in piece.records] == [(value, 8)]


def test_nothing_has_no_records() -> None:
    assert list(NOTHING.records) == [] and not NOTHING.left_over
