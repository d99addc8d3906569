"""The configuration file of a ZPER server: Java properties, with ZPER's keys.

    # a comment
    writer.bind = tcp://*:5555
    base_dir = "/data/zper"         # quotes and a comment behind a value, as ZPER's README has them

A line ends with ``\\`` to go on in the next one; ``:`` or a blank may stand for ``=``. Unlike Java, a value
may be in quotes, and a ``#`` behind a blank begins a comment; within quotes it does not.

:data:`KEYS` lists the keys. A key that is not among them is a warning with the nearest known one, a value
that a key does not take is a :class:`PropertiesError` with the line's number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from dafka.protocol.errors import DafkaError

Value: TypeAlias = "bool | int | str | tuple[str, ...] | None"

_NUMBER_LIMIT = 2**63
_ADDRESS = re.compile(r"tcp://(?P<host>\*|\[[0-9A-Fa-f:.%]+\]|[^\s:/*\[\]]+):(?P<port>\*|[0-9]{1,5})")


class PropertiesError(DafkaError, ValueError):
    """A line of the file cannot be taken."""


class Key(NamedTuple):
    """A key of the file."""

    default: Value
    read: Callable[[str], Value]
    """The value of a text. Raises ValueError, whose message says what is wanted."""
    meaning: str
    effect: bool = True
    """False: the key is taken, and changes nothing here."""


class Properties(NamedTuple):
    """The settings of a file."""

    values: dict[str, Value]
    """Of every key, by its name with ``_`` for ``.``; ``writer_replica`` and ``controller_quorum`` are tuples
    of addresses. None for an address that is empty: the role is not served."""
    warnings: tuple[str, ...]
    """Keys that are unknown or given twice, each with its line."""
    without_effect: tuple[str, ...]
    """Keys in the file that change nothing here; :data:`KEYS` says why."""


def read_properties(text: str) -> Properties:
    """Read a whole file. Raises :class:`PropertiesError` for a value that its key does not take."""
    values = {_option(name): key.default for name, key in KEYS.items()}
    numbered: dict[str, dict[int, str]] = {family: {} for family in FAMILIES}
    lines: dict[str, int] = {}
    warnings: list[str] = []
    without_effect: list[str] = []
    for line, written, text_of_value in _pairs(text):
        name = ALIASES.get(written, written)
        family, _, number = name.rpartition(".")
        is_numbered = family in FAMILIES and number.isascii() and number.isdecimal()
        if name not in KEYS and not is_numbered:
            near = get_close_matches(written, _names(), 1, 0.0)[0]
            warnings.append(f"line {line}: {written!r} is unknown (the nearest known key is {near!r})")
            continue
        if name in lines:
            warnings.append(f"line {line}: {written} is given in line {lines[name]} too; the last one counts")
        lines[name] = line
        try:
            if is_numbered:
                numbered[family][int(number)] = read_target(text_of_value)
            else:
                values[_option(name)] = KEYS[name].read(text_of_value)
        except ValueError as error:
            raise PropertiesError(f"line {line}: {written} = {text_of_value!r}: {error}") from None
        if not is_numbered and not KEYS[name].effect and name not in without_effect:
            without_effect.append(name)
    for family, addresses in numbered.items():
        values[_option(family)] = tuple(addresses[number] for number in sorted(addresses))
    return Properties(values, tuple(warnings), tuple(without_effect))


def defaults() -> dict[str, Value]:
    """The values of an empty file."""
    return read_properties("").values


# -- values --------------------------------------------------------------------------------------------------


def _number(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII) and least <= int(text) < _NUMBER_LIMIT:
            return int(text)
        raise ValueError(f"a whole number of {least} or more is wanted")

    return read


def _hours(text: str) -> int:
    if text.strip() == "-1":
        return -1
    try:
        return _number(1)(text)
    except ValueError:
        raise ValueError("a whole number of hours is wanted, 1 or more, or -1: for ever") from None


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false is wanted")
    return text.lower() == "true"


def _folder(text: str) -> str:
    if not text:
        raise ValueError("a folder has a name; the current one is '.'")
    return text


def _bind(text: str) -> str | None:
    if not text:
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None or (match["port"] != "*" and int(match["port"]) > 0xFFFF):
        raise ValueError("an address to bind is wanted, as tcp://*:5555 or tcp://127.0.0.1:5555")
    return text


def read_target(text: str) -> str:
    """An address to connect to. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or "*" in (match["host"], match["port"]) or not 0 < int(match["port"]) <= 0xFFFF:
        raise ValueError("an address to connect to is wanted: tcp://host:port")
    return text


