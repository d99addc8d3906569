"""Walking through a document: its steps, one after the other, in one folder, on ports that are free here."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from documents.markdown import ROOT, Block
from documents.running import SECONDS
from ports import free_port

NAMES = ("localhost:9093", "0.0.0.0:9093", "tcp://127.0.0.1:5556", "tcp://127.0.0.1:5557")


class Walk:
    """A folder, and what stays of the steps in it until :meth:`end`.

    ``names`` are addresses in the document, whose ports are others here; ``variables`` go to its commands.
    """

    def __init__(
        self, folder: Path, names: Iterable[str] = NAMES, variables: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.folder = folder
        places = [one.rpartition(":") for one in names]
        ports = {port: free_port() for port in dict.fromkeys(port for *_, port in places)}
        self._here = {f"{host}:{port}": f"{host}:{ports[port]}" for host, _, port in places}
        self._variables = {name: self.here(value) for name, value in variables.items()}
        self._printed: list[str] = []  # by what stays
        self._staying: list[subprocess.Popen[str]] = []
        self._commands = folder / ".commands"
        self._commands.mkdir()
        self.command("dafka", sys.executable, "-m", "dafka.cli")
        self.command("python", sys.executable)

    def here(self, text: str) -> str:
        """Text with the addresses of this walk."""
        for name, here in self._here.items():
            text = text.replace(name, here)
        return text

    def command(self, name: str, *words: str) -> None:
        """Have steps find a command."""
        path = self._commands / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        path.chmod(0o755)

    def step(self, block: Block) -> str:
        """Run a step and return its output. Raises AssertionError if it fails."""
        until = block.told("step that stays until")
        if block.language == "python":
            (self.folder / "step.py").write_text(self.here(block.text))
            return self.run("python step.py")
        return self.run(block.text) if until is None else self._stay(block.text, until)

    def run(self, commands: str, status: int = 0) -> str:
        """What commands print, which end with this status; another one than 0 stands for all of them."""
        process = self._start(commands)
        try:
            printed = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"does not end: {process.communicate()[0]}") from None
        assert bool(process.returncode) == bool(status), f"status {process.returncode}: {printed}"
        return printed

    def _stay(self, commands: str, until: str) -> str:
        process = self._start("exec " + commands)
        self._staying.append(process)
        printed = self._printed
        assert process.stdout is not None
        threading.Thread(target=lambda: printed.extend(process.stdout), daemon=True).start()
        return self.said(until, process)

    def has_said(self, words: str) -> bool:
        """Whether what stays has printed these words."""
        return words in "".join(self._printed)

    def said(self, words: str, process: subprocess.Popen[str] | None = None) -> str:
        """Wait until what stays has printed these words; all that it has printed."""
        deadline = time.monotonic() + SECONDS
        while words not in (printed := "".join(self._printed)):
            assert time.monotonic() < deadline and (process is None or process.poll() is None), printed
            time.sleep(0.02)
        return printed

    def _start(self, commands: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DAFKA_")}
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", self.here(commands)],
            cwd=self.folder,
            env={
                **environment,
                **self._variables,
                "PATH": os.pathsep.join([str(self._commands), environment["PATH"]]),
                "PYTHONPATH": str(ROOT),
                "PYTHONUNBUFFERED": "1",
                "PYTHONWARNINGS": "ignore::DeprecationWarning",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def end(self) -> None:
        """End what stays."""
        for process in reversed(self._staying):
            process.terminate()
        for process in self._staying:
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
