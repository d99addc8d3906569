"""Decoded records through the API, with a schema registry that answers, and with ones that do not."""

from __future__ import annotations

import base64
import io
import json
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from decimal import Decimal
from uuid import uuid4

import fastavro
import msgpack
import pytest
import trustme
from console.asking import SECONDS, Client
from console.registries import framed, serving
from timing import until

import dafka.broker
from dafka.console import Console, ConsoleOptions, SchemaRegistry, limits
from dafka.security.tls import ClientTls

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": "shop.Line"}},
    ],
}
RAW = {"decode": "none", "decode-key": "none"}
LINE = {"type": "record", "name": "Line", "namespace": "shop", "fields": [{"name": "sku", "type": "string"}]}


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """On a busy machine a registry may take longer than the console waits for it."""
    monkeypatch.setattr(limits, "REGISTRY_SECONDS", SECONDS)


@pytest.fixture(scope="module")
def registry():
    with serving() as registry:
        yield registry


@contextmanager
def console(shared, registry, **options):
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    known = SchemaRegistry(registry if isinstance(registry, str) else registry.url, **options)
    with Console(connection, ConsoleOptions(schema_registry=known)) as running:
        yield Client(running.url)


@pytest.fixture(scope="module")
def decoding(shared, registry):
    with console(shared, registry) as client:
        yield client


@pytest.fixture
def topic(shared):
    name = f"t-{uuid4()}"
    shared.create_topic(name, 1)
    return name


def avro(schema, value, named=None):
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema, named_schemas=named or {}), value)
    return written.getvalue()


def only(client, topic, **query):
    (record,) = client.get(f"/api/topics/{topic}/records", **query)["records"]
    return record


def test_avro_with_references_is_decoded_searched_and_downloaded(decoding, registry, shared, topic):
    reference = registry.add_subject("shop.Line", LINE)
    registry.add(7, ORDER, references=[reference])
    registry.add(8, "string")
    named = {}
    fastavro.parse_schema(LINE, named_schemas=named)
    order = {"user": "Zoë", "amount": "12.50", "at": 0, "lines": [{"sku": "A1"}]}
    content = avro(ORDER, {**order, "amount": Decimal("12.50")}, named)
    shared.preload(topic, [(framed(8, avro("string", "=k")), framed(7, content)), ("plain", "other")])
    rows = decoding.get(f"/api/topics/{topic}/records")["records"]
    shown = rows[0]["value"]["decoded"]
    assert (shown["as"], shown["schema"], shown["name"], shown["cut"]) == ("Avro", 7, "shop.Order", False)
    assert json.loads(shown["text"]) == {**order, "at": "1970-01-01T00:00:00+00:00"}
    assert rows[0]["key"]["decoded"]["text"] == '"=k"' and "decoded" not in rows[1]["value"]
    search = decoding.ask("GET", f"/api/topics/{topic}/search", expression='value.lines.0.sku == "A1"').events
    assert search[0][1]["records"][0]["value"]["decoded"]["schema"] == 7 and search[-1][1]["found"] == 1
    assert registry.asked.count("/schemas/ids/7") == 1  # it is kept
    lines = decoding.ask("GET", f"/api/topics/{topic}/download", format="jsonl", decoded="true").content
    first = json.loads(lines.splitlines()[0])
    assert first["key_decoded"] == "=k" and first["value_decoded"]["user"] == "Zoë"
    assert base64.b64decode(first["value_base64"]) == framed(
        7, content
    )  # a record that is written again is the same
    table = decoding.ask("GET", f"/api/topics/{topic}/download", format="csv", decoded="true").content
    assert table.splitlines()[0].endswith(b"headers,key_decoded,value_decoded")
    raw = only(decoding, topic, partitions="0", from_="0", limit=1, **RAW)
    assert "decoded" not in raw["value"] and "decoded" not in raw["key"]


PROTO = """
syntax = "proto3";
package shop;
import "parts/money.proto";
import "google/protobuf/timestamp.proto";
message Other {}
message Order {
  message Line { string sku = 1; repeated double weights = 2; }
  repeated Line lines = 1; parts.Money total = 2; google.protobuf.Timestamp at = 3;
}
"""
MONEY = 'syntax = "proto3"; package parts; message Money { int64 cents = 1; }'


