"""Small named values that are committed together with records."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log.messages import ADDRESS

from dafka.log import Log, TableValueError
from dafka.log.table import Table, decode_value, encode_value, pack_key, seal, unpack_key, unseal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON | st.binary())
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    row = pack_key("table", "key")
    assert decode_value(unseal(row, seal(row, encode_value(value)))) == value


@given(st.text(max_size=40), st.text())
def test_names_and_keys_are_any_text(table: str, key: str) -> None:
    assert unpack_key(pack_key(table, key)) == (table, key)


def test_topics_that_are_not_utf_8_can_be_keys_and_values(folder: Path) -> None:
    topic = b"\xff\xfe".decode("utf-8", "surrogateescape")
    with Log(folder) as log:
        log.write([], {("topics", topic): topic})
    with Log(folder) as log:
        assert dict(log.table("topics").items()) == {topic: topic}


def test_values_are_there_after_reopening_each_time_fresh(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("topics", "hello"): {"partitions": [1, 2]}, ("offsets", "group/hello"): (5, "note")})
    with Log(folder) as log:
        topics, offsets = log.table("topics"), log.table("offsets")
        assert topics is log.table("topics")
        assert (list(topics), len(topics), "hello" in topics) == (["hello"], 1, True)
        topics.get("hello")["partitions"].append(3)
        assert topics.get("hello") == {"partitions": [1, 2]}
        assert offsets.get("group/hello") == [5, "note"]
        assert offsets.get("group/other") is None
        assert offsets.get("group/other", 0) == 0


def test_values_that_are_left_on_disk_are_read_each_time_and_not_kept(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("rows", "a"): b"1", ("rows", "b"): b"2"})
    with Log(folder) as log:
        table = log.table("rows")
        table.leave_on_disk()
        reads: list[str] = []
        load = table._load
        table._load = lambda name, key, shape: (reads.append(key), load(name, key, shape))[1]
        assert (table.get("a"), table.get("a"), table.get("none", 5)) == (b"1", b"1", 5)
        log.write([], {("rows", "a"): b"3", ("rows", "b"): None, ("rows", "c"): b"4"})
        assert [(key, table.get(key)) for key in table] == [("a", b"3"), ("c", b"4")]
        assert reads == ["a", "a", "a", "c"]
        assert set(table._stored.values()) == {None}
    with Log(folder) as log:
        assert dict(log.table("rows").items()) == {"a": b"3", "c": b"4"}


def test_items_are_those_with_the_prefix_in_order(folder: Path) -> None:
    with Log(folder) as log:
        table = log.table("offsets")
        log.write([], {("offsets", f"group{n}/topic{m}"): n for n in (2, 10, 1) for m in (1, 0)})
        assert list(table.items("group1/")) == [("group1/topic0", 1), ("group1/topic1", 1)]
        assert len(list(table.items())) == 6
        assert list(table.items("group3")) == []
        log.write([], {("offsets", "group1/topic00"): 5, ("offsets", "group1/topic1"): None})
        assert list(table.items("group1/")) == [("group1/topic0", 1), ("group1/topic00", 5)]


def test_items_may_change_while_they_are_gone_through(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", key): key for key in "abc"})
        seen = []
        for key, _ in log.table("t").items():
            seen.append(key)
            log.write([], {("t", "b"): None, ("t", "d"): 1})
        assert seen == ["a", "c", "d"]


@given(st.lists(st.tuples(st.sampled_from(["put", "drop", "look"]), st.text("ab\U0010ffff", max_size=3))))
def test_keys_come_and_go_in_any_order(steps: list[tuple[str, str]]) -> None:
    table, model = Table("table", lambda table, key, shape: (encode_value(key), key)), set[str]()
    asked = Table("table", lambda table, key, shape: (encode_value(key), key))
    kinds = asked.kinds(_length)
    for step, key in steps * 3:
        if step == "put":
            table.put_stored(key, encode_value(key))
            asked.put_stored(key, None)
            model.add(key)
        elif step == "drop":
            table.drop(key)
            asked.drop(key)
            model.discard(key)
        else:
            found = sorted(one for one in model if one.startswith(key))
            assert list(table.items(key)) == [(one, one) for one in found]
    assert list(table) == sorted(model) == sorted(table.unordered())
    assert kinds == table.kinds(_length) == Counter(map(_length, model))


def _length(key: str) -> str:
    return str(len(key))


def test_kinds_are_found_once_for_each_key() -> None:
    looked_at: list[str] = []

    def kind_of(key: str) -> str:
        looked_at.append(key)
        return key[0]

    table = Table("table", lambda table, key, shape: (encode_value(key), key))
    for key in ("a1", "a2", "b1"):
        table.put_stored(key, None)
    assert table.kinds(kind_of) == {"a": 2, "b": 1}
    table.put_stored("a1", None)
    table.put_stored("c1", None)
    table.drop("b1")
    assert table.kinds(kind_of) == {"a": 2, "c": 1}
    assert sorted(looked_at[:3]) == ["a1", "a2", "b1"]
    assert looked_at[3:] == ["c1", "b1"]


def test_many_keys_come_and_go_in_order() -> None:
    table = Table("table", lambda table, key, shape: (encode_value(key), key))
    for number in range(100):
        table.put_stored(f"{number:03}", None)
    assert list(table) == [f"{number:03}" for number in range(100)]
    for number in range(5000):
        table.put_stored(f"new {number}", None)
        table.drop(f"new {number}")
    for number in range(100, 200):
        table.put_stored(f"{number:03}", None)
    assert list(table) == [f"{number:03}" for number in range(200)]


def test_a_deleted_value_is_gone_for_good(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("t", "a"): 1, ("t", "b"): 2})
        log.write([], {("t", "a"): None, ("t", "never"): None})
        assert dict(log.table("t").items()) == {"b": 2}
    with Log(folder) as log:
        assert dict(log.table("t").items()) == {"b": 2}


def test_a_value_goes_with_the_records_of_its_round(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])], {("t", "a"): b"\0bytes"})
    with Log(folder) as log:
        assert log.partition(b"hello", ADDRESS).next_sequence == 1
        assert log.table("t").get("a") == b"\0bytes"


@pytest.mark.parametrize("value", [object(), {1, 2}, {"a": b"bytes inside"}, lambda: None])
def test_a_value_that_is_not_json_is_refused_with_its_place(folder: Path, value: Any) -> None:
    with Log(folder) as log:
        with pytest.raises(TableValueError, match="table 't', key 'a'"):
            log.write([], {("t", "b"): 1, ("t", "a"): value})
        assert len(log.table("t")) == 0


def test_a_value_that_is_nested_too_deep_is_refused_as_it_would_not_be_read_again(folder: Path) -> None:
    deepest: Any = 1
    for _ in range(300):
        deepest = [deepest]
    with Log(folder) as log:
        with pytest.raises(TableValueError, match=r"key 'a' .*: it is nested more than 300 deep"):
            log.write([], {("t", "a"): [deepest]})
        log.write([], {("t", "a"): deepest})
    with Log(folder) as log:
        assert log.table("t").get("a") == deepest


def test_a_circle_and_a_value_that_is_too_large_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    circle: list[Any] = []
    circle.append(circle)
    monkeypatch.setattr("dafka.log.table.TABLE_VALUE_BYTES", 100)
    with Log(folder) as log:
        for value in (circle, "x" * 100, bytes(100)):
            with pytest.raises(TableValueError, match="key 'a'"):
                log.write([], {("t", "a"): value})


def test_the_name_of_a_table_has_a_limit(folder: Path) -> None:
    with Log(folder) as log:
        with pytest.raises(TableValueError, match="255"):
            log.table("t" * 256)
        with pytest.raises(TableValueError, match="255"):
            log.write([], {("t" * 256, "a"): 1})
        log.write([], {("t" * 255, "a"): 1})


def test_keys_that_are_dropped_while_all_are_looked_at_are_freed_some_at_a_time() -> None:
    """A million that are freed at once, with the copy that somebody looks through, make a long turn."""
    freed, most = [0], 0

    class Key(str):
        def __del__(self) -> None:
            freed[0] += 1

    table, count = Table("table", lambda table, key, shape: (b"", key)), 10_000
    for number in range(count):
        table.put_stored(Key(f"{number:05}"), None)
    for key in table.unordered():
        table.drop(key)
        most, freed[0] = max(most, freed[0]), 0
    assert len(table) == 0
    assert max(most, freed[0]) <= 1000


def test_a_table_of_very_many_keys_has_no_container_that_takes_long_to_grow() -> None:
    table = Table("table", lambda table, key, shape: (encode_value(key), key))
    for number in range(50_000):
        table.put_stored(f"key {number}", None)
    assert max(map(sys.getsizeof, vars(table).values())) < 100_000  # a dictionary of them has 2.6 million
