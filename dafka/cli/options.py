"""Shared by the commands: options, the C daemons' configuration files, and how a tool ends."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, get_args

import click

from dafka.cli import keys as names
from dafka.cli.collecting import passing_over_what_lasts
from dafka.cli.descriptors import take_descriptors
from dafka.cli.logs import Format, log_to_stderr
from dafka.cli.numbers import Number
from dafka.cli.systemd import STOPPING, Watchdog, notify
from dafka.cli.toml_files import TOML_SOURCE, TomlFileError, read_toml, source
from dafka.cli.zpl import ZplError, parse_zpl
from dafka.commit.retention import CHECK_INTERVAL, LARGEST_BOUND
from dafka.hub.waits import LONGEST
from dafka.mesh import limits
from dafka.mesh.address import (
    DEFAULT_TOWER,
    InvalidAddressError,
    InvalidTopicError,
    check_address,
    check_topic,
)
from dafka.mesh.options import TRANSPORT, TRANSPORTS
from dafka.protocol.framing import Framing
from dafka.security.keys import KeyFolder

Command = Callable[..., Any]


# ParamType takes type arguments in newer versions of click only.
class TopicName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A topic as it goes on the wire."""

    name = "topic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            return check_topic(value)
        except InvalidTopicError as error:
            self.fail(str(error), param, ctx)


