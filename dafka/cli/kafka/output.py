"""How commands show what they found: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from tabulate import tabulate

from dafka.broker.looking.outcomes import printable

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
