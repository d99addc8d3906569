"""The ``dafka`` command: daemons and console tools of a mesh, with the C ones' behaviour and defaults."""

from __future__ import annotations

import gc
import os
import signal
import sys

from dafka.cli.interrupts import EndedByCtrlC

with EndedByCtrlC():
    from contextlib import suppress
    from typing import Any

    import click

    import dafka
    from dafka.cli.advice import advised
    from dafka.cli.keys import check_variables
    from dafka.cli.lazy import LazyGroup
    from dafka.protocol.errors import DafkaError

_HOMES = {
    "acl": "dafka.cli.acl:acl",
    "backup": "dafka.cli.backup:backup",
    "bridge": "dafka.cli.bridge:bridge",
    "broker": "dafka.cli.broker:broker",
    "completion": "dafka.cli.completion:completion",
    "config": "dafka.cli.config:config",
    "console": "dafka.cli.browser:console",
    "consume": "dafka.cli.console:consume",
    "kafka": "dafka.cli.kafka:kafka",
    "keys": "dafka.cli.key_folders:keys",
    "log": "dafka.cli.log:log",
    "migrate": "dafka.cli.migrate:migrate",
    "overlay": "dafka.cli.overlay:overlay",
    "perf": "dafka.cli.perf:perf",
    "pipeline": "dafka.cli.pipeline:pipeline",
    "produce": "dafka.cli.console:produce",
    "quota": "dafka.cli.quota:quota",
    "sniff": "dafka.cli.look:sniff",
    "store": "dafka.cli.daemons:store",
    "swap-imports": "dafka.cli.swap_imports:swap_imports",
    "topics": "dafka.cli.look:topics",
    "tower": "dafka.cli.daemons:tower",
    "user": "dafka.cli.user:user",
    "zper": "dafka.cli.zper:zper",
}


class _Group(LazyGroup):
    """A group whose commands end with one line, and not a traceback, when they meet an error of ours."""

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            return self._main(*args, **options)
        except BrokenPipeError:
            sys.exit(1)  # as click ends when the reader of our output has gone
        except OSError as error:  # of our output, on a full disk
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)
        finally:
            _drop_output()

    def _main(self, *args: Any, **options: Any) -> Any:
        try:
            return super().main(*args, **options)
        except SystemExit as ended:
            if not ended.code:
                _flush_output()  # which may be all that was said
            raise

    def load(self, home: str) -> click.Command:
        gc.disable()  # looking for garbage among modules would take a twentieth of the start
        try:
            with EndedByCtrlC():
                command = super().load(home)
        finally:
            gc.enable()
        gc.freeze()  # modules never become garbage
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        helps = set(ctx.help_option_names) & set(rest)
        if name is not None and command is not None and name != "config" and not helps:
            check_variables(os.environ, name, command, self.homes)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has gone: click ends quietly
        except KeyboardInterrupt:
            raise SystemExit(128 + signal.SIGINT) from None
        except click.UsageError as error:
            if type(error) is not click.UsageError:
                raise  # about one option, whose line is told where it is read
            raise click.UsageError(_with_lines(ctx, error.message), error.ctx) from error
        except (DafkaError, ValueError, OSError) as error:
            raise click.ClickException(_with_lines(ctx, advised(error))) from error
        except Exception as error:
            if not _is_kafkas(error):
                raise
            raise click.ClickException(advised(error)) from error


def _flush_output() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _drop_output() -> None:
    """Have nothing wait that cannot be written: the interpreter would try again at its end, and say so."""
    try:
        _flush_output()
    except OSError:
        with open(os.devnull, "wb") as nowhere, suppress(OSError):
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _with_lines(ctx: click.Context, message: str) -> str:
    """The message, with the lines of a configuration file that it is about."""
    toml_files = sys.modules.get("dafka.cli.toml_files")  # loaded by the commands that take one
    source = None if toml_files is None else ctx.meta.get(toml_files.TOML_SOURCE)
    return message if toml_files is None or source is None else toml_files.with_lines(message, source)


def _is_kafkas(error: Exception) -> bool:
    """Whether it is an error that a broker answers, or one of reaching it."""
    errors = sys.modules.get("kafka.errors")  # loaded by the commands that use brokers
    return errors is not None and isinstance(error, errors.KafkaError)


@click.group(
    cls=_Group,
    homes=_HOMES,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "DAFKA"},
)
@click.version_option(dafka.__version__, message="%(prog)s %(version)s", allow_from_autoenv=False)
def main() -> None:
    """Dafka: decentralised streaming on ZeroMQ.

    An option can also be set in the environment (DAFKA_STORE_PUB is --pub of `dafka store`) or in a
    configuration file; the command line goes first, then the environment, then the file. `dafka config` lists
    the names. An unknown name is an error.
    """
