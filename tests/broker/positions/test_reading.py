"""The pieces that are kept for the next reader."""

from __future__ import annotations

from typing import Any

from dafka.broker.positions.measuring import Piece
from dafka.broker.positions.reading import OctetCache

ONE: Any = object()  # partitions
OTHER: Any = object()


def piece(start: int, octets: int = 1000, *, damaged: bool = False) -> Piece:
    return Piece(start, start + 1, octets, bytes(octets), 0, damaged)


def test_pieces_are_found_by_partition_and_first_offset() -> None:
    cache = OctetCache(10_000)
    cache.add(ONE, [piece(0), piece(1)])
    assert cache.get(ONE, 1) == piece(1)
    assert cache.get(ONE, 2) is None
    assert cache.get(OTHER, 1) is None


def test_the_least_recently_used_piece_goes_first() -> None:
    cache = OctetCache(5000)
    cache.add(ONE, [piece(offset) for offset in range(4)])
    assert cache.get(ONE, 0)
    cache.add(ONE, [piece(4)])
    assert [bool(cache.get(ONE, offset)) for offset in range(5)] == [True, False, True, True, True]


def test_it_is_bounded_whatever_comes() -> None:
    cache = OctetCache(5000)
    for _ in range(3):
        cache.add(ONE, [piece(0, 4000), piece(0, 4000), piece(1, 0), piece(2, 1 << 20)])
    assert cache.get(ONE, 2) is None
    for start in range(100_000):
        cache.add(ONE, [piece(start, 0)])
    assert len(cache._pieces) < 100
    cache.add(ONE, [piece(5, damaged=True)])
    assert cache.get(ONE, 5) is None


def test_those_of_a_partition_that_is_gone_are_dropped() -> None:
    cache = OctetCache(5000)
    cache.add(ONE, [piece(0)])
    cache.add(OTHER, [piece(0)])
    cache.forget({ONE})
    assert cache.get(ONE, 0) is None
    assert cache.get(OTHER, 0)
    cache.forget({OTHER, ONE})
    assert cache._octets == 0
