"""CONFIG: the server.properties that ``dafka zper``'s server commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dafka.zper.properties import Properties, PropertiesError, read_properties

CONFIG = click.argument(
    "properties_file",
    metavar="[CONFIG]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)


def configured(path: Path | None) -> Properties:
    """The settings of a file; without one the defaults."""
    if path is None:
        return read_properties("")
    try:
        return read_properties(path.read_text("utf-8-sig"))
    except (PropertiesError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="CONFIG") from error


def say(properties: Properties, path: Path | None) -> None:
    """Notes on a file for its user."""
    for warning in properties.warnings:
        click.echo(f"warning: {path}: {warning}", err=True)
    if properties.without_effect:
        keys = ", ".join(properties.without_effect)
        click.echo(f"{path}: without effect here, as dafka/zper/README.md explains: {keys}", err=True)


def folder(properties: Properties) -> str:
    """Where the data is."""
    return str(properties.values["base_dir"])


def beside(properties: Properties, ending: str) -> Path:
    """The file beside the folder of the data: ``/data/zper.pid`` for ``/data/zper``."""
    path = Path(folder(properties))
    return path.with_name(f"{path.absolute().name}{ending}")


def file_option(name: str, ending: str, what: str) -> Callable[[Any], Any]:
    """``--pid-file`` and ``--log-file``."""
    return click.option(
        name,
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"{what}  [default: base_dir with {ending!r} behind it]",
    )


pid_file_option = file_option("--pid-file", ".pid", "Where the server's pid is.")
