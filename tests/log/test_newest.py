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


def test_the_work_for_a_key_is_the_same_however_many_there_are() -> None:
    """Of each thousand keys, when they are noted and when they are asked for."""
    newest = NewestOffsets(range(60_000), names=1000)
    noting = [steps(newest.update, _thousand(begin)) for begin in range(0, 60_000, 1000)]
    asking = [steps(newest.of, list(_thousand(begin))) for begin in range(0, 60_000, 1000)]
    # The first thousand lies in the dictionary, and the second makes the tables.
    assert max(noting[2:]) < 1.5 * min(noting[2:])
    assert max(asking[2:]) < 1.5 * min(asking[2:])
    assert sum(noting) + sum(asking) < 30 * 60_000


@pytest.mark.parametrize("offsets", [range(0), range(20_000), range(5_000_000_000)])
def test_a_wrong_guess_of_how_many_come_is_mended(offsets: range) -> None:
    newest = NewestOffsets(offsets, most=40_000, names=1000)
    for begin in range(0, 40_000, 1000):
        newest.update(_thousand(begin))
    assert newest.of(list(_thousand(38_000))) == list(range(38_000, 39_000))
    assert len(newest) == 40_000


def _thousand(begin: int) -> dict[bytes, int]:
    return {b"a name of some length %d" % number: number for number in range(begin, begin + 1000)}
