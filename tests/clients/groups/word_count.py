"""Instances of a program that counts words with Kafka Streams, each in a process of its own."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from clients.adapters.client import SECONDS
from timing import until

from scripts.apache import jars, node

PROGRAM = Path(__file__).parent / "WordCount.java"
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@functools.lru_cache(maxsize=1)
def class_path() -> str:
    """The compiled program and what it needs. Raises UnavailableError."""
    node.java()
    compiler = shutil.which("javac")
    if compiler is None:
        raise jars.UnavailableError("there is no Java compiler here")
    libraries = os.pathsep.join([jars.classpath(), jars.classpath(jars.HERE / "streams.txt")])
    folder = tempfile.mkdtemp(prefix="dafka-streams-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([compiler, "-cp", libraries, "-d", folder, str(PROGRAM)], check=True, timeout=SECONDS)
    return folder + os.pathsep + libraries


class Instance:
    """A running instance, with its state in ``folder``; ``said`` are the lines that it has written."""

    def __init__(self, topics: tuple[str, str], folder: Path, **settings: str) -> None:
        pairs = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [
                *(node.java(), *FLAGS, "-cp", class_path(), "WordCount", *topics),
                *(*pairs, f"state.dir={folder}"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.said.extend(map(str.rstrip, self._process.stdout))

    def wait_until_running(self) -> None:
        """Wait for its tasks to run, the first time."""
        until(lambda: "state RUNNING" in self.said or self._process.poll() is not None, self.said, SECONDS)
        assert "state RUNNING" in self.said, self.said

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(SECONDS)

    def close(self) -> None:
        """Have it leave, unless it was killed."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(SECONDS)
        self._reader.join(SECONDS)
