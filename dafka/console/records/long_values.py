"""Values of many megabytes, looked through, decoded and written in pieces.

One call into C for ten megabytes holds the interpreter for up to a second, and with it the broker's hub and
everybody else in the process. Pieces hold it for some milliseconds at the most, and other requests of the
console's thread have their turns in between.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, AnyStr

from dafka.console.turns import in_turns

PIECE = 48 * 1024  # octets, or characters; three of them become four of Base64


_SIGNS = {False: (", ", ": "), True: (",", ":")}
_ENCODERS = {
    (ascii, compact): json.JSONEncoder(ensure_ascii=ascii, separators=signs)
    for ascii in (False, True)
    for compact, signs in _SIGNS.items()
}


def pieces(content: AnyStr) -> Iterator[AnyStr]:
    """The content from its beginning to its end; other requests have their turns in between."""
    for begin in in_turns(range(0, len(content), PIECE)):
        yield content[begin : begin + PIECE]


def contains(content: AnyStr, wanted: AnyStr) -> bool:
    """``wanted in content``."""
    if len(content) <= PIECE:
        return wanted in content
    length = PIECE + len(wanted) - 1
    return any(
        content.find(wanted, begin, begin + length) >= 0 for begin in in_turns(range(0, len(content), PIECE))
    )


def texts_of(content: bytes, errors: str) -> Iterator[str]:
    """``content.decode("utf-8", errors)`` in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    yield from map(decoder.decode, pieces(content))
    yield decoder.decode(b"", final=True)


def text_of(content: bytes, errors: str) -> str:
    """``content.decode("utf-8", errors)``."""
    if len(content) <= PIECE:
        return content.decode("utf-8", errors)
    return "".join(texts_of(content, errors))


def octets_of(name: str, content: bytes | None) -> dict[str, Any]:
    """As :func:`dafka.broker.looking.rows.octets`: text, or Base64 under another name."""
    if content is None:
        return {name: None}
    try:
        return {name: text_of(content, "strict")}
    except UnicodeDecodeError:
        return {f"{name}_base64": "".join(base64.b64encode(one).decode() for one in pieces(content))}


def json_of(value: Any, *, ascii: bool = True, compact: bool = False) -> Iterator[str]:
    """``json.dumps`` of objects with names that are texts, in pieces."""
    encode = encode_basestring_ascii if ascii else encode_basestring
    comma, colon = _SIGNS[compact]
    plain = _ENCODERS[ascii, compact].encode

    def written(one: Any) -> Iterator[str]:
        if _characters(one) <= 2 * PIECE and not isinstance(one, list):
            yield plain(one)
        elif isinstance(one, str):
            yield '"'
            for piece in pieces(one):
                yield encode(piece)[1:-1]
            yield '"'
        elif isinstance(one, dict):
            for index, (name, part) in enumerate(one.items()):
                yield f"{comma if index else '{'}{encode(name)}{colon}"
                yield from written(part)
            yield "}"
        else:
            yield "["
            for index, part in enumerate(in_turns(one)):
                yield comma if index else ""
                yield from written(part)
            yield "]"

    return written(value)


def csv_cell(content: bytes) -> Iterator[str]:
    """A cell in quotes, which ``csv.reader`` reads as what the octets mean, in pieces."""
    yield '"'
    for piece in texts_of(content, "backslashreplace"):
        yield piece.replace('"', '""')
    yield '"'


def _characters(value: Any) -> int:
    """The characters of all texts in it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list) else 0
