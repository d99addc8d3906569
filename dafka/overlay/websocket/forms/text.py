"""JSON text to Python's objects, and what is wrong with text that is not JSON, as libbroker says it.

The standard library's reader does not let go of the interpreter, and a hostile megabyte would take it a tenth
of a second. So large texts are read by one that is written in Python, meant for a thread beside the hub.
"""

from __future__ import annotations

import json
import json.decoder
import re
from collections.abc import Callable
from typing import Any, NoReturn

from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.websocket.errors import InvalidForm, MalformedJson
from dafka.protocol.errors import TooDeepError
from dafka.protocol.json_text import read_json

_DEEPEST = 3 * MOST_NESTED + 3  # an entry of a table takes three levels
_TOO_DEEP = "JSON that is nested too deep"

_scanstring: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

_BLANKS = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}

# Forms of libbroker that are not JSON: bare inf and nan, raw control characters, \v.
_BARE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:inf|nan)\b', re.DOTALL)


def parsed(text: str) -> Any:
    """The value of a text, in one step. Raises MalformedJson, InvalidForm."""
    try:
        return read_json(text, deepest=_DEEPEST, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _malformed(text, error) from error
    except TooDeepError as error:
        raise InvalidForm(_TOO_DEEP) from error
    except _Constant as error:
        where = _place_of(text, str(error))
        raise MalformedJson("caf::pec::unexpected_character", *where) from error
    except ValueError as error:  # a number of thousands of digits
        raise InvalidForm(str(error)) from error


def parsed_slowly(text: str) -> Any:
    """The same, letting others run meanwhile."""
    try:
        value, position = _read(text, _skip(text, 0), 0)
        position = _skip(text, position)
        if position != len(text):
            raise json.JSONDecodeError("Extra data", text, position)
    except json.JSONDecodeError as error:
        raise _malformed(text, error) from error
    except InvalidForm:
        raise
    except ValueError as error:
        raise InvalidForm(str(error)) from error
    return value


def parsed_leniently(text: str) -> Any:
    """The same of what a server of libbroker has written, which is not always JSON."""
    try:
        return read_json(text, deepest=_DEEPEST, strict=False)
    except json.JSONDecodeError as error:
        try:
            return read_json(_BARE.sub(_mended, text), deepest=_DEEPEST, strict=False)
        except ValueError:
            raise _malformed(text, error) from error
    except TooDeepError as error:
        raise InvalidForm(_TOO_DEEP) from error
    except ValueError as error:
        raise InvalidForm(str(error)) from error


class _Constant(Exception):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _place_of(text: str, constant: str) -> tuple[int, int]:
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|-?\b(?:Infinity|NaN)\b', text, re.DOTALL):
        if match[0] == constant:
            return _line_and_column(text, match.start())
    return 1, 1


def _mended(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"':
        return re.sub(r"\\(.)", lambda pair: "\\u000b" if pair[1] == "v" else pair[0], token, flags=re.DOTALL)
    return f'"{token}"'


def _malformed(text: str, error: json.JSONDecodeError) -> MalformedJson:
    position = error.pos
    if error.msg == "Extra data":
        name = "trailing_character"
    elif _skip(text, position) >= len(text) or error.msg.startswith("Unterminated"):
        name, position = "unexpected_eof", len(text)
    else:
        name = "unexpected_character"
    return MalformedJson(f"caf::pec::{name}", *_line_and_column(text, position))


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def _skip(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return position if match is None else match.end()


def _read(text: str, position: int, depth: int) -> tuple[Any, int]:
    first = text[position : position + 1]
    if first == '"':
        return _scanstring(text, position + 1, True)
    if first == "{" or first == "[":
        if depth >= _DEEPEST:
            raise InvalidForm(_TOO_DEEP)
        read: Callable[..., tuple[Any, int]] = _read_object if first == "{" else _read_array
        return read(text, _skip(text, position + 1), depth + 1)
    if first in _WORDS and first:
        word, value = _WORDS[first]
        if text.startswith(word, position):
            return value, position + len(word)
    match = _NUMBER.match(text, position)
    if match is None:
        raise json.JSONDecodeError("Expecting value", text, position)
    whole, fraction, exponent = match.groups()
    if fraction is None and exponent is None:
        return int(whole), match.end()
    return float(match[0]), match.end()


def _read_array(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    array: list[Any] = []
    if text.startswith("]", position):
        return array, position + 1
    while True:
        element, position = _read(text, position, depth)
        array.append(element)
        position = _skip(text, position)
        if text.startswith("]", position):
            return array, position + 1
        position = _skip(text, _behind(text, position, ","))


def _read_object(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    object: dict[str, Any] = {}
    if text.startswith("}", position):
        return object, position + 1
    while True:
        if not text.startswith('"', position):
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
        name, position = _scanstring(text, position + 1, True)
        position = _skip(text, _behind(text, _skip(text, position), ":"))
        object[name], position = _read(text, position, depth)
        position = _skip(text, position)
        if text.startswith("}", position):
            return object, position + 1
        position = _skip(text, _behind(text, position, ","))


def _behind(text: str, position: int, delimiter: str) -> int:
    if not text.startswith(delimiter, position):
        raise json.JSONDecodeError(f"Expecting {delimiter!r} delimiter", text, position)
    return position + 1