def test_protobuf_with_imports_is_decoded(decoding, registry, shared, topic):
    registry.add(
        20, PROTO, "PROTOBUF", references=[registry.add_subject("parts/money.proto", MONEY, "PROTOBUF")]
    )
    order = b"\x0a\x04\x0a\x02A1" + b"\x12\x02\x08\x05" + b"\x1a\x02\x08\x07"
    line = b"\x0a\x02A2" + b"\x12\x08" + b"\x00\x00\x00\x00\x00\x00\xf8\x7f"  # not a number
    shared.preload(topic, [framed(20, b"\x02\x02" + order), framed(20, b"\x04\x02\x00" + line), order])
    found = [one["value"].get("decoded") for one in decoding.get(f"/api/topics/{topic}/records")["records"]]
    assert [one and (one["as"], one["name"]) for one in found[:2]] == [
        ("Protobuf", "shop.Order"),
        ("Protobuf", "shop.Order.Line"),
    ]
    assert json.loads(found[0]["text"]) == {
        "lines": [{"sku": "A1"}],
        "total": {"cents": "5"},
        "at": "1970-01-01T00:00:07Z",
    }
    assert json.loads(found[1]["text"]) == {"sku": "A2", "weights": ["NaN"]}
    query = {"expression": "value.total.cents == 5", "decode": "schema:20:shop.Order"}
    assert decoding.ask("GET", f"/api/topics/{topic}/search", **query).events[-1][1]["found"] == 1
    assert registry.asked.count("/schemas/ids/20") == 1


def test_json_of_a_registry_and_messagepack_are_decoded(decoding, registry, shared, topic):
    registry.add(30, {"title": "<b>bold</b>", "type": "object"}, "JSON")
    packed = msgpack.packb({"n": 1, "b": b"\xff"})
    shared.preload(topic, [framed(30, b'{"a": 1}'), packed, msgpack.packb(5), framed(30, b'{"a"')])
    values = [one["value"] for one in decoding.get(f"/api/topics/{topic}/records")["records"]]
    assert values[0]["decoded"]["text"] == '{"a":1}' and values[0]["decoded"]["name"] == "<b>bold</b>"
    assert (
        values[1]["decoded"]["as"] == "MessagePack" and values[1]["decoded"]["text"] == '{"n":1,"b":"/w=="}'
    )
    assert "decoded" not in values[2] and "it is not JSON" in values[3]["note"]
    chosen = decoding.get(f"/api/topics/{topic}/records", decode="msgpack")["records"]
    assert chosen[2]["value"]["decoded"]["text"] == "5" and "note" in chosen[0]["value"]
    assert decoding.ask("GET", f"/api/topics/{topic}/records", decode="schema:x").status == 400


def test_records_that_cannot_be_decoded_have_a_note(decoding, registry, shared, topic):
    registry.add(40, "long")
    registry.add(41, {"type": "record", "name": "R", "fields": 5})
    registry.add(42, "syntax error", "PROTOBUF")
    registry.add(43, "x", "THRIFT <b>")
    registry.add(44, b"<html>")
    registry.add(45, b"x" * (limits.SCHEMA_OCTETS + 10))
    registry.add(46, b'{"schema": 5}')
    registry.add(47, "long", references=[{"name": "a", "subject": "../..", "version": 1}])
    registry.add(
        48,
        "long",
        references=[
            registry.add_subject(
                "loop", "int", references=[{"name": "loop", "subject": "loop", "version": 1}]
            )
        ],
    )
    registry.add(58, "long", references=[{"name": "a", "subject": "\ud800", "version": 1}])
    strange = 'syntax = "proto3"; package google.protobuf; message Timestamp { int32 odd = 1; }'
    named = registry.add_subject("google/protobuf/timestamp.proto", strange, "PROTOBUF")
    text = f'syntax = "proto3"; import "{named["name"]}"; message M {{ google.protobuf.Timestamp at = 1; }}'
    registry.add(59, text, "PROTOBUF", references=[named])
    whys = {
        40: "it is not of this Avro schema",
        41: "cannot be understood",
        42: "cannot be compiled",
        43: "there is no decoder for schemas of the type 'THRIFT <b>'",
        44: "is not JSON",
        45: f"more than {limits.SCHEMA_OCTETS} octets",
        46: "is not a schema",
        47: "the registry has no such schema",
        48: "refers to more than",
        49: "the registry has no such schema",
        58: "it cannot be understood",
        59: "it cannot be decoded",  # its library fails with a Timestamp
    }
    values = dict.fromkeys(whys, b"\xff") | {59: b"\0\x0a\2\x08\1"}
    shared.preload(topic, [framed(number, value) for number, value in values.items()])
    asked = len(registry.asked)
    for _ in range(2):
        rows = decoding.get(f"/api/topics/{topic}/records")["records"]
        for why, row in zip(whys.values(), rows, strict=True):
            assert why in row["value"]["note"]
        assert "/subjects/..%2F../versions/1" in registry.asked and len(registry.asked) - asked <= 70
        asked, registry.asked = len(registry.asked), registry.asked
        assert registry.asked.count("/schemas/ids/49") == 1  # a failed request is not repeated at once


