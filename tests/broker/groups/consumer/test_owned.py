"""Partitions that somebody has."""

from __future__ import annotations

from uuid import UUID

from dafka.broker.groups.consumer.owned import Owned

A, B = UUID(int=1), UUID(int=2)


def test_taken_partitions_are_free_after_their_release():
    owned = Owned()
    owned.take({A: frozenset({0, 1})})
    assert owned.free(A, frozenset({1, 2})) == {2}
    owned.release({A: frozenset({1})})
    assert owned.free(A, frozenset({0, 1, 2})) == {1, 2}


def test_nobody_takes_what_is_taken():
    owned = Owned()
    assert owned.take({A: frozenset({0})}) == {A: frozenset({0})}
    assert owned.take({A: frozenset({0, 1}), B: frozenset({2})}) == {A: frozenset({1}), B: frozenset({2})}
    assert owned.take({A: frozenset({0, 1})}) == {}
    assert owned.free(A, frozenset({0, 1, 2})) == {2}
