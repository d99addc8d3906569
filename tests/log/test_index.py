"""Finding chunks by sequence, offset and timestamp."""

from __future__ import annotations

import random
import time

import pytest
from counting import steps

from dafka.log.chunk import BATCH, ChunkKey
from dafka.log.index import ChunkIndex

KEYS = [
    ChunkKey(4, 10, 12, 100, 105, 50, 30, BATCH),
    ChunkKey(4, 12, 13, 105, 106, 20, 40, BATCH),
    ChunkKey(4, 20, 25, 300, 310, 60, 50, BATCH),
]


@pytest.fixture
def index() -> ChunkIndex:
    index = ChunkIndex(4)
    index.extend(KEYS)
    return index


def test_an_empty_index_is_at_zero() -> None:
    index = ChunkIndex()
    assert (len(index), index.first_sequence, index.next_sequence, index.bytes) == (0, 0, 0, 0)
    assert (index.first_offset, index.next_offset) == (0, 0)
    assert index.at_sequence(0) == index.at_offset(0) == index.at_timestamp(0) == 0


def test_chunks_come_back_as_keys(index: ChunkIndex) -> None:
    assert [index[position] for position in range(len(index))] == KEYS
    assert index.bytes == 120


@pytest.mark.parametrize(
    ("sequence", "position"), [(0, 0), (10, 0), (11, 0), (12, 1), (13, 2), (19, 2), (24, 2), (25, 3)]
)
def test_a_sequence_finds_its_chunk_or_the_next_one(index: ChunkIndex, sequence: int, position: int) -> None:
    assert index.at_sequence(sequence) == position


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (104, 0), (105, 1), (106, 2), (299, 2), (309, 2), (310, 3)]
)
def test_an_offset_finds_its_chunk_or_the_next_one(index: ChunkIndex, offset: int, position: int) -> None:
    assert index.at_offset(offset) == position


@pytest.mark.parametrize(("timestamp", "position"), [(-5, 0), (15, 0), (50, 0), (51, 2), (60, 2), (61, 3)])
def test_a_timestamp_finds_the_first_chunk_that_reaches_it(
    index: ChunkIndex, timestamp: int, position: int
) -> None:
    assert index.at_timestamp(timestamp) == position


def test_dropped_chunks_leave_the_index_as_it_was_before_them(index: ChunkIndex) -> None:
    index.drop_last(2)
    index.drop_last(0)
    assert (len(index), index.bytes, index.next_sequence) == (1, 30, 12)
    index.extend(KEYS[1:])
    assert [index[position] for position in range(3)] == KEYS


@pytest.mark.parametrize("wrong", [{"first": 24}, {"base_offset": 309}, {"kind": 1}])
def test_a_chunk_that_does_not_come_behind_the_last_is_refused(
    index: ChunkIndex, wrong: dict[str, int]
) -> None:
    key = ChunkKey(4, 25, 26, 310, 311, 5, 10, BATCH)._replace(**wrong)
    with pytest.raises(ValueError, match="overlap"):
        index.extend([key])


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": 24}, {"next": 25}, {"base_offset": 309}, {"next_offset": 310}, {"kind": 1}, {"kind": 9},
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_packed_keys_that_do_not_fit_are_refused(wrong: dict[str, int], place: int) -> None:
    good = [ChunkKey(4, at, at + 1, at + 285, at + 286, 5, 10, BATCH) for at in (25, 26, 27)]
    moved = {name: value + (place if name != "kind" else 0) for name, value in wrong.items()}
    keys = [key._replace(**moved) if at == place else key for at, key in enumerate(good)]
    index = ChunkIndex(4)
    index.extend(KEYS)
    with pytest.raises(ValueError, match=r"overlap|impossible"):
        index.extend_packed([key.pack() for key in keys])


@pytest.mark.parametrize("begin", [0, 3, 50])
def test_packed_keys_are_taken_as_others_are(begin: int) -> None:
    chance = random.Random(begin)
    keys, sequence, offset = [], 0, 0
    for _ in range(100):
        sequence, offset = sequence + chance.choice((0, 0, 5)), offset + chance.choice((0, 0, 7))
        count, records, time_ = chance.randint(1, 3), chance.randint(1, 9), chance.randint(-1, 50)
        keys.append(ChunkKey(4, sequence, sequence + count, offset, offset + records, time_, 30, BATCH))
        sequence, offset = keys[-1].next, keys[-1].next_offset
    expected, packed = ChunkIndex(4), ChunkIndex(4)
    expected.extend(keys)
    packed.extend(keys[:begin])
    packed.extend_packed([key.pack() for key in keys[begin:]])
    assert list(packed) == list(expected) == keys
    assert (packed.kind, packed.bytes) == (expected.kind, expected.bytes)
    for time_ in range(-1, 52):
        assert packed.at_timestamp(time_) == expected.at_timestamp(time_)


def test_retention_chooses_what_to_drop_without_looking_at_all_the_rest() -> None:
    def work(count: int) -> int:
        index = ChunkIndex(4)
        index.extend(ChunkKey(4, n, n + 1, n, n + 1, n, 10, BATCH) for n in range(count))
        assert (index.beyond(0, 500), index.older_than(count, 500)) == (500, 500)
        return steps(index.beyond, 0, 500) + steps(index.older_than, count, 500)

    assert work(1000) == work(50_000)


