"""Search expressions: a small language over records.

    error                                   the word is in the key or the value
    key == "user-7" and value.amount > 100  fields of a value that is JSON
    header.type contains "pay" or offset < 1000
    not (value.items.0.sku starts "A")

What a decoder understands, MessagePack or a schema's data, is compared as what it means; a key or a value
that is an object is its JSON then, and a word is looked for in that too.

    timestamp >= "2026-01-31T12:00" and timestamp < "2h"

Operands are ``key``, ``value``, ``header.NAME``, ``partition``, ``offset``, ``timestamp`` (ms, or a time in
quotes: UTC unless it names its zone, or so long ago), ``size``,
texts in double quotes, numbers, ``true``, ``false`` and ``null``; operators ``==``, ``!=``, ``<``, ``<=``,
``>``, ``>=``, ``contains``, ``starts``, ``ends``, ``and``, ``or``, ``not``. Nothing in it takes longer than
the record is long. A comparison of things that cannot be compared is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import timezone
from typing import Any

from dafka.broker.looking.places import parse_place
from dafka.console import limits
from dafka.console.decoding.decoder import Decoder
from dafka.console.decoding.plain import parse_json
from dafka.console.records import long_values
from dafka.console.records.shown import Record
from dafka.protocol.errors import DafkaError
from dafka.protocol.json_text import read_json

Matches = Callable[[Record], bool]
Operand = Callable[[Record], Any]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
      | (?P<operator>==|!=|<=|>=|<|>|\(|\))
      | (?P<word>[^\s"()<>=!]+)
    )""",
    re.VERBOSE | re.ASCII,
)
_DEEPEST = 50
_MISSING = object()
_LONGEST_NUMBER = 1000  # characters of a text that is one
_LARGEST_JSON = 1024 * 1024  # octets of a value that is read as JSON


class ExpressionError(DafkaError, ValueError):
    """An expression that cannot be understood."""


def parse(text: str, decoder: Decoder) -> Matches:
    """The test that an expression means; nothing but spaces matches every record. Raises ExpressionError."""
    if len(text) > limits.EXPRESSION:
        raise ExpressionError(f"an expression has at most {limits.EXPRESSION} characters")
    tokens = _tokens(text)
    if not tokens:
        return lambda record: True
    parser = _Parser(tokens, decoder)
    found = parser.either(0)
    if parser.left:
        raise ExpressionError(f"{parser.left[0][1]!r} is one thing too many")
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"{text[position:].strip()[:20]!r} cannot be understood")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        position = match.end()
    return found


class _Parser:
    """Takes tokens from the left."""

    def __init__(self, tokens: list[tuple[str, str]], decoder: Decoder) -> None:
        self.left = tokens
        self._decoder = decoder
        self._contents = {name: _Content(name, decoder) for name in ("key", "value")}

    def either(self, depth: int) -> Matches:
        if depth > _DEEPEST:
            raise ExpressionError(f"at most {_DEEPEST} parentheses stand within each other")
        tests = [self._both(depth)]
        while self._next("word", "or"):
            tests.append(self._both(depth))
        return tests[0] if len(tests) == 1 else lambda record: any(test(record) for test in tests)

    def _both(self, depth: int) -> Matches:
        tests = [self._one(depth)]
        while self._next("word", "and"):
            tests.append(self._one(depth))
        return tests[0] if len(tests) == 1 else lambda record: all(test(record) for test in tests)

    def _one(self, depth: int) -> Matches:
        if self._next("word", "not"):
            test = self._one(depth + 1) if depth < _DEEPEST else self.either(depth + 1)
            return lambda record: not test(record)
        if self._next("operator", "("):
            test = self.either(depth + 1)
            if not self._next("operator", ")"):
                raise ExpressionError("a parenthesis is not closed")
            return test
        return self._comparison()

    def _comparison(self) -> Matches:
        kind, left = first_token = self._take()
        compare = _COMPARISONS.get(self.left[0][1]) if self.left and self.left[0][0] != "text" else None
        if compare is None:
            return _anywhere(_constant(left) if kind == "text" else left, self._decoder)
        (_, sign), self.left = self.left[0], self.left[1:]
        tokens = [first_token, self._take()]
        if sign in _ORDERS and _TIMESTAMP in tokens:
            tokens = [_moment(*one) for one in tokens]
        first, second = (_operand(*one, self._contents) for one in tokens)
        return lambda record: compare(first(record), second(record))

    def _take(self) -> tuple[str, str]:
        if not self.left:
            raise ExpressionError("something is missing at the end")
        token, self.left = self.left[0], self.left[1:]
        if token[0] == "operator":
            raise ExpressionError(f"{token[1]!r} stands where a word, a text or a number is needed")
        return token

    def _next(self, kind: str, text: str) -> bool:
        if self.left and self.left[0] == (kind, text):
            self.left = self.left[1:]
            return True
        return False


