"""A dictionary in parts is a dictionary, and each of its parts grows when that is small."""

from __future__ import annotations

import random
import sys

import pytest

from dafka.protocol.parted import PartedDict

KEYS = [f"key-{number}" for number in range(200)]


def test_it_is_as_a_dictionary_whatever_is_done_to_it():
    chance, parted, model = random.Random(7), PartedDict[str, int](), dict[str, int]()
    for step in range(5000):
        key = chance.choice(KEYS)
        match chance.randrange(5):
            case 0 | 1:
                parted[key] = model[key] = step
            case 2:
                assert parted.pop(key, -1) == model.pop(key, -1)
            case 3 if key in model:
                del parted[key], model[key]
            case _:
                assert parted.get(key) == model.get(key)
                assert parted.setdefault(key, step) == model.setdefault(key, step)
        assert (key in parted) is (key in model)
        assert parted.get(key, -1) == model.get(key, -1)
    assert len(parted) == len(model)
    assert parted == model
    assert sorted(parted.items()) == sorted(model.items())
    assert sorted(parted.values()) == sorted(model.values())
    assert sorted(parted) == sorted(model)
    assert all(item in parted.items() for item in model.items())
    assert [parted[key] for key in parted] == list(parted.values())
    parted.clear()
    assert not parted
    assert len(parted) == 0


def test_a_key_that_is_not_there_is_a_key_error():
    parted = PartedDict[str, int]()
    for access in (parted.__getitem__, parted.__delitem__, parted.pop):
        with pytest.raises(KeyError):
            access("key")


def test_another_hash_decides_the_order():
    parted = PartedDict[bytes, None](lambda key: -key[0] << 24)
    for key in (b"a", b"c", b"b"):
        parted[key] = None
    assert list(parted) == [b"c", b"b", b"a"]


@pytest.mark.parametrize("kind", ["text", "octets", "tuples"])
def test_no_growth_takes_a_large_part_of_it(kind):
    made = {"text": lambda key: key, "octets": str.encode, "tuples": lambda key: (b"topic", key.encode())}
    parted = PartedDict[object, None]()
    for number in range(50_000):
        parted[made[kind](f"key-{number}")] = None
    assert max(map(sys.getsizeof, parted.parts)) <= sum(map(sys.getsizeof, parted.parts)) / 20
