"""Columns of an index."""

from __future__ import annotations

import pytest

from dafka.log.chunk import RAW, ChunkKey
from dafka.log.index import ChunkIndex


def test_a_column_is_a_sequence_of_what_the_index_has_now() -> None:
    index = ChunkIndex(3)
    firsts = index.firsts
    assert list(firsts) == []
    index.extend(ChunkKey(3, at, at + 1, at, at + 1, 7, 10, RAW) for at in range(5))
    assert list(firsts) == [0, 1, 2, 3, 4]
    assert (firsts[0], firsts[-1], firsts[-5]) == (0, 4, 0)
    assert list(firsts[1:3]) == [1, 2]
    assert list(firsts[::-2]) == [4, 2, 0]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            firsts[outside]
