"""How commands show what they found: tables for people, JSON for programs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from tabulate import tabulate

Command = Callable[..., Any]
Row = Mapping[str, Any]


def json_option(command: Command) -> Command:
    """``--json``; the command gets it as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")(command)


def show(rows: Iterable[Row], as_json: bool, columns: Sequence[str]) -> None:
    """Print rows: as a table of these columns, or each of them whole as a JSON object."""
    if as_json:
        for row in rows:
            click.echo(json.dumps(row))
        return
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    headings = [column.replace("_", " ").upper() for column in columns]
    right = [_is_number(column) for column in zip(*cells, strict=True)] or [False] * len(columns)
    align = ["right" if number else "left" for number in right]
    table = tabulate(
        cells, headings, tablefmt="plain", colalign=align if cells else None, disable_numparse=True
    )
    for line in table.splitlines():
        click.echo(line.rstrip())


def printable(text: str) -> str:
    """Text of strangers for a terminal: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def octets(name: str, content: bytes | None) -> dict[str, Any]:
    """Octets in JSON: text as text, anything else as Base64 under a name that says so."""
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}


def check(outcomes: Mapping[Any, Any]) -> None:
    """Raise click.ClickException with a line for each thing that was refused.

    What came of each is an error (None: done), or has one as ``error`` and perhaps says in words why.
    """
    lines = []
    for what, outcome in outcomes.items():
        error = getattr(outcome, "error", outcome)
        if error is not None:
            detail = getattr(outcome, "detail", "") or getattr(outcome, "message", "")
            if outcome is error or not detail:
                detail = ""  # the name of the error says it all
            lines.append(f"{named(what)}: {error.__name__}" + (f": {detail}" if detail else ""))
    if lines:
        raise click.ClickException(printable_lines(lines))


def named(what: Any) -> str:
    """A thing in words: a partition is TOPIC-NUMBER."""
    return f"{what[0]}-{what[1]}" if isinstance(what, tuple) else str(what)


def printable_lines(lines: Sequence[str]) -> str:
    """Lines with what strangers wrote in them."""
    return "\n".join(map(printable, lines))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return printable(",".join(map(str, value)))
    return printable(str(value))


def _is_number(cells: Sequence[str]) -> bool:
    return all(cell == "-" or cell.lstrip("-").isdigit() for cell in cells) and set(cells) != {"-"}