class PartitionAddress(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The address of a producer, which names its partition."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return check_address(value).decode()
        except InvalidAddressError as error:
            self.fail(str(error), param, ctx)


def check_folder(ctx: click.Context, param: click.Parameter, folder: str) -> str:
    """A callback for options that name a folder."""
    if not folder:  # as $DATA is when it is not set: not the current folder
        raise click.BadParameter("a folder has a name; the current one is '.'", ctx, param)
    return folder


def common_options(command: Command) -> Command:
    """``--config``, ``--verbose`` and ``--log-format``."""

    @click.option(
        "-c",
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        help="A configuration file, FILE.toml or ZPL as the C daemons take it; `dafka config` lists keys.",
    )
    @click.option("-v", "--verbose", is_flag=True, help="Log what happens to standard error.")
    @click.option(
        "--log-format",
        type=click.Choice(get_args(Format)),
        default="text",
        show_default=True,
        help="A line of text for each thing that is logged, or a JSON object.",
    )
    @wraps(command)
    def wrapped(*args: Any, verbose: bool, log_format: Format, **kwargs: Any) -> Any:
        log_to_stderr(verbose, log_format)
        # SIGTERM ends a tool as Ctrl-C does: through its with blocks.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return command(*args, **kwargs)

    return wrapped


def mesh_arguments(command: Command) -> Command:
    """The options of a node; the command gets them as ``mesh``, keywords for a class of dafka.mesh."""

    @common_options
    @click.option("--sub", default=DEFAULT_TOWER[0], show_default=True, help="Where the tower takes beacons.")
    @click.option(
        "--pub",
        default=DEFAULT_TOWER[1],
        show_default=True,
        help="Where the tower gives beacons. Several towers: addresses with commas between them, in both.",
    )
    @click.option("--bind", default="*", show_default=True, help="Interface that peers connect to.")
    @click.option(
        "--advertise",
        default="",
        help="Host that peers are told to connect to.  [default: the one bound, or what the tower sees]",
    )
    @click.option("--beacon-interval", default=1000, show_default=True, help="Milliseconds between beacons.")
    @click.option(
        "--beacon-timeout", default=4000, show_default=True, help="Milliseconds until a peer is lost."
    )
    @click.option(
        "--high-watermark",
        default=limits.HIGH_WATER_MARK,
        show_default=True,
        help="Messages queued a peer; lower it for large records.",
    )
    @click.option(
        "--framing",
        type=click.Choice([framing.value for framing in Framing]),
        default=Framing.LIBDAFKA.value,
        show_default=True,
        help="How to write commands; both framings are read.",
    )
    @click.option(
        "--transport",
        type=click.Choice(TRANSPORTS),
        default=TRANSPORT,
        show_default=True,
        help="The transport of records: libzmq, or ZMTP of our own.",
    )
    @key_options
    @wraps(command)
    def wrapped(
        *args: Any,
        sub: str,
        pub: str,
        bind: str,
        advertise: str,
        beacon_interval: int,
        beacon_timeout: int,
        high_watermark: int,
        framing: str,
        transport: str,
        keys: KeyFolder | None,
        **kwargs: Any,
    ) -> Any:
        mesh = {
            "tower": towers(sub, pub),
            "bind": bind,
            "advertise": advertise,
            "beacon_interval": beacon_interval / 1000,
            "beacon_timeout": beacon_timeout / 1000,
            "high_water_mark": high_watermark,
            "framing": framing,
            "transport": transport,
            "keys": keys,
        }
        return command(*args, mesh=mesh, **kwargs)

    return wrapped


def key_options(command: Command) -> Command:
    """``--keys`` and ``--node``; the command gets them as ``keys``, None without a folder."""

    @click.option(
        "--keys",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Let in only nodes on the list of this folder (`dafka keys`), encrypted.  [default: all]",
    )
    @click.option("--node", default="", help="Whose keys to use.  [default: the only node's in DIR]")
    @wraps(command)
    def with_keys(*args: Any, keys: str | None, node: str, **kwargs: Any) -> Any:
        if node and not keys:
            raise click.UsageError("--node needs --keys")
        return command(*args, keys=KeyFolder(keys, node) if keys else None, **kwargs)

    return with_keys


def towers(sub: str, pub: str) -> list[tuple[str, str]]:
    """The pairs of the addresses that --sub and --pub list."""
    takes, gives = ([address.strip() for address in addresses.split(",")] for addresses in (sub, pub))
    if len(takes) != len(gives):
        raise click.UsageError(
            f"every tower has an address in --sub and one in --pub: there are {len(takes)} and {len(gives)}"
        )
    return list(zip(takes, gives, strict=True))


def durability_options(command: Command) -> Command:
    """``--durability`` and ``--on-damage``; the command gets them as the keywords of Store and Broker."""
    command = click.option(
        "--on-damage",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="What reading does about damage: refuse the place, or log it and go on behind it.",
    )(command)
    return click.option(
        "--durability",
        type=click.Choice(["process", "power"]),
        default="process",
        show_default=True,
        help="What an acknowledged record survives: the death of this process, or a power cut too.",
    )(command)


def retention_options(command: Command) -> Command:
    """``--retention-ms``, ``--retention-bytes`` and ``--retention-check-interval``, likewise."""
    command = click.option(
        "--retention-check-interval",
        type=Number(0, LONGEST, min_open=True),
        default=CHECK_INTERVAL,
        show_default=True,
        help="Seconds between two looks at what is to go.",
    )(command)
    command = click.option(
        "--retention-bytes",
        type=click.IntRange(-1, LARGEST_BOUND),
        help="Bytes of records to keep in each partition.  [default: all]",
    )(command)
    return click.option(
        "--retention-ms",
        type=click.IntRange(-1, LARGEST_BOUND),
        help="Milliseconds to keep records.  [default: for ever]",
    )(command)


@contextmanager
def ended_by_signal() -> Iterator[None]:
    """SIGINT and SIGTERM end the block quietly, wherever in it the program is. It may open many files."""
    take_descriptors()
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            click.echo(err=True)  # behind the ^C


def wait_for_signal(alive: Callable[[], bool] = lambda: True) -> None:
    """Wait until a signal raises, in short sleeps: one just before a long one would be slept over.

    systemd is told meanwhile that the process is alive, as long as ``alive()``, and at the end that it stops.
    """
    watchdog = Watchdog(alive, time.monotonic)
    try:
        with passing_over_what_lasts():
            while True:
                time.sleep(0.2)
                watchdog.step()
    finally:
        notify(STOPPING)


def check_reader(output: IO[Any]) -> None:
    """Raise BrokenPipeError, upon which click ends quietly, when the reader of our pipe has gone.

    `head` leaves when it has its lines. A command that writes gets this error anyway.
    """
    if not hasattr(select, "poll"):
        return
    try:
        descriptor = output.fileno()
    except io.UnsupportedOperation:
        return  # not a pipe
    poll = select.poll()
    poll.register(descriptor, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _read_config(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    if value is None:
        return
    if value.suffix == ".toml":
        _read_toml(ctx, param, value)
        return
    try:
        values = parse_zpl(value.read_text("utf-8-sig"))  # with the mark that some editors put before it
    except (ZplError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value}: {error}", ctx, param) from error
    path = _path(ctx)
    names.check_keys(str(value), values, path, *_commands(ctx))
    found: dict[str, Any] = {}
    for one in names.settings(ctx.command, path):
        if one.key not in values:
            continue
        text = values[one.key]
        if text is None:
            raise click.BadParameter(f"{value}: {one.key} has no value", ctx, param)
        several = one.parameter.multiple
        found[str(one.parameter.name)] = one.parameter.type.split_envvar_value(text) if several else text
    ctx.default_map = {**(ctx.default_map or {}), **found}


def _read_toml(ctx: click.Context, param: click.Parameter, file: Path) -> None:
    commands, _ = _commands(ctx)
    path = _path(ctx)
    try:
        text = file.read_text("utf-8-sig")
        found = read_toml(str(file), text, ctx.command, path, commands)
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file}: it is not UTF-8 ({error})", ctx, param) from error
    except TomlFileError as error:
        raise click.UsageError(str(error), ctx) from error
    ctx.meta[TOML_SOURCE] = source(str(file), text, path, ctx)
    ctx.default_map = {**(ctx.default_map or {}), **found}


def _path(ctx: click.Context) -> tuple[str, ...]:
    """The names of a command from the program's on: perf, store."""
    names: list[str] = []
    here: click.Context | None = ctx
    while here is not None and (here.parent is not None or not names):
        names.append(here.info_name or "")
        here = here.parent
    return tuple(reversed(names))


def _commands(ctx: click.Context) -> tuple[list[str], Callable[[str], click.Command | None]]:
    """The names of all commands, and how one is had."""
    root = ctx.find_root()
    group = root.command
    if isinstance(group, click.Group):
        return group.list_commands(root), lambda name: group.get_command(root, name)
    return [ctx.info_name or ""], lambda name: ctx.command