def test_many_unknown_schemas_are_not_all_asked_for(decoding, registry, shared, topic, monkeypatch):
    monkeypatch.setattr(limits, "LOOKUPS", 5)
    shared.preload(topic, [framed(1000 + number, b"x") for number in range(20)])
    rows = decoding.get(f"/api/topics/{topic}/records")["records"]
    notes = [one["value"]["note"] for one in rows]
    assert len([one for one in notes if "no such schema" in one]) == 5
    assert len([one for one in notes if "too many others were" in one]) == 15


def test_a_registry_that_is_slow_or_down_holds_nobody_up(shared, topic, monkeypatch):
    monkeypatch.setattr(limits, "REGISTRY_SECONDS", 0.3)
    go_on = threading.Event()
    shared.preload(topic, [framed(number, b"x") for number in range(30)])
    with serving() as slow:
        slow.before = lambda: go_on.wait(SECONDS)
        with console(shared, slow) as client:
            try:
                rows = client.get(f"/api/topics/{topic}/records")["records"]
                notes = {one["value"]["note"].partition(": ")[2] for one in rows}
                assert notes == {"the registry does not answer (within 0.3 s)"}
                until(lambda: slow.asked)  # it may hear of it later than the time is over
                assert len(slow.asked) == 1
                assert client.get("/health")["status"] == "up"
            finally:
                go_on.set()
        url = slow.url
    with console(shared, url) as client:
        assert (
            "the registry does not answer"
            in client.get(f"/api/topics/{topic}/records")["records"][0]["value"]["note"]
        )


ANSWERS = {
    b"": "does not answer",
    b"garbage\r\n\r\n": "does not answer",
    b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n{": "is not JSON",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{": "is not JSON",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n": "does not answer",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n": "answers 302",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b": "is not JSON",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n{}": "does not answer",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n{}": "does not answer",
    b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 500 + b"]" * 500: "is not JSON: it is nested more than 300 deep",
    b"HTTP/1.1 200 OK\r\n\r\n[]": "is not a schema",
}


def test_a_registry_that_speaks_nonsense_is_a_note(shared, topic, monkeypatch):
    monkeypatch.setattr(limits, "REGISTRY_REST", 0.0)
    shared.preload(topic, [framed(number, b"x") for number in range(len(ANSWERS))])
    answers = iter(ANSWERS)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for answer in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    with suppress(OSError):
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with console(shared, f"http://127.0.0.1:{server.getsockname()[1]}/ü/") as client:
            rows = client.get(f"/api/topics/{topic}/records")["records"]
    for row, why in zip(rows, ANSWERS.values(), strict=True):
        assert why in row["value"]["note"], row["offset"]


def test_a_registry_with_tls_and_a_password_is_asked_with_them(shared, topic, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    shared.preload(topic, [framed(1, b"\x0a")])
    tls = ClientTls(cafile=tmp_path / "ca.pem")
    with serving(context) as registry:
        registry.needs_login = True
        registry.add(1, "long")
        with console(shared, registry.url.replace("//", "//zoe:p%3Aw@"), tls=tls) as client:
            assert only(client, topic)["value"]["decoded"]["text"] == "5"
        with console(shared, registry, user="zoe", password="wrong", tls=tls) as client:
            assert only(client, topic)["value"]["note"] == "schema 1: the registry answers 401"
        with console(shared, registry) as client:
            assert "certificate verify failed" in only(client, topic)["value"]["note"]


def test_a_malformed_address_is_refused():
    for url in ("registry:8081", "ftp://x", "http://", "http://x:99999", "http://x/?a=1", "http://a b"):
        with pytest.raises(ValueError, match="schema registry"):
            SchemaRegistry(url)
    known = SchemaRegistry("https://zoe:secret@host:8081/path")
    assert "secret" not in repr(known) and known.url == "https://host:8081/path"
    with pytest.raises(ValueError, match="already"):
        SchemaRegistry("https://zoe@host", user="zoe")
    with pytest.raises(ValueError, match="certificate"):
        SchemaRegistry("http://host", tls=ClientTls())
