"""Nodes in processes of their own, to be killed, stopped and continued.

A child reports by lines on its standard output, which a thread here collects; a test waits for a condition on
them with a deadline. ``python tests/mesh/children.py producer ...`` is what runs in the child.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import forking
from timing import until

INTERVAL, TIMEOUT = 0.1, 0.5  # seconds: the beacons of all nodes in these tests
MESH = {"beacon_interval": INTERVAL, "beacon_timeout": TIMEOUT}


class Child:
    """A process and what it has printed. ``others`` are those that it may wait for."""

    def __init__(self, *command: str, prefix: Sequence[str] = (), others: Sequence[Child] = ()) -> None:
        self.lines: list[str] = []
        self._others = others
        self._is_to_end = False
        self.process = forking.Popen(
            [*prefix, sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # a killed process leaves half a line
                self.lines.append(line.rstrip("\n"))

    def until(self, condition: Callable[[list[str]], object]) -> None:
        """Wait until the lines printed so far satisfy a condition."""

        def has_come() -> object:
            has_ended = self.process.poll() is not None
            if has_ended:
                self._reader.join(10)  # what it has said before
            found = condition(self.lines)
            assert found or not has_ended, f"ended with {self.process.returncode}: {self.lines[-5:]}"
            for other in self._others if not found else ():
                assert not other.has_died(), (
                    f"another ended with {other.process.returncode}: {other.lines[-5:]}"
                )
            return found

        until(has_come, lambda: f"last lines: {self.lines[-5:]}")

    def says(self, word: str) -> str:
        """Wait for a line that begins with ``word``; the rest of the last such line."""
        self.until(lambda lines: any(line.startswith(word) for line in lines))
        return next(line for line in reversed(self.lines) if line.startswith(word))[len(word) :].strip()

    def has_died(self) -> bool:
        """Whether it ended with an error, which nobody had told it to."""
        if self._is_to_end or not self.process.poll():
            return False
        self._reader.join(10)  # what it has said before
        return True

    def send(self, number: int) -> None:
        """Send a signal to this process."""
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal and wait; its exit status."""
        self._is_to_end = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        status = self.process.wait(120)
        self._reader.join(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


class Children:
    """The children of a test, all ended with it."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def start(self, *command: str, prefix: Sequence[str] = ()) -> Child:
        child = Child(*command, prefix=prefix, others=self._children)
        self._children.append(child)
        return child

    def store(self, folder: object, towers: Iterable[tuple[str, str]], **options: Any) -> Child:
        """A store that is in the mesh when this returns."""
        child = self.node("store", towers, str(folder), **options)
        child.says("store")
        return child

    def node(
        self,
        kind: str,
        towers: Iterable[tuple[str, str]],
        *arguments: str,
        prefix: Sequence[str] = (),
        **options: object,
    ) -> Child:
        """A child of this module: producer, consumer or store."""
        command = [__file__, kind, *arguments]
        for pair in towers:
            command += ["--tower", *pair]
        for name, value in options.items():
            command += [f"--{name}", *(value if isinstance(value, list) else [str(value)])]
        return self.start(*command, prefix=prefix)

    def tower(self, publish_to: str, subscribe_from: str, prefix: Sequence[str] = ()) -> Child:
        child = self.start(
            "-m", "dafka.cli", "tower", "--sub", publish_to, "--pub", subscribe_from, prefix=prefix
        )
        child.says("tower:")
        return child

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for child in self._children:
            child.end(signal.SIGKILL)


def _produce(options: argparse.Namespace, mesh: dict[str, object]) -> None:
    from dafka import Producer

    producer = Producer(options.name, **mesh)
    print("producer", producer.address, flush=True)
    for number in range(options.count):
        producer.send(b"%d" % number)
        if number % 10 == 9:
            time.sleep(options.pause)
            print("acknowledged", number + 1 - producer.unacknowledged, flush=True)
    while producer.unacknowledged:
        print("acknowledged", options.count - producer.unacknowledged, flush=True)
        time.sleep(0.05)
    print("acknowledged", options.count, flush=True)
    print("flushed", options.count, flush=True)
    if options.stay:
        signal.pause()


def _consume(options: argparse.Namespace, mesh: dict[str, object]) -> None:
    from dafka import Consumer

    start = dict(zip(options.start[::2], map(int, options.start[1::2]), strict=True))
    with Consumer([options.name], offset_reset="earliest", start=start, **mesh) as consumer:
        while True:
            for record in consumer.poll(1.0):
                print("record", record.partition, record.sequence, record.value.decode().rstrip())
            sys.stdout.flush()


def _store(options: argparse.Namespace, mesh: dict[str, object]) -> None:
    from dafka import Store

    with Store(options.name, **mesh) as store:
        print("store", store.address, flush=True)
        signal.sigwait({signal.SIGTERM})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["producer", "consumer", "store"])
    parser.add_argument("name")
    parser.add_argument("--tower", nargs=2, action="append")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--stay", type=int, default=0)
    parser.add_argument("--start", nargs="*", default=[])
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--timeout", type=float, default=TIMEOUT)
    options = parser.parse_args()
    if options.kind == "store":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    mesh = {"tower": [tuple(pair) for pair in options.tower], "bind": options.bind, **MESH}
    mesh["beacon_timeout"] = options.timeout
    mesh["transport"] = os.environ.get("DAFKA_TEST_TRANSPORT")
    {"producer": _produce, "consumer": _consume, "store": _store}[options.kind](options, mesh)


if __name__ == "__main__":
    main()
