"""A content is given away in pieces while it changes."""

from __future__ import annotations

import random

import pytest

from dafka.overlay.limits import MOST_LOADING, PIECE_ENTRIES, PIECE_OCTETS
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.pieces import Pieces
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

READER = EntityId(b"r" * 16, 1), 1


def content_of(count: int, value: object = 0) -> Content:
    content = Content("st")
    for number in range(count):
        content.put(number, value, None, NO_ENTITY)
    return content


def read(pieces: Pieces, between=lambda: None) -> list[list[object]]:
    """The keys of all pieces, until there are no more."""
    found, position = [], 0
    while True:
        entries, position = pieces.cut(READER, position)
        found.append([entry.key for entry in entries])
        if not position:
            return found
        between()


@pytest.mark.parametrize("count", [0, 1, PIECE_ENTRIES, 5 * PIECE_ENTRIES + 1])
def test_a_reader_gets_every_entry_once(count):
    pieces = Pieces(content_of(count))
    assert pieces.offset(READER) is None
    assert pieces.begin(READER, 7)
    assert pieces.offset(READER) == 7
    found = read(pieces)
    assert sorted(key for piece in found for key in piece) == list(range(count))
    assert len(found) == max(1, -(-count // PIECE_ENTRIES))


def test_a_piece_ends_behind_the_entry_that_is_too_much():
    pieces = Pieces(content_of(7, b"x" * (PIECE_OCTETS // 2)))
    pieces.begin(READER)
    assert [len(piece) for piece in read(pieces)] == [2, 2, 2, 1]


def test_a_piece_that_is_asked_for_again_is_the_same():
    content = content_of(3 * PIECE_ENTRIES)
    pieces = Pieces(content)
    pieces.begin(READER)
    _, position = pieces.cut(READER, 0)
    before = pieces.cut(READER, position)
    pieces.cut(READER, before.position)
    assert pieces.cut(READER, position) == before


@pytest.mark.parametrize("seed", range(20))
def test_an_entry_that_stays_is_in_one_piece_whatever_comes_and_goes_meanwhile(seed):
    """Others are told by events, and may be there or not."""
    chance, content = random.Random(seed), content_of(2000)
    stays, pieces = set(range(0, 2000, 2)), Pieces(content)
    pieces.begin(READER)

    def change() -> None:
        for _ in range(200):
            content.erase(chance.randrange(1000) * 2 + 1, NO_ENTITY)
            content.put(2000 + chance.randrange(2000), 1, None, NO_ENTITY)

    found = [key for piece in read(pieces, change) for key in piece]
    assert len(set(found)) == len(found)
    assert stays <= set(found) <= stays | set(range(1, 2000, 2)) | set(range(2000, 4000))


def test_a_content_that_is_cleared_meanwhile_has_nothing_more():
    content = content_of(2000)
    pieces = Pieces(content)
    pieces.begin(READER)
    events = []
    found = read(pieces, lambda: events.extend(content.clear(NO_ENTITY)))
    assert len(found[0]) == PIECE_ENTRIES
    assert not any(found[1:])
    assert len(events) == 2000


def test_keys_are_noted_as_a_reader_comes_to_them():
    """A list of a million, and the end of one, would take twenty milliseconds."""
    content = content_of(20_000)
    pieces = Pieces(content)
    pieces.begin(READER)
    pieces.cut(READER, 0)
    assert len(pieces._readings[READER].keys) < 2000


def test_a_reader_more_than_there_is_room_for_waits_until_one_has_finished():
    pieces = Pieces(content_of(2 * PIECE_ENTRIES))
    readers = [(EntityId(b"%016d" % number, 1), 1) for number in range(MOST_LOADING + 1)]
    assert [pieces.begin(reader) for reader in readers] == [True] * MOST_LOADING + [False]
    _, position = pieces.cut(readers[3], 0)
    assert not pieces.begin(readers[-1])
    assert pieces.cut(readers[3], position).position == 0
    assert pieces.begin(readers[-1])
    assert pieces.offset(readers[3]) is None