_FRAMES_IN_BULK = "The Java server's switch for keeping frames as they come. They always are here"
_ONE_THREAD = "All sockets of the process are served by one thread"

KEYS: dict[str, Key] = {
    "base_dir": Key("zperdb", _folder, "Folder of the data, made if it is missing"),
    "segment_size": Key(536_870_912, _number(1), "Octets from one position that OFFSET lists to the next"),
    "flush_messages": Key(10_000, _number(1), "Flush a topic when so many messages wait"),
    "flush_interval": Key(1000, _number(0), "Flush a topic when a message has waited so many milliseconds"),
    "retain_hours": Key(168, _hours, "Hours to keep messages; -1: for ever"),
    "max_message": Key(8_388_608, _number(1), "Octets of the largest message"),
    "allow_empty_message": Key(True, _truth, "Whether a message may be one empty frame"),
    "send_buffer": Key(1_048_576, _number(1), "Octets of the kernel's send buffer of a connection"),
    "receive_buffer": Key(1_048_576, _number(1), "Octets of the kernel's receive buffer of a connection"),
    "receive_hwm": Key(1024, _number(0), "What waits is bounded in octets, not in messages", effect=False),
    "decoder": Key(True, _truth, _FRAMES_IN_BULK, effect=False),
    "io_threads": Key(2, _number(1), _ONE_THREAD, effect=False),
    "writer.bind": Key("tcp://127.0.0.1:5555", _bind, "Address of the ZPWriter; empty: none"),
    "writer.workers": Key(5, _number(1), _ONE_THREAD, effect=False),
    "writer.io_threads": Key(5, _number(1), _ONE_THREAD, effect=False),
    "writer.replica.sync": Key(0, _number(0), "Replicas that a response in mode 2 waits for"),
    "reader.bind": Key("tcp://127.0.0.1:5556", _bind, "Address of the ZPReader; empty: none"),
    "reader.workers": Key(5, _number(1), _ONE_THREAD, effect=False),
    "ack.bind": Key("tcp://127.0.0.1:5557", _bind, "Address of the ZPAck; empty: none"),
    "relay.bind": Key("tcp://127.0.0.1:5558", _bind, "Address of the ZPRelay; empty: none"),
    "relay.poll": Key(1000, _number(1), "Milliseconds until the relay looks for new messages, at most"),
    "controller.bind": Key("tcp://127.0.0.1:5559", _bind, "Address of the ZPController; empty: none"),
}
FAMILIES: dict[str, str] = {
    "writer.replica": "Address of a ZPWriter that gets what is written here, too",
    "controller.quorum": "Address of another node's ZPController",
}
"""Keys with a number behind them: ``writer.replica.1``, ``writer.replica.2``."""
ALIASES = {"retention_hours": "retain_hours"}  # as in the Java server's own server.properties


# -- lines ---------------------------------------------------------------------------------------------------

_SEPARATED = re.compile(r"(?P<key>(?:\\.|[^\s:=\\])+)[ \t\f]*[:=]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<sign>.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<inside>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)[ \t\f]*(#.*)?""")


def _pairs(text: str) -> Iterator[tuple[int, str, str]]:
    """Each key with its value and the number of its line."""
    for number, line in _logical_lines(text):
        match = _SEPARATED.fullmatch(line)
        if match is None:
            raise PropertiesError(f"line {number} is not 'key = value': {line!r}")
        yield number, _unescaped(match["key"]), _value(match["value"])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither empty nor comments, with what follows a ``\\`` at their end."""
    lines = iter(enumerate(re.split(r"\r\n|\n|\r", text), 1))
    for number, line in lines:
        joined = line.lstrip(" \t\f")
        if not joined or joined[0] in "#!":
            continue
        while _goes_on(joined):
            joined = joined[:-1] + next(lines, (0, ""))[1].lstrip(" \t\f")
        yield number, joined


def _goes_on(line: str) -> bool:
    """Whether it ends with a ``\\`` that is not itself behind one."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _value(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return _unescaped(quoted["inside"])
    return _unescaped(re.split(r"[ \t\f]+#|^#", text, maxsplit=1)[0].rstrip(" \t\f"))


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match["code"]:
            return chr(int(match["code"], 16))
        return _CONTROLS.get(match["sign"], match["sign"])

    return _ESCAPED.sub(one, text)


def _option(name: str) -> str:
    return name.replace(".", "_")


def _names() -> list[str]:
    return [*KEYS, *ALIASES, *(f"{family}.1" for family in FAMILIES)]
