"""The meaning of expressions and import statements of a source for the names ``kafka`` and
``compat.kafka``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

THEIRS, OURS = "kafka", "compat.kafka"


def import_from(node: cst.Import, module: str, alias: cst.ImportAlias) -> cst.ImportFrom:
    return cst.ImportFrom(cst.Name(module), [alias], semicolon=node.semicolon)


def as_kafka(comma: Any = cst.MaybeSentinel.DEFAULT) -> cst.ImportAlias:
    name = cst.Attribute(cst.Name("compat"), cst.Name(THEIRS))
    return cst.ImportAlias(name, cst.AsName(cst.Name(THEIRS)), comma=comma)


def is_as_kafka(alias: cst.ImportAlias) -> bool:
    return dotted(alias.name) == OURS and bound_name(alias) == THEIRS


def bound_name(alias: cst.ImportAlias) -> str:
    return dotted(alias.asname.name) if alias.asname is not None else ""


def is_below(name: str | None, package: str) -> bool:
    """Whether a dotted name is the package or below it."""
    return name is not None and (name == package or name.startswith(package + "."))


def dotted(node: Any) -> str:
    """``a.b.c`` of a chain of attributes; empty parts for anything but names."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    return ""


def is_sys_modules(node: Any) -> bool:
    return dotted(node) == "sys.modules" or text_of(node) == "sys.modules"


def text_of(node: Any) -> str | None:
    """The text of a plain string literal, as written in the source."""
    if isinstance(node, cst.SimpleString) and "b" not in node.prefix.lower():
        return node.raw_value
    return None


def beginning(node: Any) -> tuple[Any, bool]:
    """The literal that an expression of strings begins with, and whether that is all of it."""
    if isinstance(node, cst.SimpleString):
        return node, True
    if isinstance(node, cst.FormattedString):
        first = node.parts[0] if node.parts else None
        return (first if isinstance(first, cst.FormattedStringText) else None), len(node.parts) == 1
    if isinstance(node, cst.ConcatenatedString) or (
        isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Modulo)
    ):
        return beginning(node.left)[0], False
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return (beginning(node.func.value)[0] if node.func.attr.value == "format" else None), False
    return None, False


def strings(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, cst.SimpleString):
        yield node
    for child in node.children:
        yield from strings(child)
