"""A content that is taken over in pieces while events go on."""

from __future__ import annotations

import pytest

from dafka.overlay.stores.content import Content
from dafka.overlay.stores.loading import Loading
from dafka.overlay.stores.pieces import Pieces
from dafka.overlay.wire.commands import Piece
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


def piece(current: int, position: int, *keys: str) -> Piece:
    return Piece(1, 1, 5, current, position, tuple([(key, f"{key} at {current}") for key in keys]))


@pytest.fixture
def content():
    content = Content("st")
    content.put("old", "before", None, NO_ENTITY)
    content.put("a", "before", None, NO_ENTITY)
    return content


def words(events) -> list[str]:
    return [f"{event[0]} {event[2]}" for event in events]


def test_a_piece_waits_for_the_events_that_it_is_behind(content):
    loading = Loading(content, 1)
    loading.receive(piece(5, 0, "a"))
    assert loading.take(4, NO_ENTITY) is None and not loading.has_all
    assert words(loading.take(5, NO_ENTITY)) == ["update a"] and loading.has_all


def test_keys_of_later_events_are_newer_than_a_piece(content):
    loading = Loading(content, 1)
    content.put("a", "newer", None, NO_ENTITY)
    loading.hear(7, "a")
    loading.hear(5, "b")
    loading.receive(piece(5, 0, "a", "b"))
    assert words(loading.take(7, NO_ENTITY)) == ["insert b"] and content.get("a") == "newer"


def test_entries_cleared_meanwhile_do_not_come_back(content):
    loading = Loading(content, 1)
    loading.receive(piece(5, 2, "a"))
    loading.take(5, NO_ENTITY)
    content.clear(NO_ENTITY)
    loading.hear_clear(6)
    loading.receive(piece(5, 0, "b"))
    assert loading.take(6, NO_ENTITY) == [] and len(content) == 0


def test_entries_in_no_piece_are_erased_at_the_end_and_those_of_events_are_not(content):
    loading = Loading(content, 1)
    content.put("new", 1, None, NO_ENTITY)
    loading.receive(piece(5, 0, "a"))
    loading.take(5, NO_ENTITY)
    events, done = loading.sweep(NO_ENTITY)
    assert done and words(events) == ["erase old"]
    assert sorted(key for key, _ in content) == ["a", "new"]


def test_a_large_rest_is_erased_in_steps(content, monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.loading.ERASED_ENTRIES", 1)
    loading = Loading(content, 1)
    loading.receive(piece(5, 0))
    loading.take(5, NO_ENTITY)
    steps = [loading.sweep(NO_ENTITY) for _ in range(3)]
    assert [(len(events), done) for events, done in steps] == [(1, False), (1, False), (0, True)]


def test_a_piece_that_comes_twice_does_no_harm_and_one_that_is_lost_is_asked_for_again(content):
    loading = Loading(content, 1)
    for _ in range(2):
        loading.receive(piece(5, 2, "a"))
        loading.take(5, NO_ENTITY)
        assert loading.position == 2
    assert [loading.tick() for _ in range(6)].count(True) == 1
    loading.receive(piece(5, 0, "b"))
    assert not any(loading.tick() for _ in range(6))


def test_readers_are_bounded_and_forgotten_when_they_ask_no_more(content, monkeypatch):
    monkeypatch.setattr("dafka.overlay.stores.pieces.MOST_LOADING", 2)
    pieces = Pieces(content)
    readers = [(EntityId(bytes(16), number), 1) for number in range(4)]
    assert [pieces.begin(reader) for reader in readers[:3]] == [True, True, False]
    pieces.cut(readers[0], 0)  # all of it
    assert pieces.begin(readers[2]) and pieces.offset(readers[0]) is None
    for _ in range(50):
        pieces.tick()
    assert pieces.begin(readers[3]) and pieces.offset(readers[1]) is None
