"""The ``dafka`` command: daemons and console tools of a mesh, with the C ones' behaviour and defaults."""

from __future__ import annotations

import logging
import signal
import sys

import click

import dafka
from dafka.cli.console import consume, produce
from dafka.cli.daemons import store, tower
from dafka.protocol.errors import DafkaError


class _Group(click.Group):
    """A group whose commands end with one line, and not a traceback, when they meet an error of ours."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except DafkaError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DAFKA"}
)
@click.version_option(dafka.__version__, message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens to standard error.")
def main(verbose: bool) -> None:
    """Dafka: decentralised streaming on ZeroMQ.

    Every option can also be set in the environment: DAFKA_STORE_PUB is --pub of `dafka store`.
    """
    level = logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # SIGTERM ends a tool as Ctrl-C does: through its with blocks.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


for _command in (tower, store, produce, consume):
    main.add_command(_command)
