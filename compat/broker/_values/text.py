"""Values as libbroker prints them."""

from __future__ import annotations

from typing import Any

from dafka.overlay.values import Enum, Set, Table, Timespan, Timestamp, Value
from dafka.overlay.values.containers import octets_of


def text_of(value: Value) -> str:
    """One line. Octets that are not UTF-8 are written as ``\\x`` and two digits."""
    return _text(value)


def _text(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return "T" if value else "F"
        case Timespan() | Timestamp():
            return f"{int(value)}ns"
        case float():
            return f"{value:f}"
        case str() | Enum():
            return octets_of(str.__str__(value)).decode("utf-8", "backslashreplace")
        case Set():
            return f"{{{', '.join(map(_text, value))}}}"
        case Table():
            return f"{{{', '.join(f'{_text(key)} -> {_text(one)}' for key, one in value.entries)}}}"
        case _ if type(value) is tuple:
            return f"({', '.join(map(_text, value))})"
        case _:
            return str(value)
