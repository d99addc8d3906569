"""Indexes of which a part is sealed find what others find."""

from __future__ import annotations

import random
from array import array

import pytest

from dafka.log.chunk import BATCH, ChunkKey
from dafka.log.index import ChunkIndex
from dafka.log.sealed import BlockKey, SealedChunks, pack_block, unpack_block

BLOCK = 4


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.log.index.BLOCK_CHUNKS", BLOCK)


def key(number: int, time: int = 5, size: int = 10) -> ChunkKey:
    return ChunkKey(4, 2 * number, 2 * number + 1, 10 * number, 10 * number + 7, time, size, BATCH)


class Disk:
    """The blocks that were written."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.read = 0

    def load(self, row: bytes) -> array[int]:
        self.read += 1
        index = ChunkIndex(4)
        index.extend_packed(unpack_block(row, self.rows[row]))
        return index.rows()

    def seal(self, index: ChunkIndex, blocks: int = 1000) -> None:
        for _ in range(blocks):
            keys = index.sealable(len(index))
            if not keys:
                return
            row, value = pack_block(keys)
            self.rows[row] = value
            index.seal(BlockKey.unpack(row), self.load)


def test_a_block_has_the_keys_of_its_chunks_and_says_what_they_hold_together() -> None:
    keys = [key(number, time=number % 3) for number in range(5)]
    row, value = pack_block(keys)
    assert unpack_block(row, value) == [one.pack() for one in keys]
    assert BlockKey.unpack(row) == BlockKey(4, 0, 9, 0, 47, 2, 50, 5, BATCH)


@pytest.mark.parametrize("place", [0, 60, -1])
def test_a_block_that_is_damaged_is_refused(place: int) -> None:
    row, value = pack_block([key(0), key(1)])
    changed = bytearray(value)
    changed[place] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        unpack_block(row, bytes(changed))
    for wrong in (value[:-1], None, 5):
        with pytest.raises(ValueError, match="another size"):
            unpack_block(row, wrong)


@pytest.mark.parametrize(
    "wrong", [{"next": 0}, {"next_offset": 0}, {"kind": 9}, {"chunks": 0}, {"chunks": 9}]
)
def test_a_blocks_key_that_is_impossible_is_refused(wrong: dict[str, int]) -> None:
    row, _ = pack_block([key(0), key(1)])
    with pytest.raises(ValueError, match="impossible"):
        BlockKey.unpack(BlockKey.unpack(row)._replace(**wrong).pack())
    with pytest.raises(ValueError, match="bytes"):
        BlockKey.unpack(row[:-1])


def test_blocks_that_overlap_are_refused() -> None:
    block = BlockKey.unpack(pack_block([key(0), key(1)])[0])
    with pytest.raises(ValueError, match="overlaps"):
        SealedChunks(4, BATCH, Disk().load).extend([block, block])
    index = ChunkIndex(4)
    index.extend([key(1)])
    with pytest.raises(ValueError, match="overlaps"):
        index.attach([block], Disk().load)


def test_many_chunks_are_found_by_reading_one_block() -> None:
    disk, index = Disk(), ChunkIndex(4)
    index.extend(key(number, time=number) for number in range(1000))
    disk.seal(index)
    assert index.sealed_end == 1000 - BLOCK
    for find, place in ((index.at_sequence, 2), (index.at_offset, 10), (index.at_timestamp, 1)):
        disk.read = 0
        assert find(501 * place) == 501
        assert disk.read == 1
    disk.read = 0
    assert index.size_between(1, 900) == 8990
    assert disk.read <= 2
    assert (index.first_sequence, index.next_sequence, index.bytes) == (0, 1999, 10_000)


def check(index: ChunkIndex, plain: ChunkIndex) -> None:
    assert list(index) == list(plain)
    names = ("bytes", "first_sequence", "next_sequence", "first_offset", "next_offset", "largest_timestamp")
    for name in names:
        assert getattr(index, name) == getattr(plain, name), name
    for number in range(0, 2 * (plain.next_sequence + 3), 3):
        assert index.at_sequence(number) == plain.at_sequence(number)
    for number in range(0, plain.next_offset + 9, 4):
        assert index.at_offset(number) == plain.at_offset(number)
    for time in range(-1, 45):
        assert index.at_timestamp(time) == plain.at_timestamp(time)
        assert index.older_than(time, 1000) == plain.older_than(time, 1000)
    for size in range(0, plain.bytes, 37):
        assert index.beyond(size, 1000) == plain.beyond(size, 1000)
    for column in ("firsts", "nexts", "ends", "sizes", "times"):
        assert list(getattr(index, column)) == list(getattr(plain, column))
        assert list(getattr(index, column)[3:11:2]) == list(getattr(plain, column)[3:11:2])
    for start in range(0, len(plain), 3):
        for end in range(start, len(plain) + 1, 3):
            assert index.size_between(start, end) == plain.size_between(start, end)


@pytest.mark.parametrize("seed", range(100))
def test_after_random_operations_a_sealed_index_equals_one_in_memory(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr("dafka.log.index._MOVED", 0)
    chance, disk = random.Random(seed), Disk()
    index, plain = ChunkIndex(4), ChunkIndex(4)
    number = 0
    for _ in range(25):
        what = chance.random()
        if what < 0.5 or len(plain) < 3:
            new = [
                key(at, chance.randint(-1, 40), chance.randint(1, 30))
                for at in range(number, number + chance.randint(1, 9))
            ]
            number += len(new)
            index.extend(new)
            plain.extend_packed([one.pack() for one in new])
            if chance.random() < 0.7:
                disk.seal(index, chance.choice((1, 2, 1000)))
        elif what < 0.7:
            place = chance.randrange(len(plain))
            floor = plain[place]
            below = floor.first, floor.base_offset + chance.randint(-9, 3)
            gone = list(index.blocks_below(*below))
            for one in (index, plain):
                one.floor_sequence, one.floor_offset = below
            assert index.unseal_trimmed() == gone
            assert index.drop_trimmed() == plain.drop_trimmed()
            for row in gone:
                del disk.rows[row]
        elif what < 0.9:
            place = chance.randrange(len(plain) - 1)
            old = [plain[at] for at in range(place, min(place + chance.randint(1, 5), len(plain)))]
            joined = old[0]._replace(
                next=old[-1].next,
                next_offset=old[-1].next_offset,
                max_timestamp=chance.randint(-1, 40),
                size=chance.randint(1, 30),
            )
            assert index.find(old) == plain.find(old) == place
            gone = list(index.blocks_through(place, place + len(old)))
            index.replace(place, len(old), [joined])
            for row in gone:
                del disk.rows[row]
            plain.replace(place, len(old), [joined])
        else:  # opened anew
            opened = ChunkIndex(4)
            blocks = sorted(map(BlockKey.unpack, disk.rows))
            keys = [one for one in plain if not any(b.first <= one.first < b.next for b in blocks)]
            front = [one for one in keys if not blocks or one.first < blocks[0].first]
            opened.extend(front)
            if blocks:
                opened.attach(blocks, disk.load)
            opened.extend(keys[len(front) :])
            opened.floor_sequence, opened.floor_offset = plain.floor_sequence, plain.floor_offset
            index = opened
        check(index, plain)
    blocks = sorted(map(BlockKey.unpack, disk.rows))
    assert index.take_sealed() == blocks


def test_chunks_behind_all_blocks_are_replaced_without_them() -> None:
    disk, index, plain = Disk(), ChunkIndex(4), ChunkIndex(4)
    keys = [key(number, time=number % 3) for number in range(20)]
    for one in (index, plain):
        one.extend(keys)
    disk.seal(index)
    place = index.sealed_end
    new = [ChunkKey(4, *keys[place][1:2], keys[place + 1].next, *keys[place][3:4], *keys[place + 1][4:])]
    assert not index.blocks_through(place, place + 2)
    for one in (index, plain):
        one.replace(place, 2, new)
    assert not disk.read
    assert index.sealed_end == place
    assert list(index) == list(plain)
    assert index.bytes == plain.bytes
    assert [index.at_timestamp(time) for time in range(4)] == [plain.at_timestamp(time) for time in range(4)]


def test_sealed_chunks_are_no_small_neighbours() -> None:
    disk, index = Disk(), ChunkIndex(4)
    index.extend(ChunkKey(4, at, at + 1, at, at + 1, 5, 10, BATCH) for at in range(20))
    assert index.small_before(20, 20, 11, 0, 0, 100) == 20
    disk.seal(index)
    behind = 20 - index.sealed_end
    assert 0 < behind < 20
    assert index.small_before(20, 20, 11, 0, 0, 100) == behind
    assert index.small_before(19, 19, 11, 0, 0, 100) == behind - 1
    assert index.small_before(index.sealed_end, index.sealed_end, 11, 0, 0, 100) == 0
    assert not disk.read


def test_the_place_where_a_block_begins_is_found_without_reading_it() -> None:
    disk, index = Disk(), ChunkIndex(4)
    index.extend(key(number) for number in range(20))
    disk.seal(index)
    assert (index.at_sequence(8), index.at_sequence(7), index.at_offset(40), index.at_offset(37)) == (4,) * 4
    assert not disk.read
