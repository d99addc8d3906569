"""Clients that are not ours: programs on JeroMQ and on libzmq that do what ZPER's README shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from scripts.apache import jars

HERE = Path(__file__).parent
SECONDS = 100.0  # that a program may take
NAMES = ["jeromq-0.3.5", "jeromq-0.6.0", "libzmq"]


class Program:
    """A program that was compiled; ``command`` runs it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)

    def run(self, *arguments: object) -> list[str]:
        """The lines that it prints before its "ok"."""
        done = subprocess.run(
            [*self.command, *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr
        *lines, last = done.stdout.splitlines()
        assert last == "ok", done.stdout + done.stderr
        return lines

    @contextmanager
    def running(self, *arguments: object) -> Iterator[IO[str]]:
        """What it prints, while it runs."""
        process = subprocess.Popen([*self.command, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()
            process.communicate()


def build(name: str, folder: Path) -> Program:
    """Compile a program; skips the test where this cannot be done."""
    return Program(
        name, _libzmq(folder) if name == "libzmq" else java(name, folder, HERE / "ZperClient.java")
    )


def java(name: str, folder: Path, source: Path) -> list[str]:
    """The command of a class on a version of JeroMQ."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("there is no Java compiler (javac) here")
    try:
        classpath = jars.classpath(HERE / f"{name}.txt")
    except jars.UnavailableError as error:
        pytest.skip(str(error))
    subprocess.run([compiler, "-nowarn", "-cp", classpath, "-d", folder, source], check=True, timeout=SECONDS)
    return ["java", "-cp", os.pathsep.join([classpath, str(folder)]), source.stem]


def _libzmq(folder: Path) -> list[str]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) here")
    program = folder / "zper_client"
    command = [
        compiler,
        "-std=c99",
        "-D_DEFAULT_SOURCE",
        "-O1",
        HERE / "zper_client.c",
        "-lzmq",
        "-o",
        program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode and ("zmq.h" in done.stderr or "lzmq" in done.stderr):
        pytest.skip("libzmq's header or library is not installed here (libzmq3-dev)")
    assert done.returncode == 0, done.stderr
    return [str(program)]
