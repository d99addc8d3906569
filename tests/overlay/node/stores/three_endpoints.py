"""The recipe of Broker's developer guide: three endpoints in three processes share a data store.

Each is this file, run with its part and the address of the first one. Each message of them is a line.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path.append(str(ROOT / "tests"))  # for a run as a program

import forking  # noqa: E402 - needs the path

WAIT = 200
EXPECTED = ["first: first 1, second 2, third 3", "second: first 1, second 2, third 3", "third: 3 keys"]


class Program:
    """A process, which runs until its input is closed."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, str(Path(__file__)), *arguments]
        self._process = forking.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def said(self) -> str:
        """The next line; fails after some time without one."""
        assert self._process.stdout is not None
        killer = threading.Timer(WAIT, self._process.kill)
        killer.start()
        try:
            return self._process.stdout.readline().strip()
        finally:
            killer.cancel()

    def end(self) -> None:
        self._process.communicate(timeout=WAIT)


def main(part: str, *peers: str) -> None:
    from dafka.overlay import Endpoint

    def say(text: object) -> None:
        print(text, flush=True)

    with Endpoint(listen="127.0.0.1:0", peers=peers) as endpoint:
        if part == "first":
            store = endpoint.attach_master("names")
            say(endpoint.address)
        else:
            store = endpoint.attach_clone("names") if part == "second" else endpoint.attach_proxy("names")
        store.put(part, {"first": 1, "second": 2, "third": 3}[part])
        while len(store.keys(timeout=WAIT)) < 3:
            store.await_idle(WAIT)
        if part == "third":
            say(f"third: {len(store.keys())} keys")
        else:
            say(f"{part}: " + ", ".join(f"{key} {store.get(key)}" for key in sorted(store.keys())))
        sys.stdin.read()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[4]))
    main(*sys.argv[1:])
