"""JSON that others have written, of which the depth is looked at before it is read.

The standard library's reader calls itself for each level, down to the interpreter's limit. What is called
there finds no room left: where a collection of garbage falls in, finalizers of other objects fail, and those
are lost. So whatever JSON comes from outside (from clients, servers, files, folders) is read by
:func:`read_json`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dafka.protocol.errors import TooDeepError

DEEPEST = 300
"""Levels of lists and objects, where a form has no limit of its own."""

# A bracket and what is before it; at last the end, or a string without one. It never tracks back.
_BRACKET = re.compile(r'[^][{}"]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^][{}"]*)*(?:([][{}])|"|\Z)', re.DOTALL)


def read_json(text: str | bytes, *, deepest: int = DEEPEST, **options: Any) -> Any:
    """What :func:`json.loads` makes of a text, with its ``options``.

    Raises ValueError for what is no JSON: :class:`json.JSONDecodeError`, UnicodeDecodeError, and
    :class:`~dafka.protocol.errors.TooDeepError` for more than ``deepest`` levels.
    """
    decoded = _decoded(text)
    check_depth(decoded, deepest)
    return json.loads(decoded, **options)


def check_depth(text: str | bytes, deepest: int = DEEPEST) -> None:
    """Raise :class:`~dafka.protocol.errors.TooDeepError` for JSON of more levels; it need not be valid."""
    text = _decoded(text)
    if text.count("[") + text.count("{") <= deepest:
        return
    depth = 0
    for match in _BRACKET.finditer(text):
        bracket = match[1]
        if bracket is None:
            return
        if bracket in "[{":
            depth += 1
            if depth > deepest:
                raise TooDeepError(f"it is nested more than {deepest} deep")
        else:
            depth -= 1


def _decoded(text: str | bytes) -> str:
    """As :func:`json.loads` decodes it."""
    return text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
