"""What operations do to values, and the events that changes are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dafka.overlay.stores.arithmetic import add, subtract, zero
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import TypeClash
from dafka.overlay.values import Count, Enum, Set, Table, Timespan, Timestamp, order_key, types
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

BY = EntityId(bytes.fromhex("11111111111141118111111111111111"), 7)
WHO = ("11111111-1111-4111-8111-111111111111", Count(7))


@pytest.mark.parametrize(
    ("value", "amount", "sum"),
    [
        (Count(1), Count(2), Count(3)),
        (Count(2**64 - 1), Count(1), Count(0)),
        (1, -2, -1),
        (2**63 - 1, 1, -(2**63)),
        (1.5, 0.25, 1.75),
        (Timespan(1), Timespan(2), Timespan(3)),
        (Timestamp(1), Timespan(2), Timestamp(3)),
        ("a", "b", "ab"),
        ((1,), "b", (1, "b")),
        (Set([1]), 2, Set([1, 2])),
        (Set([1]), 1, Set([1])),
        (Set([1]), True, Set([1, True])),
        (Table({"a": 1}), ("a", 2), Table({"a": 2})),
        (Table({"a": 1}), ("b", 2), Table({"a": 1, "b": 2})),
    ],
    ids=repr,
)
def test_add(value, amount, sum):
    assert order_key(add(value, amount)) == order_key(sum)


@pytest.mark.parametrize(
    ("value", "amount", "rest"),
    [
        (Count(3), Count(2), Count(1)),
        (1, 2, -1),
        (1.5, 0.5, 1.0),
        (Timespan(3), Timespan(2), Timespan(1)),
        (Timestamp(3), Timespan(2), Timestamp(1)),
        ((1, 2), "whatever", (1,)),
        ((), None, ()),
        (Set([1, True]), 1, Set([True])),
        (Table({"a": 1, "b": 2}), "a", Table({"b": 2})),
    ],
    ids=repr,
)
def test_subtract(value, amount, rest):
    assert order_key(subtract(value, amount)) == order_key(rest)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (Count(1), 1),
        (1, Count(1)),
        (1, True),
        (True, True),
        (Timestamp(1), Timestamp(1)),
        ("a", 1),
        ("a", Enum("b")),
        (None, None),
        (Enum("a"), "b"),
        (Table(), "key"),
        (Table(), ("key",)),
    ],
    ids=repr,
)
def test_an_operation_the_type_of_a_value_lacks_is_a_clash(value, amount):
    with pytest.raises(TypeClash):
        add(value, amount)


def test_strings_cannot_be_shortened():
    with pytest.raises(TypeClash):
        subtract("abc", "c")


def test_the_first_addition_begins_with_the_zero_of_a_type():
    assert order_key(zero(types.TIMESTAMP)) == order_key(Timestamp(0))
    assert zero(types.VECTOR) == ()
    for tag in (types.BOOLEAN, types.ENUM, 99):
        with pytest.raises(TypeClash):
            zero(tag)


def test_keys_are_told_apart_by_their_type():
    content = Content("st")
    for key in (1, Count(1), True, 1.0, "1"):
        content.put(key, str(type(key)), None, BY)
    assert len(content) == 5
    assert content.get(Count(1)) == str(Count) and content.get(True) == str(bool)
    assert len(content.keys()) == 5 and not content.exists(Timespan(1))


def test_events_say_what_has_changed_and_by_whom():
    content = Content("st")
    assert content.put("a", 1, Timespan(5), BY) == ("insert", "st", "a", 1, Timespan(5), *WHO)
    assert content.put("a", 2, None, NO_ENTITY) == ("update", "st", "a", 1, 2, None, None, None)
    assert content.erase("a", BY) == ("erase", "st", "a", *WHO)
    assert content.erase("a", BY) is None
    content.put("b", 1, None, BY)
    assert content.erase("b", BY, "expire") == ("expire", "st", "b", *WHO)


def test_another_content_is_taken_over_with_events_of_what_is_different():
    content = Content("st")
    for key in "abc":
        content.put(key, 1, None, BY)
    events = content.replace([("b", 1), ("c", Count(1)), ("d", 1)], BY)
    assert [event[0] + " " + event[2] for event in events] == ["erase a", "update c", "insert d"]
    assert sorted(content) == [("b", 1), ("c", 1), ("d", 1)]


def test_elements_of_values():
    content = Content("st")
    content.put("vector", ("x", "y"), None, BY)
    content.put("set", Set([1]), None, BY)
    content.put("table", Table({"k": "v"}), None, BY)
    content.put("text", "abc", None, BY)
    assert content.get_index_from_value("vector", Count(1)) == "y"
    assert content.get_index_from_value("vector", 0) == "x"
    assert content.get_index_from_value("set", 1) is True
    assert content.get_index_from_value("set", Count(1)) is False
    assert content.get_index_from_value("table", "k") == "v"
    for key, index in [("vector", 2), ("vector", -1), ("table", "x"), ("nothing", 0)]:
        with pytest.raises(KeyError):
            content.get_index_from_value(key, index)
    for key, index in [("vector", "0"), ("text", 0), ("vector", True)]:
        with pytest.raises(TypeClash):
            content.get_index_from_value(key, index)


def test_entries_that_were_cleared_end_with_their_events():
    """A million entries that end at once take long."""
    content = Content("st")
    for number in range(100):
        content.put(number, number, None, NO_ENTITY)
    entries = [entry for _, entry in content.entries()]
    kept = min([sys.getrefcount(one) for one in entries])
    events = content.clear(NO_ENTITY)
    assert len(content) == 0
    for left in range(100, 0, -1):
        assert next(events)[0] == "erase"  # which has the last entry until there is another one
        assert [sys.getrefcount(one) >= kept for one in entries].count(True) == left
    content.put(1, 2, None, NO_ENTITY)
    assert list(events) == []
    assert content.keys() == Set([1])


def test_entries_are_in_the_same_order_in_each_process():
    code = (
        "from dafka.overlay.stores.content import Content, NO_ENTITY\n"
        "content = Content('st')\n"
        "for number in range(100): content.put(f'key {number}', number, None, NO_ENTITY)\n"
        "print([value for _, value in content])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
