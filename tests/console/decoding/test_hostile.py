"""Octets and schemas of somebody who means no good: decoding ends early, and says why."""

from __future__ import annotations

import datetime
import json
import math
import struct
import sys
from decimal import Decimal
from uuid import UUID

import msgpack
import pytest

from dafka.console import limits
from dafka.console.decoding.avro import AvroSchema
from dafka.console.decoding.errors import DecodingError
from dafka.console.decoding.messagepack import decode_messagepack
from dafka.console.decoding.plain import parse_json, plain, text_of
from dafka.console.decoding.protobuf import ProtobufSchema
from dafka.console.decoding.registry import JsonSchema

CHAIN = {
    "type": "record",
    "name": "Chain",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Chain"]}],
}

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10}


def avro(schema):
    return AvroSchema(json.dumps(schema))


def number(value):
    value, found = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


@pytest.mark.parametrize(
    ("schema", "content", "why"),
    [
        ({"type": "array", "items": "null"}, number(2**60), "too many values"),
        ({"type": "array", "items": "null"}, number(-(2**60)) + number(0), "too many values"),
        ({"type": "array", "items": "int"}, number(2**60) + b"\2" * 200_000, "too many values"),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, number(10**6) + bytes(10**6), "many"),
        (CHAIN, b"\2\2" * 100_000, "deeper than 64 levels"),
        ("string", number(2**62) + b"x", "ends too early"),
        ("string", number(-5) + b"x", "ends too early"),
        ("long", b"\xff" * 20, "a number is too long"),
        ("long", b"\xff", "it is not of this Avro schema"),
        (["null", "int"], number(7), "an index is out of range"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, number(-1), "an index is out of range"),
        ("int", b"\2\2", "not 2 octets"),
        ("string", number(1) + b"\xff", "it is not of this Avro schema"),
        (DECIMAL, number(2**20 - 3) + b"\x7f" * (2**20 - 3), "a decimal number of more than 256 octets"),
        (DECIMAL | {"type": "fixed", "name": "D", "size": 2**20}, b"\x7f" * 2**20, "more than 256 octets"),
        ({"type": "long", "logicalType": "timestamp-millis"}, number(2**62), "it is not of this Avro schema"),
    ],
    ids=lambda one: None if isinstance(one, str) and len(one) < 60 else "x",
)
def test_avro_that_lies_is_refused(schema, content, why):
    with pytest.raises(DecodingError, match=why):
        avro(schema).decode(content)


def test_an_avro_schema_that_doubles_at_each_level_costs_nothing_much():
    levels = [{"type": "record", "name": "R0", "fields": [{"name": "x", "type": "null"}]}]
    for level in range(1, 40):
        fields = [{"name": name, "type": f"R{level - 1}"} for name in "ab"]
        levels.append({"type": "record", "name": f"R{level}", "fields": fields})
    schema = AvroSchema(json.dumps(levels[-1]), [json.dumps(one) for one in levels[:-1]])
    with pytest.raises(DecodingError, match="too many values"):
        schema.decode(b"")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "5",
        '{"type": "record"}',
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nobody"}]}',
        '{"type": "array"}',
        json.dumps({"type": "fixed", "name": "F", "size": "large"}),
        json.dumps({"type": "record", "name": "n" * 300, "fields": []}),
        '{"type": ' * 100 + '"int"' + "}" * 100,
    ],
    ids=lambda one: None if isinstance(one, str) and len(one) < 60 else "x",
)
def test_invalid_avro_schemas_are_refused(text):
    with pytest.raises(DecodingError):
        AvroSchema(text).decode(b"\2")


def test_json_that_is_nested_too_deep_is_not_read():
    deep = '{"a": ' + "[" * 500 + "]" * 500 + "}"
    with pytest.raises(DecodingError, match="nested more than 300 deep"):
        AvroSchema(deep)
    with pytest.raises(DecodingError, match="nested more than 300 deep"):
        JsonSchema("{}").decode(deep.encode())


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x91" * 200_000 + b"\xc0", "it is not MessagePack"),
        (b"\xdd\xff\xff\xff\xff", "it is not MessagePack"),
        ((b"\xdd" + struct.pack(">I", 10**6)) * 1000 + bytes(10**6), "max_array_len"),
        (b"\xdf\xff\xff\xff\xff\x01\x01", "it is not MessagePack"),
        (b"\xdb\xff\xff\xff\xff", "it is not MessagePack"),
        (b"\xdd" + struct.pack(">I", 30_000) + b"\x90" * 30_000, "too many values"),
        (b"\x92" + (b"\xdd" + struct.pack(">I", 60_000) + bytes(60_000)) * 2, "too many values"),
        (b"\xc1", "it is not MessagePack"),
        (b"\x01\x02", "1 octets are left over"),
        (b"", "it is not MessagePack"),
    ],
    ids=lambda one: None if isinstance(one, str) and len(one) < 60 else "x",
)
def test_messagepack_that_lies_is_refused(content, why):
    with pytest.raises(DecodingError, match=why):
        decode_messagepack(content)


