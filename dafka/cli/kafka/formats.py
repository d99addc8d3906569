"""How a consumed record is printed: the format strings of kcat, and JSON lines that ``produce`` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from dafka.broker.looking.rows import octets

Format = Callable[[Any], bytes]

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
_TOKEN = re.compile(
    r"%(.)|\\x([0-9a-fA-F]{1,2})|\\(0[0-7]{0,2}|[1-9][0-9]{0,2})|\\(.)|([^%\\]+)|(.)", re.DOTALL
)


def _length(octets: bytes | None) -> int:
    return -1 if octets is None else len(octets)


def _headers(record: Any) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"" if value is None else value) for name, value in record.headers
    )


_FIELDS: dict[str, Format] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: b"%d" % _length(record.value),
    "R": lambda record: _length(record.value).to_bytes(4, "big", signed=True),
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % _length(record.key),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "h": _headers,
    "%": lambda record: b"%",
}


def parse_format(text: str) -> Format:
    r"""A format of kcat's: %s value, %k key, %S and %K their lengths (-1: null), %R the value's in four
    octets, %t topic, %p partition, %o offset, %T timestamp in milliseconds, %h headers; \n \r \t \\, and any
    octet as \xFF, \255 or, after a zero, in octal \077. Raises ValueError.
    """
    parts: list[bytes | Format] = []
    for field, code, number, escape, plain, lone in _TOKEN.findall(text):
        if plain:
            parts.append(plain.encode("utf-8", "surrogateescape"))  # as the command line had it
        elif code:
            parts.append(bytes([int(code, 16)]))
        elif number:
            parts.append(bytes([int(number, 8 if number[0] == "0" else 10) & 0xFF]))
        elif field in _FIELDS and field:
            parts.append(_FIELDS[field])
        elif escape in _ESCAPES and escape:
            parts.append(_ESCAPES[escape])
        else:
            raise ValueError(_unknown(field, escape or lone))
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def _unknown(field: str, escape: str) -> str:
    if escape in ("%", "\\"):
        return f"there is nothing behind the {escape} at its end; {escape}{escape} is one {escape}"
    if field:
        return f"%{field} is not a field, there are %{' %'.join(_FIELDS)}"
    known = " ".join(f"\\{one}" for one in _ESCAPES)
    return f"\\{escape} is not an escape, there are {known} \\0 and \\x41"


def json_line(record: Any) -> bytes:
    """A record as one JSON object, with a line break."""
    row = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **octets("key", record.key),
        **octets("value", record.value),
        "headers": [{"name": name, **octets("value", value)} for name, value in record.headers],
    }
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