def _constant(text: str) -> str:
    """The content of a text in quotes."""
    try:
        return str(read_json(text, strict=False))
    except ValueError as error:
        raise ExpressionError(f"{text[:50]} is not a text: {error}") from None


def _moment(kind: str, text: str) -> tuple[str, str]:
    """A time in quotes as the number of its milliseconds; anything else as it is."""
    if kind != "text":
        return kind, text
    try:
        place = parse_place(_constant(text), timezone.utc)
    except ValueError:
        raise ExpressionError(
            f"{text[:50]} is not a time, such as 2026-01-31T12:00 or 2h: so long ago"
        ) from None
    return ("number", str(place.number)) if place.kind == "time" else (kind, text)


def _operand(kind: str, text: str, contents: Mapping[str, _Content]) -> Operand:
    if kind == "text":
        constant = _constant(text)
        return lambda record: constant
    if kind == "number":
        number = float(text) if "." in text else int(text)
        return lambda record: number
    if text in _CONSTANTS:
        value = _CONSTANTS[text]
        return lambda record: value
    if text in contents:
        return contents[text].whole
    if text in _FIELDS:
        return _FIELDS[text]
    name, dot, path = text.partition(".")
    if dot and name == "header":
        return lambda record: _header(record, path)
    if dot and name in ("key", "value"):
        steps = path.split(".")
        parts_of = contents[name].parts
        return lambda record: _inside(parts_of(record), steps)
    raise ExpressionError(
        f"{text[:50]!r} is not an operand: there are key, value, value.FIELD, header.NAME, "
        f"{', '.join(sorted(_FIELDS))}, and texts in double quotes"
    )


def _text(content: bytes | None) -> str | None:
    return None if content is None else long_values.text_of(content, "replace")


def _header(record: Record, name: str) -> Any:
    return next((_text(value) for one, value in record.headers if one == name), _MISSING)


class _Content:
    """Reads keys or values; all comparisons of one expression share what was read of a record."""

    def __init__(self, name: str, decoder: Decoder) -> None:
        self._name = name
        self._octets: Callable[[Record], bytes | None] = operator.attrgetter(name)
        self._decoder = decoder
        self._content: bytes | None = None
        self._json: Any = _MISSING
        self._text: tuple[bytes | None, str | None] = (None, None)

    def whole(self, record: Record) -> Any:
        """The whole value: as text, or decoded."""
        content = self._octets(record)
        decoded = self._decoder.found(self._name, content)
        if decoded is not None:
            return decoded.words
        if content is not self._text[0]:
            self._text = content, _text(content)
        return self._text[1]

    def parts(self, record: Record) -> Any:
        """The decoded value, or JSON; missing if it is neither."""
        content = self._octets(record)
        decoded = self._decoder.found(self._name, content)
        if decoded is not None:
            return decoded.value
        if content is None or len(content) > _LARGEST_JSON:
            return _MISSING
        if content is not self._content:
            self._content = content
            try:
                self._json = parse_json(content)
            except ValueError:
                self._json = _MISSING
        return self._json


def _inside(value: Any, steps: list[str]) -> Any:
    """A field within JSON; missing if there is no such field."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            return _MISSING
    return value


def _anywhere(word: str, decoder: Decoder) -> Matches:
    wanted = word.encode("utf-8", "surrogatepass")

    def test(record: Record) -> bool:
        for name, content in (("value", record.value), ("key", record.key)):
            if content is not None:
                decoded = decoder.found(name, content)
                if long_values.contains(content, wanted):
                    return True
                if decoded is not None and long_values.contains(str(decoded.words), word):
                    return True
        return False

    return test


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def test(left: Any, right: Any) -> bool:
        if isinstance(left, str) != isinstance(right, str):
            left, right = _number(left), _number(right)
        try:
            return bool(compare(left, right))
        except TypeError:
            return False

    return test


def _number(value: Any) -> Any:
    """Text that is a number, as one: keys and values without JSON are texts."""
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER:
            return None
        try:
            return float(value)
        except ValueError:
            return None
    return value


def _equal(left: Any, right: Any) -> bool:
    if left is _MISSING or right is _MISSING:
        return False
    if isinstance(left, str) != isinstance(right, str) and None not in (left, right):
        left, right = _number(left), _number(right)
    return bool(left == right)


def _texts(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: isinstance(left, str) and test(left, str(right))


_CONSTANTS = {"true": True, "false": False, "null": None}
_FIELDS: dict[str, Operand] = {
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp,
    "size": lambda record: len(record.key or b"") + len(record.value or b""),
}
_TIMESTAMP = ("word", "timestamp")
_ORDERS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "contains": _texts(long_values.contains),
    "starts": _texts(str.startswith),
    "ends": _texts(str.endswith),
}
