"""``dafka zper run``, ``start`` and ``stop``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dafka.cli import deferred_packages
from dafka.cli.numbers import Seconds

deferred_packages.defer()

from dafka.broker.broker import Broker  # noqa: E402  (what it imports must find them deferred)
from dafka.cli.metrics import Metrics, metrics_options  # noqa: E402
from dafka.cli.options import (  # noqa: E402
    common_options,
    durability_options,
    ended_by_signal,
    key_options,
    towers,
    wait_for_signal,
)
from dafka.cli.zper import pid_file as pid_files  # noqa: E402
from dafka.cli.zper.configuration import (  # noqa: E402
    CONFIG,
    beside,
    configured,
    file_option,
    folder,
    pid_file_option,
    say,
)
from dafka.cli.zper.pid_file import PidFile, RunningError  # noqa: E402
from dafka.security.keys import KeyFolder  # noqa: E402
from dafka.zper.options import ZperOptions  # noqa: E402

_PAUSE = 0.02  # seconds between two looks
_SHOWN = 20  # last lines of a log

_TIMEOUT = click.option(
    "--timeout", type=Seconds(), default=60.0, show_default=True, help="Seconds to wait for it."
)


def _broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of the broker that a server.properties has no keys for."""
    command = click.option("--sub", help="Where the tower of Dafka's nodes takes beacons.  [default: none]")(
        durability_options(command)
    )
    command = click.option("--pub", help="Where it gives beacons.  [default: none]")(command)
    command = click.option(
        "--advertised",
        metavar="HOST[:PORT]",
        help="The address that Kafka's clients are told.  [default: --listen]",
    )(command)
    command = click.option(
        "--listen",
        metavar="HOST:PORT",
        help="Where Kafka's clients connect; PORT 0 is any.  [default: nowhere]",
    )(command)
    return key_options(command)


@click.command("run", short_help="Serve until Ctrl-C.")
@CONFIG
@_broker_options
@pid_file_option
@metrics_options
@common_options
def run_(
    properties_file: Path | None,
    pid_file: Path | None,
    sub: str | None,
    pub: str | None,
    metrics: Metrics,
    **options: Any,
) -> None:
    """Serve ZeroMQ programs as the file CONFIG says (server.properties, with ZPER's keys), until Ctrl-C.

    Kafka's clients and Spark read and write the same topics with --listen, Dafka's nodes read them with the
    --sub and --pub of their tower.
    """
    if (sub is None) != (pub is None):
        raise click.UsageError("--sub and --pub are the two addresses of a tower: give both or none")
    tower = None if sub is None or pub is None else towers(sub, pub)
    properties = configured(properties_file)
    say(properties, properties_file)
    zper = ZperOptions.of_properties(properties.values)
    path = folder(properties)
    with (
        ended_by_signal(),
        PidFile(pid_file or beside(properties, ".pid")) as pid,
        Broker(path, zper=zper, tower=tower, **options) as broker,
        metrics.of("broker", broker.metrics),
    ):
        served = ", ".join(f"{name} {address}" for name, address in broker.zper.addresses.items())
        kafka = f", Kafka's clients {broker.bootstrap_servers}" if options["listen"] else ""
        click.echo(f"zper: {served or 'no server'}{kafka}, data in {path}", err=True)
        pid.serving()
        wait_for_signal()


@click.command("start", short_help="Run in the background; returns when it serves.")
@CONFIG
@_broker_options
@pid_file_option
@file_option("--log-file", ".log", "Where the server's messages go.")
@_TIMEOUT
@common_options
def start_(
    properties_file: Path | None,
    pid_file: Path | None,
    log_file: Path | None,
    timeout: float,
    keys: KeyFolder | None,
    **options: str | None,
) -> None:
    """Run a server in the background with the file CONFIG, and return when it serves."""
    properties = configured(properties_file)
    pid_file = pid_file or beside(properties, ".pid")
    log_file = log_file or beside(properties, ".log")
    if pid_files.is_held(pid_file):
        raise RunningError(f"a server runs already: process {pid_files.pid_of(pid_file)} holds {pid_file}")
    command = [
        sys.executable,
        "-m",
        "dafka.cli",
        "zper",
        "run",
        *([str(properties_file)] if properties_file else []),
    ]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items() if value is not None]
    if keys is not None:
        command += ["--keys", os.path.abspath(keys.path), *(["--node", keys.node] if keys.node else [])]
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as log:
        begins = log.tell()
        server = subprocess.Popen(
            [*command, "--pid-file", str(pid_file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for this command alone, and the terminal may be closed
        )
    deadline = time.monotonic() + timeout
    try:
        while pid_files.pid_of(pid_file) != server.pid:
            if server.poll() is not None:
                raise click.ClickException(f"the server has not started:\n{_end_of(log_file, begins)}")
            if time.monotonic() >= deadline:
                raise click.ClickException(f"the server does not serve after {timeout:g} s; see {log_file}")
            time.sleep(_PAUSE)
    except BaseException:
        server.terminate()
        server.wait()
        raise
    server.returncode = 0  # it goes on without us
    click.echo(_end_of(log_file, begins), err=True)
    click.echo(f"process {server.pid}, its pid in {pid_file}, its messages in {log_file}", err=True)


@click.command("stop", short_help="End the server that `start` has started.")
@CONFIG
@pid_file_option
@_TIMEOUT
@common_options
def stop_(properties_file: Path | None, pid_file: Path | None, timeout: float) -> None:
    """End the server of the file CONFIG, and wait until it has flushed everything and is gone."""
    pid_file = pid_file or beside(configured(properties_file), ".pid")
    deadline = time.monotonic() + timeout
    while (pid := pid_files.pid_of(pid_file)) is None or not pid_files.is_held(pid_file):
        if not pid_files.is_held(pid_file):
            raise click.ClickException(f"no server runs: no process holds {pid_file}")
        if time.monotonic() >= deadline:  # it holds the file, and does not serve yet
            raise click.ClickException(f"the server that holds {pid_file} has not said its pid")
        time.sleep(_PAUSE)
    os.kill(pid, signal.SIGTERM)
    if not pid_files.wait_until_released(pid_file, max(0.0, deadline - time.monotonic())):
        raise click.ClickException(f"process {pid} has not ended after {timeout:g} s")


def _end_of(log_file: Path, begins: int) -> str:
    with log_file.open("rb") as log:
        log.seek(begins)
        text = log.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-_SHOWN:])
