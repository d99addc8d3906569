"""Configuration files in TOML: a table for each command, and a key for each of its options.

``[broker]`` is of ``dafka broker``, ``[perf.store]`` of ``dafka perf store``. A key is the name of an option
with ``_`` or ``-`` between its words. Values have TOML's types; an option that takes several values with
commas between them takes a list as well. A setting that is wrong is named with its line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_TABLE = re.compile(r"\s*\[\s*([^\[\]#]+?)\s*\]\s*(#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*(=|\.)""")
_SEPARATORS = {"super_users": ";"}  # of options that have something else than a comma between their values
TOML_SOURCE = "dafka.toml_source"
"""Where the :class:`Source` of a command is in what its contexts share."""

_TOGETHER = {"tls is given": "ssl_", "sasl is given": "sasl_"}
"""Keywords of classes that are made of several settings, and how the names of these begin."""

SECRETS = frozenset({"ssl_password", "schema_registry"})  # its address may have a password in it
"""Options whose values are never shown."""


class TomlFileError(ValueError):
    """All mistakes in a file, a line for each."""


def read_toml(
    where: str, text: str, command: click.Command, path: tuple[str, ...], commands: Iterable[str]
) -> dict[str, Any]:
    """Values for the parameters of the command at ``path`` (perf, store), by their names.

    ``where`` is the name of the file, for errors; ``commands`` are the names of all commands, to which other
    tables may belong. Raises TomlFileError.
    """
    try:
        return _Reading(where, text, command, path).values(tomllib.loads(text), list(commands))
    except tomllib.TOMLDecodeError as error:
        twice = _twice(text)  # for which there is no line in the error
        told = f", line {twice[0]}: {twice[1]} is there twice" if twice else f": {error}"
        raise TomlFileError(f"{where}{told}") from None
    except RecursionError:
        raise TomlFileError(f"{where}: lists or tables are nested too deeply in it") from None


class Source(NamedTuple):
    """Where the settings of a command are from that were read from a file."""

    where: str
    lines: Mapping[str, int]
    path: tuple[str, ...]
    ctx: click.Context


def source(where: str, text: str, path: tuple[str, ...], ctx: click.Context) -> Source:
    """The file with this text, which :func:`read_toml` has read."""
    places = _lines(text).items()
    lines = {place[-1].replace("-", "_"): line for place, line in places if place[:-1] == path}
    return Source(where, lines, path, ctx)


def with_lines(message: str, source: Source) -> str:
    """The message of an error about several settings, with the lines of those that it names and the file has.

    A setting is named as an option (``--sub``) or as the keyword of a class (``listen=``).
    """
    named = []
    for name, line in source.lines.items():
        option = re.escape(name.replace("_", "-"))
        word = rf"(?<![\w-])(--{option}(?![\w-])|{re.escape(name)}=)"
        together = any(name.startswith(start) and word in message for word, start in _TOGETHER.items())
        if source.ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP and (
            together or re.search(word, message)
        ):
            named.append((line, f"line {line}: {'.'.join((*source.path, name))}"))
    return f"{message} ({source.where}, {'; '.join(text for _, text in sorted(named))})" if named else message


class _Reading:
    def __init__(self, where: str, text: str, command: click.Command, path: tuple[str, ...]) -> None:
        self._where = where
        self._lines = _lines(text)
        self._path = path
        self._mistakes: list[tuple[int, str]] = []
        self._options = {
            str(one.name): one
            for one in command.params
            if one.name not in ("config", "help", "check") and one.expose_value
        }
        self._command = command

    def values(self, document: Mapping[str, Any], commands: list[str]) -> dict[str, Any]:
        for name, value in document.items():
            if not isinstance(value, dict):
                self._wrong((name,), f"{name!r} stands in no table: write it below [{'.'.join(self._path)}]")
            elif name not in commands:
                self._wrong((name,), f"[{name}] belongs to no command{_nearest(name, commands)}")
        found: dict[str, Any] = {}
        table: Any = document
        for name in self._path:
            table = table.get(name, {}) if isinstance(table, dict) else {}
        for key, value in (table if isinstance(table, dict) else {}).items():
            name = key.replace("-", "_")
            option = self._options.get(name)
            if option is None:
                names = [*self._options]
                self._wrong((*self._path, key), f"{self._named(key)} is not a setting{_nearest(name, names)}")
            elif name in found:
                self._wrong((*self._path, key), f"{self._named(key)} is there twice")
            else:
                found[name] = self._value(key, option, value)
        if self._mistakes:
            raise TomlFileError("\n".join(text for _, text in sorted(self._mistakes)))
        return found

    def _value(self, key: str, option: click.Parameter, value: Any) -> Any:
        """The value in the form that click takes, after it was checked."""
        if isinstance(option, click.Option) and option.is_flag:
            if type(value) is not bool:
                self._wrong((*self._path, key), f"{self._named(key)} is true or false, not {_shown(value)}")
            return value
        several = isinstance(value, list)
        parts = value if several else [value]
        if any(
            isinstance(part, bool | dict | list) or not isinstance(part, str | int | float) for part in parts
        ):
            shown = "that kind of value" if option.name in SECRETS else _shown(value)
            self._wrong((*self._path, key), f"{self._named(key)} cannot be {shown}")
            return value
        numeric = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
        if several and numeric and not option.multiple:
            self._wrong((*self._path, key), f"{self._named(key)} is one number, not a list")
            return value
        if numeric and any(isinstance(part, str) for part in parts):
            self._wrong((*self._path, key), f"{self._named(key)} is a number, not {_shown(value)}")
            return value
        given: Any = list(map(str, parts))
        if not option.multiple:
            given = _SEPARATORS.get(str(option.name), ",").join(given)
        try:
            context = click.Context(self._command, info_name=self._path[-1])
            option.process_value(context, given)
        except click.UsageError as error:
            self._wrong((*self._path, key), f"{self._named(key)}: {error.message}")
        except ValueError as error:  # no path has a null character
            self._wrong((*self._path, key), f"{self._named(key)}: {error}")
        return given

    def _named(self, key: str) -> str:
        return ".".join((*self._path, key))

    def _wrong(self, place: tuple[str, ...], what: str) -> None:
        line = self._lines.get(place, 0)
        self._mistakes.append(
            (line, f"{self._where}, line {line}: {what}" if line else f"{self._where}: {what}")
        )


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The lines of tables and keys."""
    found: dict[tuple[str, ...], int] = {}
    for number, place, is_table in _places(text):
        for depth in range(1, len(place) + 1) if is_table else (len(place),):
            found.setdefault(place[:depth], number)
    return found


def _twice(text: str) -> tuple[int, str] | None:
    """The line and the name of a table or key that was there before."""
    seen = set()
    for number, place, _ in _places(text):
        if place in seen:
            return number, ".".join(place)
        seen.add(place)
    return None


def _places(text: str) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    """(line, name, whether it is a table). Good enough for errors: a line that looks like a key in a text of
    several lines is taken for one."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if heading := _TABLE.match(line):
            table = tuple(part.strip().strip("\"'") for part in heading[1].split("."))
            yield number, table, True
        elif key := _KEY.match(line):
            yield number, (*table, key[1].strip("\"'")), False


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1, 0.0)
    return f" (the nearest known one is {near[0]!r})" if near else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
