from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from dafka.overlay.bridge.rules import ORIGIN, InvalidRule, NewRecord, NotCarried, Record, ToKafka, ToOverlay
from dafka.overlay.bridge.templates import TemplateError
from dafka.overlay.node.types import EndpointId
from dafka.overlay.values import Count, Port, Set, Value
from dafka.overlay.values.decoder import decode
from dafka.overlay.wire.zeek import Batch, Event, from_value, to_value

SENDER = EndpointId.parse("9c434b6d-ef38-4e27-afb7-2836b484aea5")


def written(rule: ToKafka, topic: str, value: Value) -> list[NewRecord]:
    return list(rule.records(topic, value, SENDER))


def read(value: bytes | None, topic: str = "alerts", key: bytes | None = None, **headers: bytes) -> Record:
    return Record(topic, 0, 7, 1000, key, value, list(headers.items()))


def test_topic_key_and_headers_are_made_by_templates() -> None:
    rule = ToKafka(
        "/z", "zeek.{name}", key="{value[args][0]}", headers={"from": "{sender}", "uid": "{value[uid]}"}
    )
    (record,) = written(rule, "/z/e", to_value(Event("ping", ("k", 1))))
    assert record.topic == "zeek.ping"
    assert record.key == b"k"
    assert dict(record.headers) == {ORIGIN: b"/z/e", "from": b"9c434b6d-ef38-4e27-afb7-2836b484aea5"}
    assert json.loads(record.value) == {"event": "ping", "args": ["k", 1]}


def test_a_message_without_the_fields_of_the_key_has_none() -> None:
    (record,) = written(ToKafka("", "t", key="{value[uid]}"), "/a", 3)
    assert (record.key, record.value) == (None, b"3")


def test_each_message_of_a_batch_is_a_record_of_its_own_topic() -> None:
    batch = to_value(Batch((Event("a"), Event("b"))))
    assert [one.topic for one in written(ToKafka("", "{name}"), "/x", batch)] == ["a", "b"]


def test_the_binary_form_keeps_every_type() -> None:
    value = (Count(1), Set([Port.of("80/tcp")]))
    (record,) = written(ToKafka("", "t", form="binary"), "/x", value)
    assert decode(record.value) == value
    assert ToOverlay("*", "/x", form="binary").message(read(record.value)) == ("/x", value)


def test_a_batch_in_the_binary_form_is_one_record() -> None:
    batch = to_value(Batch((Event("a"), Event("b"))))
    (record,) = written(ToKafka("", "{name}", form="binary"), "/x", batch)
    assert decode(record.value) == batch


def test_octets_are_strings_as_they_are() -> None:
    octets = b"\0\xff\xfe text"
    found = ToOverlay("*", "/x", form="octets").message(read(octets))
    assert found is not None
    (record,) = written(ToKafka("", "t", form="octets"), *found)
    assert record.value == octets


def test_the_octets_of_other_values_are_refused() -> None:
    with pytest.raises(NotCarried, match="strings"):
        written(ToKafka("", "t", form="octets"), "/x", 3)


def test_an_object_of_an_event_is_published_as_that_event() -> None:
    found = ToOverlay("alerts", "/zeek/{value[event]}").message(read(b'{"event":"ping","args":[1]}'))
    assert found is not None
    assert found[0] == "/zeek/ping"
    assert from_value(found[1]) == Event("ping", (1,))


def test_topics_in_the_overlay_are_made_of_records() -> None:
    rule = ToOverlay("*", "/{topic}/{partition}/{offset}/{key:none}/{header[h]}")
    found = rule.message(read(b"[1]", key=b"k", h=b"x"))
    assert found == ("/alerts/0/7/k/x", (1,))


def test_records_from_the_overlay_are_not_given_back() -> None:
    (record,) = written(ToKafka("", "t"), "/x", 1)
    back = Record("t", 0, 0, 0, record.key, record.value, record.headers)
    assert ToOverlay("*", "/x").message(back) is None


def test_a_record_that_deletes_its_key_is_not_a_message() -> None:
    assert ToOverlay("*", "/x").message(read(None)) is None


@pytest.mark.parametrize(
    ("rule", "value", "cause"),
    [
        (ToOverlay("*", "/x"), b"no json", "value"),
        (ToOverlay("*", "/x", form="binary"), b"\xee", "value"),
        (ToOverlay("*", "/{value[a]}"), b"{}", "template"),
    ],
    ids=["json", "binary", "field"],
)
def test_a_record_that_cannot_be_carried_says_why_and_where(
    rule: ToOverlay, value: bytes, cause: str
) -> None:
    with pytest.raises(NotCarried, match="record 7 of alerts-0") as error:
        rule.message(read(value))
    assert error.value.cause == cause


def test_a_message_without_the_fields_of_the_topic_cannot_be_carried() -> None:
    with pytest.raises(NotCarried, match="template"):
        written(ToKafka("", "{name}"), "/x", 1)


def test_patterns_are_those_of_a_shell() -> None:
    rule = ToOverlay("alerts.*", "/x")
    assert rule.matches("alerts.high")
    assert not rule.matches("alerts")
    assert not rule.matches("other.alerts.high")


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidRule, match="json, binary, octets"):
        ToKafka("", "t", form="xml")
    with pytest.raises(TemplateError, match="offset"):
        ToKafka("", "{offset}")
    with pytest.raises(TemplateError, match="sender"):
        ToOverlay("*", "{sender}")


@pytest.mark.parametrize("wrong", [None, 5, b"t"])
@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: ToKafka("/t", wrong),
        lambda wrong: ToKafka(wrong, "t"),
        lambda wrong: ToKafka("/t", "t", headers={"h": wrong}),
        lambda wrong: ToOverlay(wrong, "/t"),
        lambda wrong: ToOverlay("t", wrong),
    ],
)
def test_arguments_that_are_no_texts_are_refused(make: Callable[[object], object], wrong: object) -> None:
    with pytest.raises((InvalidRule, TemplateError), match="is a text, not"):
        make(wrong)


def test_headers_that_are_no_dict_are_refused() -> None:
    with pytest.raises(InvalidRule, match="headers is a dict"):
        ToKafka("/t", "t", headers=["h"])  # type: ignore[arg-type]
