from __future__ import annotations

import json

import pytest
from overlay.bridge import rows
from overlay.vectors import vectors

from dafka.overlay.bridge.json_forms import dumps
from dafka.overlay.bridge.zeek_objects import Objects, to_event
from dafka.overlay.values import Address, Count, Enum, Timestamp, Value
from dafka.overlay.values.decoder import decode
from dafka.overlay.wire.envelope import decode_envelope
from dafka.overlay.wire.zeek import Batch, Event, IdentifierUpdate, LogCreate, LogWrite, ZeekMessage, to_value
from dafka.protocol.errors import MalformedMessage

STREAM, WRITER = Enum("Conn::LOG"), Enum("Log::WRITER_ASCII")
CREATE = LogCreate(
    STREAM, WRITER, None, tuple((name, None, Count(7), Count(0), True) for name in rows.CONN_FIELDS)
)
WRITE = LogWrite(STREAM, WRITER, "conn", rows.text(rows.conn()))


def contents(*messages: ZeekMessage | Value) -> list[object]:
    objects = Objects()
    found = []
    for message in messages:
        value = to_value(message) if hasattr(message, "_fields") else message  # type: ignore[arg-type]
        found += [json.loads(dumps(one.content)) for one in objects.of(value)]
    return found


def test_an_event_is_an_object_with_its_name_and_arguments() -> None:
    assert contents(Event("ping", (Count(1), Address.of("::1")))) == [{"event": "ping", "args": [1, "::1"]}]


def test_the_time_of_the_network_and_other_metadata_are_kept() -> None:
    event = Event("ping", (), ((Count(1), Timestamp(2_500_000_000)), (Count(200), "mine")))
    assert contents(event) == [{"event": "ping", "args": [], "ts": 2.5, "metadata": {"200": "mine"}}]


def test_a_log_write_is_an_object_with_the_names_that_its_stream_has_announced() -> None:
    expected = {
        name: value
        for name, value in zip(rows.CONN_FIELDS, rows.CONN_VALUES, strict=True)
        if value is not None
    }
    assert contents(CREATE, WRITE) == [expected]


def test_a_log_write_of_a_stream_that_was_not_announced_keeps_its_values() -> None:
    assert contents(WRITE) == [{"stream": "Conn::LOG", "path": "conn", "row": rows.CONN_VALUES}]


def test_a_batch_is_an_object_for_each_message() -> None:
    batch = Batch((CREATE, WRITE, IdentifierUpdate("x", 3), Batch((Event("a"),))))
    found = contents(batch)
    assert found[1:] == [{"identifier": "x", "value": 3}, {"event": "a", "args": []}]
    assert len(found) == 3


def test_any_other_value_is_its_json() -> None:
    assert contents((Count(1), "text")) == [[1, "text"]]
    assert contents((Count(1), 1.0, ("ping", ()))) == [[1, 1.0, ["ping", []]]]


def test_a_damaged_row_is_an_error() -> None:
    with pytest.raises(MalformedMessage):
        contents(LogWrite(STREAM, WRITER, "conn", "nonsense"))


def test_events_as_libbroker_sends_them() -> None:
    found = [
        content
        for vector in vectors()
        if vector.name.startswith("zeek-event") and vector.octets
        for content in contents(decode(decode_envelope(vector.message).payload))
    ]
    assert {"event": "event_1", "args": [42, "test"]} in found
    assert all("event" in content for content in found if isinstance(content, dict))


def test_the_object_of_an_event_is_that_event_again() -> None:
    event = Event("ping", (3, "text", (True, None)), ((Count(200), "mine"),))
    assert to_event(contents(event)[0]) == event


@pytest.mark.parametrize("content", [None, 3, [], {}, {"event": 3, "args": []}, {"event": "x"}, {"args": []}])
def test_other_objects_are_not_events(content: object) -> None:
    assert to_event(content) is None
