"""JSON of others: what it means, and how deep it may be."""

from __future__ import annotations

import gc
import json
import re
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dafka
from dafka.protocol.errors import TooDeepError
from dafka.protocol.json_text import DEEPEST, check_depth, read_json

OF_THE_PACKAGE = {"broker/topics/documentation.py", "broker/topics/kafka_configs.py"}
"""They read files that come with Dafka."""

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


def depth_of(value: Any) -> int:
    if not isinstance(value, (list, dict)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0)


@settings(max_examples=100)
@given(DOCUMENTS, st.sampled_from([None, 1]), st.booleans())
def test_depth_is_that_of_the_value(document: Any, indent: int | None, ascii: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii)
    depth = depth_of(document)
    assert read_json(text, deepest=depth) == document
    if depth:
        with pytest.raises(TooDeepError, match=f"more than {depth - 1} deep"):
            check_depth(text, depth - 1)


@settings(max_examples=100)
@given(st.text('[]{}"\\a,:1') | st.binary())
def test_anything_else_is_the_error_of_the_standard_library(text: str | bytes) -> None:
    try:
        expected = json.loads(text)
    except ValueError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            read_json(text)
    else:
        assert repr(read_json(text)) == repr(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_octets_are_decoded_before_brackets_are_counted(encoding: str) -> None:
    bracket = "\u5b22"  # which has the octets of a bracket and of a quote in UTF-16
    document = {bracket: '["\\' * DEEPEST}
    assert read_json(json.dumps(document, ensure_ascii=False).encode(encoding)) == document
    with pytest.raises(TooDeepError):
        read_json(('["' + bracket + '",' + "[" * DEEPEST).encode(encoding))


def test_options_are_those_of_the_reader() -> None:
    assert read_json('"\t"', strict=False) == "\t"


@pytest.mark.parametrize(
    "text",
    [
        "[" * (DEEPEST + 1),
        "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        '{"a":' * 100_000,
        "[]," * DEEPEST + "[" * (DEEPEST + 1),
    ],
    ids=["lists", "valid", "objects", "late"],
)
def test_text_that_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(TooDeepError, match=f"nested more than {DEEPEST} deep"):
        read_json(text)


def test_brackets_in_strings_and_side_by_side_are_no_depth() -> None:
    text = '[[],[],["' + "[{" * 1000 + '\\"' + "[" * 1000 + '"]' + ",[]" * 1000 + "]"
    assert read_json(text) == json.loads(text)
    with pytest.raises(json.JSONDecodeError):
        read_json("[]" * DEEPEST + '"' + "[" * 1000)  # in a string without an end


def test_a_finalizer_finds_room_while_a_deep_text_is_refused() -> None:
    called: list[int] = []
    thresholds = gc.get_threshold()
    objects = range(500, 1000)  # until the collection, on the way down
    gc.freeze()  # a collection for each need not look at what the other tests have left
    try:
        for count in objects:
            gc.collect()
            circle = _Circle()
            weakref.finalize(circle, called.append, count)
            del circle
            gc.set_threshold(count)
            with pytest.raises(TooDeepError):
                read_json('{"a":' * 100_000)
            gc.set_threshold(*thresholds)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    gc.collect()
    assert called == [*objects]


class _Circle:
    """An object that only a collection of garbage frees."""

    def __init__(self) -> None:
        self.itself = self


def test_all_json_is_read_here_but_that_of_the_package() -> None:
    house = Path(dafka.__file__).parent
    files = [*house.rglob("*.py"), *(house.parent / "compat").rglob("*.py")]
    readers = {path for path in files if re.search(r"\bjson\.loads?\(|JSONDecoder\(", path.read_text())}
    bridge = house / "overlay" / "bridge" / "json_forms.py"  # a decoder of its own, behind the same check
    assert "check_depth(text)" in bridge.read_text()
    here = house / "protocol" / "json_text.py"
    assert readers == {here, bridge, *(house / name for name in OF_THE_PACKAGE)}
