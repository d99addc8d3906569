"""Nodes as processes in a ring with chords, which are killed and started again while others publish."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .network import Network

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests"))  # for a run as a program

import forking  # noqa: E402 - needs the path

NODE = Path(__file__).with_name("node.py")
WAIT = 60.0  # seconds until those who live hear each other again


class Node:
    """A process. ``heard`` counts the lines that it has printed."""

    def __init__(self, number: int, address: str, peers: list[str], network: Network | None) -> None:
        self.number = number
        self.heard: Counter[str] = Counter()
        command = [sys.executable, str(NODE), str(number), address, *peers]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process: subprocess.Popen[str] = (
            forking.Popen(command, env=environment, **pipes)
            if network is None
            else network.start(number, command, env=environment, **pipes)
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def publish(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> None:
        """As a user ends it: its input ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._end()

    def _end(self) -> None:
        self.process.wait(WAIT)
        self._reading.join(WAIT)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.heard[line.strip()] += 1


class Ring:
    """``size`` nodes; each connects to the one before, and some to one across. They are all on this machine,
    or each has its place in a ``network``."""

    def __init__(self, size: int, seed: int, network: Network | None = None) -> None:
        self.network = network
        self.chance = random.Random(seed)
        self.size = size
        self.nodes: dict[int, Node] = {}
        self.addresses: dict[int, str] = {}
        self.published = 0
        for number in range(size):
            self._start(number)
        self._join_ends()

    def _start(self, number: int) -> None:
        peers = [self.addresses[one] for one in self._neighbours(number) if one in self.addresses]
        host = "127.0.0.1" if self.network is None else self.network.host(number + 1)
        node = Node(number + 1, self.addresses.get(number, f"{host}:0"), peers, self.network)
        self.nodes[number], self.addresses[number] = node, node.address

    def _neighbours(self, number: int) -> list[int]:
        across = [(number + self.size // 2) % self.size] if number % 3 == 0 else []
        return [(number - 1) % self.size, (number + 1) % self.size, *across]

    def _join_ends(self) -> None:
        """The first one was started before there was a last one."""
        self.restart(0)

    def restart(self, number: int) -> None:
        self.nodes.pop(number).kill()
        self._start(number)

    def check(self) -> None:
        """Everybody who lives gets what everybody publishes, once, as soon as the paths are there again."""
        ends = time.monotonic() + WAIT
        while True:
            self.published += 1
            texts = {number: f"{self.published} of {number}" for number in self.nodes}
            for number, node in self.nodes.items():
                node.publish(texts[number])
            late = time.monotonic() + 3.0
            while time.monotonic() < late and self._missing(texts):
                time.sleep(0.01)
            if not self._missing(texts):
                break
            assert time.monotonic() < ends, f"never heard: {self._missing(texts)[:5]}"
        for number, node in self.nodes.items():
            twice = [text for text, count in node.heard.items() if count > 1]
            assert not twice, f"node {number} gets {twice[:3]} twice"

    def _missing(self, texts: dict[int, str]) -> list[tuple[int, str]]:
        return [
            (number, text)
            for number, node in self.nodes.items()
            for publisher, text in texts.items()
            if publisher != number and not node.heard[text]
        ]

    def some_die(self, count: int) -> None:
        """Kill some at the same moment, see that the others go on, and start them again."""
        dead = self.chance.sample(sorted(self.nodes), count)
        for number in dead:
            self.nodes.pop(number).kill()
        if count == 1:
            self.check()  # the ring is whole without any one of its nodes
        for number in dead:
            self._start(number)

    def close(self) -> None:
        for node in self.nodes.values():
            node.kill()


def run(size: int, rounds: int, seed: int, loss: float = 0) -> None:
    """``loss``: of the packets between them, 0 to 1; then it takes namespaces, see :mod:`.network`."""
    with ExitStack() as opened:
        network = Network(loss, seed) if loss else None
        if network is not None:
            opened.callback(network.close)
        ring = Ring(size, seed, network)
        opened.callback(ring.close)
        ring.check()
        for number in range(rounds):
            ring.some_die(1 if number % 2 == 0 else min(3, size // 2))
            ring.check()
        assert network is None or network.lost
