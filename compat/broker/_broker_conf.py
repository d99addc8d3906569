"""The file ``broker.conf`` of the working directory, in the syntax of CAF's configuration files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Setting = Any
"""A truth value, a number, a text, a list or a group, which is a dict. Durations are texts, as they
stand in the file."""

FILE = "broker.conf"
MOST_OCTETS = 1024 * 1024
MOST_NESTED = 50

_TOKEN = re.compile(
    r"""(?P<skip>[\s,]+|\#[^\n]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'[^'\\\n]*')
    |(?P<sign>[={}\[\]])
    |(?P<word>[^\s,\#"'={}\[\]]+)""",
    re.VERBOSE,
)
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_DURATION = re.compile(r"\d+(ns|us|ms|s|min|h)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}


class ConfigurationError(ValueError):
    """A configuration file that cannot be read as one, or an option with a value that it cannot have."""


def read(path: str) -> dict[str, Setting] | None:
    """The options of a file by their full names (``broker.disable-ssl``); None if there is no such file.

    Raises :class:`ConfigurationError`, and OSError if the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            octets = file.read(MOST_OCTETS + 1)
    except FileNotFoundError:
        return None
    try:
        if len(octets) > MOST_OCTETS:
            raise ConfigurationError(f"more than {MOST_OCTETS} octets")
        return dict(_flat(_Reader(octets.decode()).read(), ""))
    except (ConfigurationError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Error while reading {path}: {error}") from None


def _flat(settings: dict[str, Setting], begin: str) -> Iterator[tuple[str, Setting]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{begin}{key}.")
        else:
            yield begin + key, value


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        position, line = 0, 1
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise ConfigurationError(f"line {line}: a text without an end")
            if found.lastgroup != "skip":
                self._tokens.append((found[0], line))
            line += found[0].count("\n")
            position = found.end()
        self._tokens.reverse()
        self._nested = 0

    def read(self) -> dict[str, Setting]:
        return self._group(None)

    def _take(self) -> tuple[str, int]:
        if not self._tokens:
            raise ConfigurationError("the file ends within a group or an option")
        return self._tokens.pop()

    def _group(self, end: str | None) -> dict[str, Setting]:
        settings: dict[str, Setting] = {}
        while self._tokens or end is not None:
            key, line = self._take()
            if key == end:
                return settings
            if _KEY.fullmatch(key) is None:
                raise ConfigurationError(f"line {line}: {key!r:.100} is not the name of an option")
            sign, line = self._take()
            if sign not in ("=", "{"):
                raise ConfigurationError(f"line {line}: {sign!r:.100} where = or {{ has to stand")
            value = self._nest("{") if sign == "{" else self._value()
            known = settings.get(key)
            if isinstance(known, dict) and isinstance(value, dict):
                known.update(value)
            else:
                settings[key] = value
        return settings

    def _nest(self, sign: str) -> Setting:
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise ConfigurationError(f"more than {MOST_NESTED} groups within each other")
        value: Setting = self._group("}") if sign == "{" else self._list()
        self._nested -= 1
        return value

    def _list(self) -> list[Setting]:
        values: list[Setting] = []
        while self._tokens and self._tokens[-1][0] != "]":
            values.append(self._value())
        self._take()
        return values

    def _value(self) -> Setting:
        token, line = self._take()
        if token in "{[":
            return self._nest(token)
        if token in ("true", "false"):
            return token == "true"
        if token[0] == '"':
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1])
        if token[0] == "'":
            return token[1:-1]
        for kind in (lambda text: int(text, 0), float):
            try:
                return kind(token)
            except ValueError:
                continue
        if _DURATION.fullmatch(token):
            return token
        raise ConfigurationError(f"line {line}: {token!r:.100} is not a value; texts stand in quotes")
