from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from overlay.bridge import rows

from dafka.overlay.bridge.log_rows import field_names, read_row
from dafka.overlay.values import Count
from dafka.protocol.errors import MalformedMessage


@pytest.mark.parametrize("numbers", [rows.NOW, rows.THEN], ids=["now", "then"])
def test_a_row_is_read_whatever_version_of_zeek_has_numbered_its_types(numbers: dict[str, int]) -> None:
    assert read_row(rows.text(rows.conn(numbers))) == rows.CONN_VALUES


def test_addresses_and_networks_of_both_families() -> None:
    row = rows.several(
        [
            rows.field("addr", rows.address(bytes(15) + b"\1")),
            rows.field("subnet", bytes([104]) + rows.address(bytes([10, 0, 0, 0]))),
            rows.field("subnet", bytes([64]) + rows.address(b"\x20\x01" + bytes(14))),
        ]
    )
    assert read_row(rows.text(row)) == ["::1", "10.0.0.0/8", "2001::/64"]


def test_numbers_that_json_lacks_are_strings() -> None:
    row = rows.several(
        [rows.field("double", rows.number(float("inf"))), rows.field("string", rows.string("x"))]
    )
    assert read_row(rows.text(row)) == ["Infinity", "x"]


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        rows.conn()[:-1],
        rows.conn() + b"\0",
        struct.pack(">I", 2**32 - 1),
        rows.several([struct.pack(">II?", 99, 0, True)]),
        rows.several([rows.field("addr", b"\5" + bytes(16))]),
        rows.several([rows.field("port", rows.port(80, 9))]),
        rows.several([rows.field("string", struct.pack(">I", 2**31))]),
        rows.several([rows.field("table", rows.several([rows.field("table", rows.several([]))]))]),
    ],
    ids=["empty", "short", "long", "many", "type", "family", "protocol", "length", "nested"],
)
def test_a_row_that_is_damaged_is_an_error(octets: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_row(rows.text(octets))


def test_a_changed_row_is_read_or_refused() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        octets = bytearray(rows.conn())
        for _ in range(chance.randint(1, 4)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        with suppress(MalformedMessage):
            read_row(rows.text(bytes(octets)))


def test_the_names_of_fields() -> None:
    fields = tuple((name, None, Count(7), Count(0), False) for name in ("ts", "id.orig_h"))
    assert field_names(fields) == ("ts", "id.orig_h")


@pytest.mark.parametrize("fields", [None, "ts", ((),), ((1,),), ("ts",)], ids=range(5))
def test_fields_without_names_are_an_error(fields: object) -> None:
    with pytest.raises(MalformedMessage):
        field_names(fields)  # type: ignore[arg-type]
