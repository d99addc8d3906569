"""``dafka broker --check``: errors in the settings of a broker, or the settings."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import click
from click.core import ParameterSource

from dafka.cli.kafka.output import show
from dafka.cli.toml_files import SECRETS
from dafka.log.kinds import BROKER, check_folder_kind
from dafka.log.layout import opening_error, read_layout, refuse_foreign
from dafka.security.contexts import of_server
from dafka.security.keys import KeyFolder
from dafka.security.tls import ServerTls

_SOURCES = {
    ParameterSource.COMMANDLINE: "command line",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.DEFAULT: "default",
}
_ABOUT_ITSELF = {"check", "help"}


def check_broker(data: str, tls: ServerTls | None, keys: KeyFolder | None) -> None:
    """Read what a broker would read when it starts, and write nothing. Raises what it would raise."""
    if tls is not None:
        of_server(tls)
    if keys is not None:
        keys.check_store()
        keys.load_server()
    if os.path.lexists(data):
        refuse_foreign(data)
        try:
            if read_layout(data) is not None:
                check_folder_kind(data, BROKER)
        except sqlite3.Error as error:
            raise opening_error(data, error) from error
        place = Path(data)
    else:
        place = next(parent for parent in Path(data).absolute().parents if parent.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        raise click.ClickException(f"the folder {data} cannot be written: {place} does not allow it")


def show_settings(ctx: click.Context) -> None:
    """Print every setting of the command, its value, and where that is from."""
    rows = []
    for parameter in ctx.command.params:
        name = str(parameter.name)
        source = ctx.get_parameter_source(name)
        if name in _ABOUT_ITSELF or source not in _SOURCES or name not in ctx.params:
            continue
        value = ctx.params[name]
        if isinstance(value, dict):
            value = ",".join(f"{key}={one}" for key, one in value.items())
        if name in SECRETS and value is not None:
            value = "(secret)"
        rows.append({"setting": name, "value": value, "from": _SOURCES[source]})
    show(rows, False, ["setting", "value", "from"])
