"""What compaction notes of each key: a map like a dictionary, in less memory."""

from __future__ import annotations

import random
import tracemalloc

import pytest

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


def test_a_key_takes_at_most_72_octets() -> None:
    newest = NewestOffsets(names=0)
    tracemalloc.start()
    try:
        for begin in range(0, 50_000, 1000):
            newest.update(
                {b"a name of some length %d" % number: number for number in range(begin, begin + 1000)}
            )
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(newest) < 75
