"""JSON text: one reader at once, one that lets others run, and they agree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.websocket.errors import InvalidForm, MalformedJson
from dafka.overlay.websocket.forms.text import parsed, parsed_leniently, parsed_slowly

READERS = [parsed, parsed_slowly]

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


def outcome(read, text):
    try:
        return "value", repr(read(text))
    except MalformedJson as error:
        return "malformed", error.name, error.line, error.column
    except InvalidForm:
        return ("invalid",)


@settings(max_examples=40)
@given(documents, st.sampled_from([None, 1, "\t"]))
def test_both_readers_read_what_is_json(document, indent):
    text = json.dumps(document, indent=indent)
    assert repr(parsed(text)) == repr(parsed_slowly(text)) == repr(json.loads(text))


@settings(max_examples=40)
@given(documents, st.data())
def test_both_readers_say_the_same_of_what_is_broken(document, data):
    text = json.dumps(document)
    position = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    text = (
        text[:position]
        + data.draw(st.text(st.sampled_from('[]{},:"\\ \n10-.eEtrufals\x01\x0b'), max_size=3))
        + text[position + cut :]
    )
    assert outcome(parsed, text) == outcome(parsed_slowly, text)


@given(st.text(st.sampled_from('[]{},:"\\ \n10-.eEtruefalsn/u\x01'), max_size=20))
def test_both_readers_say_the_same_of_what_never_was_json(text):
    assert outcome(parsed, text) == outcome(parsed_slowly, text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "name", "line", "column"),
    [
        ("How is it going?", "unexpected_character", 1, 1),
        ("", "unexpected_eof", 1, 1),
        ('{"a":1} trailing', "trailing_character", 1, 9),
        ('{"a":1,\n"b" 2}', "unexpected_character", 2, 5),
        ('["abc', "unexpected_eof", 1, 6),
        ("[1,", "unexpected_eof", 1, 4),
        ("[NaN]", "unexpected_character", 1, 2),
        ('["NaN", -Infinity]', "unexpected_character", 1, 9),
        ('"\x01"', "unexpected_character", 1, 2),
    ],
)
def test_an_error_has_libbroker_s_name_and_its_place(read, text, name, line, column):
    assert outcome(read, text) == ("malformed", f"caf::pec::{name}", line, column)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 100_000])
def test_text_without_a_value_is_refused(read, text):
    assert outcome(read, text) == ("invalid",)


@pytest.mark.parametrize("read", [parsed, parsed_slowly, parsed_leniently])
def test_levels_that_no_form_has_are_refused_before_they_are_read(read):
    levels = 3 * MOST_NESTED + 3
    assert read("[" * levels + "]" * levels)
    with pytest.raises(InvalidForm, match="too deep"):
        read("[" * (levels + 1) + "]" * (levels + 1))


def test_libbroker_s_slips_are_read():
    text = '{"a":inf,"b":-inf,"c":nan,"d":"inf\\vnan\x01","e":[inf, "\\\\v"]}'
    expected = {"a": "inf", "b": "-inf", "c": "nan", "d": "inf\vnan\x01", "e": ["inf", "\\v"]}
    assert parsed_leniently(text) == expected
    for broken in ("[inf", "{a:1}", "information"):
        with pytest.raises(MalformedJson):
            parsed_leniently(broken)
