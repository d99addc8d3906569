"""``dafka pipeline``: the programs on Apache Spark, which are loaded only when one is asked for."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from dafka.cli.lazy import show_examples

_NAMES = ("aggregate", "archive", "migrate", "replay")
# By name, so that neither the command line nor anything below it depends on PySpark.
_MODULES = "dafka.spark.pipelines"


class _Pipelines(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _NAMES:
            return None
        try:
            command: click.Command = getattr(import_module(f"{_MODULES}.{cmd_name}"), cmd_name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").split(".")[0]
            if missing in ("", "dafka"):
                raise
            raise click.ClickException(
                f"pipelines run on Apache Spark; {missing} is missing in {sys.executable}: "
                "pip install 'dafka[spark]'"
            ) from error
        show_examples(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line about each one, or their names and what is missing: help is there before Spark is."""
        try:
            super().format_commands(ctx, formatter)
        except click.ClickException as error:
            with formatter.section("Commands"):
                formatter.write_dl([(name, "") for name in _NAMES])
            formatter.write_paragraph()
            formatter.write_text(error.message[0].upper() + error.message[1:])


@click.group(cls=_Pipelines)
def pipeline() -> None:
    """Programs on Apache Spark: archive, replay, aggregate and migrate topics."""
