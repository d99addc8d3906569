from __future__ import annotations

import pytest

from dafka.overlay.bridge.templates import Template, TemplateError

KNOWN = ("topic", "key", "value")


def rendered(text: str, **fields: object) -> str:
    return Template(text, KNOWN).render(fields)


def test_fields_are_put_in() -> None:
    assert rendered("a.{topic}.b", topic="x") == "a.x.b"


def test_two_braces_are_one() -> None:
    assert rendered("{{{topic}}}", topic="x") == "{x}"


def test_members_and_elements_are_reached_also_where_names_have_dots() -> None:
    value = {"id.orig_h": "10.0.0.1", "tags": ["a", {"deep": True}]}
    assert rendered("{value[id.orig_h]}/{value[tags][1][deep]}", value=value) == "10.0.0.1/true"


def test_octets_are_shown_as_text() -> None:
    assert rendered("{key}", key=b"k\xff") == "k\\xff"


def test_a_default_stands_for_what_is_missing_or_null() -> None:
    assert rendered("{value[uid]:none}", value={"uid": None}) == "none"
    assert rendered("{value[3]:none}", value=[1]) == "none"


@pytest.mark.parametrize("value", [{}, {"uid": None}, "text", None, [1]])
def test_a_field_that_is_missing_is_an_error_that_names_it(value: object) -> None:
    with pytest.raises(TemplateError, match=r"no value\[uid\]"):
        rendered("{value[uid]}", value=value)
    assert Template("{value[uid]}", KNOWN).render_optional({"value": value}) is None


@pytest.mark.parametrize(
    "text", ["{", "{topic", "}", "{}", "{0}", "{topic.upper}", "{topic!r}", "{topic[}", "{other}"]
)
def test_anything_but_a_template_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match="template"):
        Template(text, KNOWN)


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    with pytest.raises(TemplateError, match="only key, topic, value"):
        Template("{uid}", KNOWN)


def test_nothing_of_a_value_is_called_or_looked_into() -> None:
    assert Template("{value[__class__]}", KNOWN).render_optional({"value": object()}) is None


@pytest.mark.parametrize(
    ("text", "topic", "expected"),
    [
        ("{topic}", "/zeek/event/x", "zeek.event.x"),
        ("zeek.{topic}", "a b/ü", "zeek.a_b._"),
        ("fixed", "", "fixed"),
    ],
)
def test_names_of_topics_in_kafka_are_legal(text: str, topic: str, expected: str) -> None:
    assert Template(text, KNOWN).render_topic({"topic": topic}) == expected


@pytest.mark.parametrize("topic", ["", "/", "//", "..", "x" * 250])
def test_an_invalid_topic_name_is_an_error(topic: str) -> None:
    with pytest.raises(TemplateError, match="cannot be the name of a topic"):
        Template("{topic}", KNOWN).render_topic({"topic": topic})