@pytest.mark.parametrize(
    "new",
    [
        [ChunkKey(4, 10, 13, 100, 106, 40, 20, BATCH)],
        [ChunkKey(4, 10, 11, 100, 101, 70, 5, BATCH), ChunkKey(4, 12, 13, 105, 106, 10, 6, BATCH)],
        [ChunkKey(4, at, at + 1, 100 + at, 101 + at, at, 7, BATCH) for at in (10, 11, 12)],
    ],
)
def test_chunks_take_the_place_of_others(index: ChunkIndex, new: list[ChunkKey]) -> None:
    index.replace(0, 2, new)
    expected = ChunkIndex(4)
    expected.extend([*new, KEYS[2]])
    assert [index[position] for position in range(len(index))] == [*new, KEYS[2]]
    assert index.bytes == expected.bytes
    for timestamp in (5, 11, 41, 55, 65, 71):
        assert index.at_timestamp(timestamp) == expected.at_timestamp(timestamp)


@pytest.mark.parametrize("seed", range(20))
def test_places_by_timestamp_stay_right_whatever_goes_or_is_replaced(seed: int) -> None:
    chance = random.Random(seed)
    times = [chance.randrange(30) + chance.choice((0, 0, number)) for number in range(60)]
    keys = [ChunkKey(4, n, n + 1, n, n + 1, time, 10, BATCH) for n, time in enumerate(times)]
    index = ChunkIndex(4)
    index.extend(keys)
    for _ in range(20):
        if chance.random() < 0.3:
            index.floor_sequence = index.floor_offset = index.first_sequence + chance.randrange(3)
            index.drop_trimmed()
        else:
            start = chance.randrange(len(index))
            count = min(chance.randrange(1, 4), len(index) - start)
            old = [index[position] for position in range(start, start + count)]
            merged = old[0]._replace(
                next=old[-1].next, next_offset=old[-1].next_offset, max_timestamp=chance.randrange(60)
            )
            index.replace(start, count, chance.choice(([merged], old)))
        expected = ChunkIndex(4)
        expected.extend([index[position] for position in range(len(index))])
        found = [index.at_timestamp(time) for time in range(100)]
        assert found == [expected.at_timestamp(time) for time in range(100)]


def test_a_change_at_the_front_does_not_go_through_the_whole_partition() -> None:
    def seconds(count: int) -> float:
        index = ChunkIndex(4)
        index.extend(ChunkKey(4, n, n + 1, n, n + 1, n, 10, BATCH) for n in range(count))
        best = 1.0
        for changes in range(20):
            begin = time.perf_counter()
            index.replace(5, 1, [index[5]])
            index.floor_sequence = index.floor_offset = index.first_sequence + 1 + changes % 2
            index.drop_trimmed()
            best = min(best, time.perf_counter() - begin)
        return best

    assert seconds(200_000) < 500 * seconds(200)  # moving the arrays alone takes 30 times as long


@pytest.mark.parametrize(("timestamp", "count"), [(50, 0), (51, 2), (60, 2), (61, 3)])
def test_the_chunks_that_are_older_than_a_time_as_a_whole(
    index: ChunkIndex, timestamp: int, count: int
) -> None:
    assert [index.older_than(timestamp, most) for most in (9, 1)] == [count, min(count, 1)]


def test_records_without_a_timestamp_are_never_too_old(index: ChunkIndex) -> None:
    index.extend([ChunkKey(4, 25, 26, 310, 311, -1, 9, BATCH), ChunkKey(4, 26, 27, 311, 312, 70, 9, BATCH)])
    assert index.older_than(1000, 9) == 3


@pytest.mark.parametrize(
    ("keep", "count"), [(200, 0), (120, 0), (91, 0), (90, 1), (51, 1), (50, 2), (1, 2), (0, 3)]
)
def test_the_chunks_that_are_too_much(index: ChunkIndex, keep: int, count: int) -> None:
    assert [index.beyond(keep, most) for most in (9, 1)] == [count, min(count, 1)]


def test_many_chunks_are_counted_in_blocks() -> None:
    index = ChunkIndex(4)
    index.extend(ChunkKey(4, n, n + 1, n, n + 1, n, 10, BATCH) for n in range(5000))
    assert [index.beyond(10 * keep, 9999) for keep in (5000, 4999, 3000, 1, 0)] == [0, 1, 2000, 4999, 5000]
    assert index.beyond(15, 9999) == 4998


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ((6, 16, 50, 0, 0, 9), 3),  # before them comes a large one
        ((6, 16, 1000, 0, 0, 9), 4),  # ... a gap
        ((6, 15, 1000, 0, 0, 9), 0),  # something else follows
        ((6, 16, 50, 14, 0, 9), 2),  # one begins too early
        ((6, 16, 50, 0, 0, 2), 2),
        ((5, 15, 50, 0, 0, 9), 2),
        ((2, 8, 50, 0, 0, 9), 2),  # all there are
        ((2, 8, 50, 0, 2, 9), 2),
        ((2, 8, 50, 0, 3, 9), 0),
        ((6, 16, 50, 0, 3, 9), 3),
        ((6, 16, 50, 0, 4, 9), 0),  # the fourth is large
        ((6, 16, 50, 0, 5, 9), 0),  # the fifth is not
        ((6, 16, 1000, 0, 5, 9), 0),
    ],
)
def test_small_neighbours_are_counted_from_the_end(arguments: tuple[int, ...], count: int) -> None:
    sizes = {6: 30, 7: 30, 12: 60, 13: 30, 14: 40, 15: 49}
    index = ChunkIndex(4)
    index.extend(ChunkKey(4, at, at + 1, at, at + 1, 5, size, BATCH) for at, size in sizes.items())
    assert index.small_before(*arguments) == count
