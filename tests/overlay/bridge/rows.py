"""Rows of Zeek's logs as Zeek serializes them, for tests."""

from __future__ import annotations

import struct

NOW = {"bool": 1, "int": 2, "count": 3, "double": 4, "time": 5, "interval": 6, "string": 7, "enum": 9}
NOW |= {"port": 10, "addr": 11, "subnet": 12, "table": 14, "vector": 19}
THEN = {"bool": 1, "int": 2, "count": 3, "double": 5, "time": 6, "interval": 7, "string": 8, "enum": 10}
THEN |= {"port": 12, "addr": 13, "subnet": 14, "table": 16, "vector": 22}


def string(text: str) -> bytes:
    octets = text.encode()
    return struct.pack(">I", len(octets)) + octets


def number(value: float) -> bytes:
    return struct.pack(">d", value)


def unsigned(value: int) -> bytes:
    return struct.pack(">Q", value)


def port(value: int, protocol: int = 1) -> bytes:
    return struct.pack(">QI", value, protocol)


def address(octets: bytes) -> bytes:
    return bytes([4 if len(octets) == 4 else 6]) + octets


def field(kind: str, octets: bytes | None, numbers: dict[str, int] = NOW) -> bytes:
    head = struct.pack(">II?", numbers[kind], 0, octets is not None)
    return head + (octets or b"")


def several(fields: list[bytes]) -> bytes:
    return struct.pack(">I", len(fields)) + b"".join(fields)


def text(octets: bytes) -> str:
    """As the string of a log write."""
    return octets.decode("utf-8", "surrogateescape")


CONN_FIELDS = (
    "ts",
    "uid",
    "id.orig_h",
    "id.resp_p",
    "proto",
    "duration",
    "orig_bytes",
    "local",
    "tunnels",
    "history",
)


def conn(numbers: dict[str, int] = NOW) -> bytes:
    """A row of a connection, one field of each type that occurs."""
    return several(
        [
            field("time", number(1591367999.5), numbers),
            field("string", string("C5bLoe2Mvxqhawzqqd"), numbers),
            field("addr", address(bytes([192, 168, 4, 76])), numbers),
            field("port", port(443), numbers),
            field("enum", string("tcp"), numbers),
            field("interval", number(0.25), numbers),
            field("count", unsigned(79), numbers),
            field("bool", struct.pack(">q", 1), numbers),
            field("table", several([field("string", string("a"), numbers)]), numbers),
            field("string", None, numbers),
        ]
    )


CONN_VALUES = [1591367999.5, "C5bLoe2Mvxqhawzqqd", "192.168.4.76", 443, "tcp", 0.25, 79, True, ["a"], None]
