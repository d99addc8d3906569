"""Keys in order: the same as a sorted list, whatever comes and goes."""

from __future__ import annotations

import random

import pytest

from dafka.log.ordered import _BLOCK, OrderedKeys


def test_keys_are_in_order_whatever_comes_and_goes() -> None:
    choice = random.Random(1)
    keys, expected = OrderedKeys(), set[str]()
    for _ in range(20 * _BLOCK):
        key = f"{choice.choice('abc')}/{choice.randrange(4 * _BLOCK)}"
        if key in expected:
            keys.remove(key)
            expected.remove(key)
        else:
            keys.add(key)
            expected.add(key)
    assert list(keys.beginning()) == sorted(expected)
    for prefix in ("a", "b/", "c/1", "d", "a/77"):
        assert list(keys.beginning(prefix)) == sorted(key for key in expected if key.startswith(prefix))
    for key in list(expected):
        keys.remove(key)
    assert list(keys.beginning()) == []
    keys.add("again")
    assert list(keys.beginning("a")) == ["again"]


def test_a_walk_goes_on_where_keys_come_and_go() -> None:
    keys = OrderedKeys()
    for number in range(3 * _BLOCK):
        keys.add(f"{number:05}")
    seen = []
    for key in keys.beginning():
        seen.append(key)
        if len(seen) == _BLOCK // 2:
            for number in range(2 * _BLOCK, 3 * _BLOCK):
                keys.remove(f"{number:05}")
            for number in range(10):
                keys.add(f"99{number:03}")
            keys.add("00000 behind us")
    left = [f"{number:05}" for number in range(2 * _BLOCK)]
    assert seen == [*left, *(f"99{number:03}" for number in range(10))]


def test_texts_beyond_ascii_and_the_empty_one_have_their_place() -> None:
    keys = OrderedKeys()
    texts = ["", "a", "a\0", "a\0b", "\U0010ffff", "\U0010ffff\0", "ä", "\udc80"]
    for text in reversed(texts):
        keys.add(text)
    assert list(keys.beginning()) == sorted(texts)
    assert list(keys.beginning("a\0")) == ["a\0", "a\0b"]


@pytest.mark.parametrize("count", [0, 1, 512, 5000])
def test_keys_that_come_in_order_are_taken_together(count: int) -> None:
    expected = [f"{number:05}" for number in range(0, 2 * count, 2)]
    keys = OrderedKeys()
    keys.extend(expected[: count // 2])
    keys.extend(expected[count // 2 :])
    assert list(keys.beginning()) == expected
    for key in ("00003", "zzz"):
        keys.add(key)
    assert list(keys.beginning()) == sorted([*expected, "00003", "zzz"])


def test_all_keys_are_given_in_order_while_others_come_and_go() -> None:
    keys, gone = OrderedKeys(), [f"{number:05}" for number in range(0, 6 * _BLOCK, 3)]
    keys.extend([f"{number:05}" for number in range(6 * _BLOCK)])
    seen = []
    for key in keys:
        seen.append(key)
        if gone:
            keys.remove(gone.pop())
    assert seen == sorted(set(seen))
    assert {f"{number:05}" for number in range(6 * _BLOCK) if number % 3} <= set(seen)
    keys = OrderedKeys()
    assert list(keys) == []
    keys.add("a")
    seen = []
    for key in keys:
        seen.append(key)
        if len(seen) < 3:
            keys.add(key + "a")
        keys.remove(key)
    assert seen == ["a", "aa", "aaa"]