def test_messagepack_with_any_keys_times_and_extensions_becomes_json():
    pairs = [(1, "a"), ((1, 2), "b"), (None, b"\xff"), ("same", 1)]
    packed = b"\x84" + b"".join(msgpack.packb(key) + msgpack.packb(value) for key, value in pairs)
    assert plain(decode_messagepack(packed)) == {"1": "a", "[1,2]": "b", "null": "/w==", "same": 1}
    assert plain(decode_messagepack(msgpack.packb(msgpack.ExtType(5, b"x")))) == {
        "extension": 5,
        "data": "eA==",
    }
    far = msgpack.Timestamp(2**60, 5)
    times = plain(decode_messagepack(msgpack.packb([msgpack.Timestamp(0, 7), far])))
    assert times == ["1970-01-01T00:00:00.000000007Z", f"{2**60}.000000005"]


def test_values_that_json_does_not_have_are_text():
    moment = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
    given = [math.nan, math.inf, -math.inf, Decimal("1.50"), UUID(int=1), moment, b"\0", "\ud800", 2**63]
    assert plain(given) == [
        "NaN",
        "Infinity",
        "-Infinity",
        "1.50",
        "00000000-0000-0000-0000-000000000001",
        "2026-01-02T00:00:00+00:00",
        "AA==",
        "\ud800",
        2**63,
    ]
    assert json.loads(text_of(plain(given)))[7] == "\ud800"
    assert text_of("Zoë") == '"Zoë"'


def test_other_threads_have_turns_while_a_long_value_is_written():
    turns = 0

    def count(*event):
        nonlocal turns
        turns += 1

    value = {"numbers": [number / 7 for number in range(5000)]}
    sys.setprofile(count)  # between any two pieces the interpreter may go to another thread
    try:
        text = text_of(value)
    finally:
        sys.setprofile(None)
    assert json.loads(text) == value and turns > 5000


def test_values_that_become_too_large_or_too_deep_are_refused():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(DecodingError, match="deeper"):
        plain(deep)
    with pytest.raises(DecodingError, match="characters"):
        plain([b"x" * 1000] * 1000)
    with pytest.raises(DecodingError, match="characters"):
        plain([{"n" * 250: None}] * 5000)
    with pytest.raises(ValueError, match="lists and objects"):
        parse_json(b"[" + b"[]," * limits.DECODED_PARTS + b"[]]")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([("", "message A { int32 x = 1 }")], "cannot be compiled"),
        ([("", "syntax = 'proto3'; import 'other.proto'; message A {}")], "cannot be compiled"),
        ([("../../outside.proto", "x"), ("", "message A {}")], "not the name of a file"),
        ([("/etc/outside.proto", "x"), ("", "message A {}")], "not the name of a file"),
        ([("a/b.py", "x"), ("", "message A {}")], "not the name of a file"),
        ([("a.proto", ""), ("a.proto/b.proto", ""), ("", "message A {}")], "schema imports"),
        ([("", f"message {'n' * 300} {{}}")], "more than 255 characters"),
        ([("", "AAAA")], "cannot be understood"),
        ([("a.proto", "AAAA"), ("", "message A {}")], "refers to one that is not"),
    ],
    ids=lambda one: None if isinstance(one, str) and len(one) < 60 else "x",
)
def test_invalid_protobuf_schemas_are_refused(files, why):
    with pytest.raises(DecodingError, match=why):
        ProtobufSchema(files[-1][1], files[:-1])


@pytest.fixture(scope="module")
def tree():
    return ProtobufSchema("syntax = 'proto3'; message T { repeated T many = 1; map<string, T> named = 2; }")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "does not say which message"),
        (b"\xff" * 10, "does not say which message"),
        (number(1000), "does not say which message"),
        (number(1) + number(7), "has no message"),
        (number(2) + number(0) + number(5), "has no message"),
        (b"\0" + b"\x0a\x00" * 30_000, "too many values"),
        (b"\0" + b"\x12\x00" * 30_000, ""),
        (b"\0\x0a\xff\xff\xff\xff\x0f", "it is not a valid T"),
        (b"\0\xff", "it is not a valid T"),
    ],
    ids=lambda one: None if isinstance(one, str) and len(one) < 60 else "x",
)
def test_protobuf_that_lies_is_refused(tree, content, why):
    if not why:  # entries of a map that have the same name are one
        assert tree.decode(content) == ("T", {"named": {"": {}}})
        return
    with pytest.raises(DecodingError, match=why):
        tree.decode(content)


def test_protobuf_within_itself_ends_at_the_hundredth_level(tree):
    content = b""
    for _ in range(200):
        size, head = len(content), b""
        while size > 0x7F:
            head += bytes([size & 0x7F | 0x80])
            size >>= 7
        content = b"\x0a" + head + bytes([size]) + content
    with pytest.raises(DecodingError, match="it is not a valid T"):
        tree.decode(b"\0" + content)
