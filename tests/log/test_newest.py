"""What compaction notes of each key: a map like a dictionary, in less memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from counting import steps

from dafka.log.newest import NewestOffsets


@pytest.mark.parametrize("names", [0, 5, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_it_holds_what_a_dictionary_would(names: int, seed: int) -> None:
    choice = random.Random(seed)
    newest, model = NewestOffsets(names), {}
    for offset in range(0, 30_000, 100):
        found = {b"%d" % choice.randrange(5000): offset + number for number in range(100)}
        newest.update(found)
        model.update(found)
        assert len(newest) == len(model)
    asked = [b"%d" % number for number in range(6000)]
    assert newest.of(asked) == [model.get(name, -1) for name in asked]


def test_names_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    salts: list[bytes] = []

    def colliding(name: bytes) -> int:
        return int(name[-1]) if salts and name.startswith(salts[0]) else 7

    newest = NewestOffsets(names=0)
    salts.append(newest._salt)
    monkeypatch.setattr("dafka.log.newest.hash", colliding, raising=False)
    names = [b"a%c" % number for number in range(200)]
    newest.update({name: number for number, name in enumerate(names)})
    newest.update({b"a%c" % 3: 1000})
    assert newest.of([*names[:5], b"a%c" % 250]) == [0, 1, 2, 1000, 4, -1]


def test_a_key_takes_at_most_60_octets() -> None:
    newest = NewestOffsets(range(30_000), names=0)
    tracemalloc.start()
    try:
        for begin in range(0, 30_000, 1000):
            newest.update(_thousand(begin))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(newest) < 60


def test_a_larger_table_takes_no_more_memory_while_it_is_filled() -> None:
    newest = NewestOffsets(range(30_000), names=0)
    for begin in range(0, 30_000, 1000):
        newest.update(_thousand(begin))
    before = newest._table
    tracemalloc.start()
    try:
        while newest._table is before:
            begin += 1000
            newest.update(_thousand(begin))
        taken, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.3 * taken
    assert newest.of(list(_thousand(7000))) == list(range(7000, 8000))


def test_the_work_for_a_key_is_the_same_however_many_there_are() -> None:
    def work(keys: int) -> float:
        """For each of so many keys, to be noted and to be asked for."""
        newest = NewestOffsets(range(keys), names=1000)
        noting = sum(steps(newest.update, _thousand(begin)) for begin in range(0, keys, 1000))
        return (
            noting + sum(steps(newest.of, list(_thousand(begin))) for begin in range(0, keys, 1000))
        ) / keys

    assert work(80_000) < 1.05 * work(20_000)
    assert work(80_000) < 22


def test_a_dictionary_that_proves_too_small_becomes_a_table() -> None:
    newest = NewestOffsets(names=5000)
    model: dict[bytes, int] = {}
    for offset, begin in enumerate([*[0, 1000] * 30, *range(0, 20_000, 1000)]):
        found = {name: 1000 * offset + place for place, name in enumerate(_thousand(begin))}
        newest.update(found)
        model.update(found)
        assert (newest._table is not None) is (offset > 64)
    assert newest.of(list(model)) == list(model.values())
    assert len(newest) == len(model)


@pytest.mark.parametrize("offsets", [range(0), range(20_000), range(5_000_000_000)])
def test_a_wrong_guess_of_how_many_come_is_mended(offsets: range) -> None:
    newest = NewestOffsets(offsets, most=40_000, names=1000)
    for begin in range(0, 40_000, 1000):
        newest.update(_thousand(begin))
    assert newest.of(list(_thousand(38_000))) == list(range(38_000, 39_000))
    assert len(newest) == 40_000


def _thousand(begin: int) -> dict[bytes, int]:
    return {b"a name of some length %d" % number: number for number in range(begin, begin + 1000)}
