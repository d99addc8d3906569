"""The ``dafka`` command: daemons and console tools of a mesh, with the C ones' behaviour and defaults."""

from __future__ import annotations

import click

import dafka
from dafka.cli.broker import broker
from dafka.cli.console import consume, produce
from dafka.cli.daemons import store, tower
from dafka.cli.log import log
from dafka.cli.look import sniff, topics
from dafka.cli.perf import perf
from dafka.cli.pipeline import pipeline
from dafka.protocol.errors import DafkaError


class _Group(click.Group):
    """A group whose commands end with one line, and not a traceback, when they meet an error of ours."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read our output has gone: click ends quietly
        except (DafkaError, ValueError, OSError) as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DAFKA"}
)
@click.version_option(dafka.__version__, message="%(prog)s %(version)s")
def main() -> None:
    """Dafka: decentralised streaming on ZeroMQ.

    An option can also be set in the environment (DAFKA_STORE_PUB is --pub of `dafka store`) or in a
    configuration file; the command line goes first, then the environment, then the file.
    """


for _command in (tower, store, broker, produce, consume, topics, sniff, perf, log, pipeline):
    main.add_command(_command)
