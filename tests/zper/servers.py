"""ZPER servers in processes of their own, for tests that kill them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import forking
from ports import free_port
from timing import line_of

PROGRAM = Path(__file__).with_name("served.py")
ROOT = Path(__file__).parents[2]
ROLES = ("writer", "reader", "ack", "relay", "controller")


class Server:
    """A server on a folder. Started again, it has the same addresses."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._folder = folder
        self._options = options
        self.addresses = {role: f"tcp://127.0.0.1:{free_port()}" for role in ROLES}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def start(self) -> None:
        options = {**self._options, **{f"{name}_bind": address for name, address in self.addresses.items()}}
        self._process = forking.Popen(
            [
                *(sys.executable, str(PROGRAM), str(self._folder)),
                *(f"{name}={value}" for name, value in options.items()),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        addresses = json.loads(line_of(self._process, self._process.stdout, "its addresses"))
        assert addresses == self.addresses

    def kill(self) -> None:
        """SIGKILL."""
        process = self._process
        if process is not None:
            process.kill()
            process.communicate()
        self._process = None
