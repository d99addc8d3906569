"""The console tools as processes, for the tests of this folder.

If a test fails while one of them runs, pytest shows how it has ended and what it has said.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import forking
import ports
from click.testing import CliRunner
from kafka import KafkaProducer
from timing import ending_of

from dafka import Tower
from dafka.cli import keys, main

DAFKA = [sys.executable, "-m", "dafka.cli"]
COMMANDS = {
    " ".join(path): command
    for name in ("broker", "consume", "perf", "produce", "sniff", "store", "topics", "tower", "zper")
    for path, command in keys.commands_of(main.get_command(click.Context(main), name), (name,))  # type: ignore[arg-type, attr-defined]
}
LOOPBACK = ["--listen", f"{ports.LOOPBACK}:0"]  # there, nothing that another test has closed is looked for


def environment(**more: str) -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), **more)


@contextmanager
def running(*arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    process = forking.Popen(
        [*DAFKA, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )
    try:
        yield process
    except BaseException:
        process.kill()
        print(f"dafka {' '.join(arguments)}: {ending_of(process)}", file=sys.stderr)  # pytest shows it
        raise
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return forking.run(
        [*DAFKA, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(**more),
    )


def refused(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, for command lines with which nothing starts."""
    done = CliRunner().invoke(main, arguments, prog_name="dafka", env=more)
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception  # it would have printed a traceback
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def mesh(tower: Tower) -> list[str]:
    """The options that put a tool into the mesh of ``tower``, on loopback."""
    return ["--sub", tower.addresses[0], "--pub", tower.addresses[1], "--bind", "127.0.0.1"]


def without_waiting(said: str) -> str:
    """What a producer said, but for the line that it waits: whether it does depends on the machine's load."""
    return re.sub(r"^waiting \d+ s for stores to acknowledge \d+ of the records;.*\n", "", said)


def address_of(process: subprocess.Popen[str]) -> str:
    """The broker's address, from its first line."""
    assert process.stderr is not None
    line = process.stderr.readline()
    while " WARNING dafka.broker.listening: " in line:  # it is not on loopback
        line = process.stderr.readline()
    found = re.match(r"broker: (\S+) in ", line)
    assert found, line + ending_of(process)
    return found[1]


def produce(address: str, topic: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=address)
    try:
        for future in [producer.send(topic, value) for value in values]:
            future.get(100)
    finally:
        producer.close()


Done = subprocess.CompletedProcess[str]


def with_time(tool: str, options: list[str], enough: Callable[[Done], object]) -> Done:
    """A tool that listens for some seconds; again for longer if a busy machine has not let it hear enough."""
    for seconds in ("1.5", "5", "20"):
        done = run(tool, "--seconds", seconds, *options)
        if enough(done):
            break
    return done
