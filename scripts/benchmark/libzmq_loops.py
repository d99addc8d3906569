"""libzmq's own speed: the loops of ``pyzmq_loops.py`` as a program in C, built where there is a compiler."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache, lru_cache
from pathlib import Path

from processes import Figures

SOURCE = Path(__file__).with_suffix(".c")
SECONDS = 120


class NotBuiltError(Exception):
    """No compiler was found, or no libzmq with its header."""


@cache
def program() -> Path:
    """The program, built once for a run. Raises NotBuiltError."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotBuiltError("there is no C compiler for libzmq's own loops")
    built = Path(_folder().name) / "libzmq_loops"
    command = [compiler, "-O2", "-o", str(built), str(SOURCE), "-lzmq"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotBuiltError(f"libzmq's own loops are not built (libzmq3-dev?): {made.stderr.strip()[:200]}")
    return built


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """It is removed at the end of the run."""
    return tempfile.TemporaryDirectory(prefix="dafka-bench-")


def rates(count: int, size: int) -> Figures:
    """Messages a second: sent, received. Raises NotBuiltError."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    publisher = subprocess.Popen([program(), "pub", str(count), str(size)], **pipes)
    with publisher:
        try:
            assert publisher.stdout is not None
            port = publisher.stdout.readline().strip()
            subscriber = subprocess.run(
                [program(), "sub", str(count), port],
                capture_output=True,
                text=True,
                check=True,
                timeout=SECONDS,
            )
            return float(publisher.stdout.readline()), float(subscriber.stdout)
        finally:
            publisher.kill()


@lru_cache(maxsize=4)
def measured(turn: int, *, count: int, size: int) -> Figures:
    """:func:`rates`, once a turn."""
    return rates(count, size)
