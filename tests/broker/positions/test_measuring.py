"""What pieces of the log take in RAW form, and which records count."""

from __future__ import annotations

import pytest
from broker.clients import batch
from protocol.material import assembled

from dafka.broker.positions import measuring
from dafka.broker.positions.measuring import BATCH_BYTES, Piece, batch_pieces, message_pieces
from dafka.protocol.batch import BatchError, with_offset, with_producer
from dafka.protocol.batch_control import encode_marker
from dafka.protocol.batch_empty import encode_empty


def stored(*contents: bytes) -> list[tuple[int, int, bytes]]:
    """Batches one behind the other, as the log gives them."""
    offset, found = 0, []
    for content in contents:
        found.append((offset, 1000, with_offset(content, offset)))
        offset += int.from_bytes(content[23:27], "big") + 1
    return found


def transactional(value: bytes, producer_id: int = 7) -> bytes:
    return with_producer(batch(value), producer_id, 0, 0, transactional=True)


def octets(*contents: bytes, start: int = 0, aborted: measuring.Aborted = ()) -> bytes:
    pieces = batch_pieces(stored(*contents), start, aborted, measuring.octets, False)
    assert [piece.octets for piece in pieces] == [len(piece.content) for piece in pieces]
    return b"".join(piece.content for piece in pieces)


def test_each_batch_says_its_offsets_and_what_it_takes() -> None:
    first, second = batch(b"a", b"bb"), batch(b"c" * 20_000)
    pieces = batch_pieces(stored(first, second), 0, (), measuring.octets, False)
    assert pieces == [
        Piece(0, 2, 7, b"\x00\x01a\x00\x02bb", len(first) + BATCH_BYTES),
        Piece(2, 3, 20_009, pieces[1].content, len(second) + BATCH_BYTES),
    ]


def test_small_neighbours_are_one_piece() -> None:
    contents = [batch(b"%d" % number) for number in range(40)]
    pieces = batch_pieces(stored(*contents), 0, (), measuring.octets, False)
    assert len(pieces) < 10
    assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
    assert (pieces[0].start, pieces[-1].end) == (0, 40)
    assert sum(piece.bytes for piece in pieces) == sum(map(len, contents)) + 40 * BATCH_BYTES
    (numbered,) = batch_pieces(stored(*contents[:3]), 0, (), measuring.numbered_sizes, False)
    assert numbered.content == [(0, 3), (1, 3), (2, 3)]
    (total,) = batch_pieces(stored(*contents[:3]), 0, (), measuring.total, False)
    assert (total.octets, total.content) == (9, None)


def test_neighbours_with_a_gap_between_them_are_two() -> None:
    batches = [(0, 0, batch(b"a")), (5, 0, with_offset(batch(b"b"), 5))]
    pieces = batch_pieces(batches, 0, (), measuring.total, False)
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 1), (5, 6)]


def test_a_piece_begins_in_the_midst_of_a_batch() -> None:
    (piece,) = batch_pieces(stored(batch(b"a", b"b", b"c")), 2, (), measuring.octets, False)
    assert (piece.start, piece.end, piece.content) == (2, 3, b"\x00\x01c")


def test_markers_empty_batches_and_aborted_records_have_no_octets() -> None:
    contents = (
        batch(b"a"),
        transactional(b"x"),
        encode_marker(1000, 7, 0, commit=False),
        transactional(b"b"),
        encode_marker(1000, 7, 0, commit=True),
        encode_empty(5, 6),
    )
    assert octets(*contents, aborted=[(7, 1, 2)]) == b"\x00\x01a\x00\x01b"


@pytest.mark.parametrize("aborted", [(8, 1, 2), (7, 0, 1), (7, 2, 3)])
def test_only_records_of_that_producer_and_between_these_offsets_are_aborted(
    aborted: tuple[int, int, int],
) -> None:
    assert octets(batch(b"a"), transactional(b"x"), batch(b"c"), aborted=[aborted]) == b"\0\1a\0\1x\0\1c"


def test_unreadable_batches_have_no_octets() -> None:
    assert octets(batch(b"a"), assembled(b"no records", 2), batch(b"b")) == b"\0\1a\0\1b"


def test_a_codec_that_is_missing_is_an_error_or_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = stored(batch(b"a"), batch(b"x" * 100, compression="gzip"))
    monkeypatch.setattr("dafka.protocol.compression.is_available", lambda name: False)
    with pytest.raises(BatchError, match="not installed"):
        batch_pieces(contents[1:], 0, (), measuring.total, False)
    (piece,) = batch_pieces(contents, 0, (), measuring.total, False)
    assert (piece.end, piece.octets) == (1, 3)
    pieces = batch_pieces(contents, 0, (), measuring.total, True)
    assert [(piece.octets, piece.damaged) for piece in pieces] == [(3, False), (0, True)]


def test_messages_of_native_producers_are_one_piece() -> None:
    (piece,) = message_pieces(5, [b"a", b"", b"cc"], measuring.numbered_sizes)
    assert piece == Piece(5, 8, 9, [(5, 3), (6, 2), (7, 4)], 3)
