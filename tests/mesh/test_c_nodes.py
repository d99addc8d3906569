"""C nodes and nodes of this project in one mesh, in every mix; producers, consumers and stores are killed.

For those who have built libdafka: DAFKA_TEST_LIBDAFKA is the folder with its programs. The answers of a C
producer to a FETCH have the contents of other records, which C nodes take. So a store is killed only where
the producer is ours, and a C consumer too.

A C consumer that has nothing of a partition asks for its records once, when it first hears of a head: it
takes no later head for news, only a record. If nobody hears that FETCH, because the others are still
connecting to it, or the store is about to write the record, it stands still beside a producer that says
nothing more; so it does among C nodes alone. So one that has nothing for long is killed, and another one
takes its place.

C nodes bind the first port that is free, and one that has died is connected to again for some seconds. So the
node that takes its port, maybe one of another test, is heard in its mesh. Each mesh has a topic of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from ports import free_port
from timing import until

PROGRAMS = os.environ.get("DAFKA_TEST_LIBDAFKA", "")
COUNT = 3000
SILENT_SECONDS = 10.0
CONSUMERS = 5
DOOMED = 200
C_LEAVES_SECONDS = 10.0
C, OURS = "C", "ours"
ACKNOWLEDGED = re.compile(r"Acked \S+ (\w+)|out: Ack\(partition=b'(\w+)'")

pytestmark = [
    pytest.mark.skipif(
        not PROGRAMS or shutil.which("stdbuf") is None,
        reason="DAFKA_TEST_LIBDAFKA is not the folder with libdafka's programs",
    ),
    pytest.mark.timeout(240),
]


class Node:
    """A process that is given lines, and what it has printed."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.rstrip("\n") for line in self.process.stdout)

    def say(self, lines: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(lines)
        self.process.stdin.flush()

    def end(self, number: int = signal.SIGTERM) -> None:
        assert self.process.stdin is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(60)
        self._reader.join(60)

    def values(self) -> list[int]:
        """What a consumer has got of the producer that lives: the last word of each line."""
        return [number for number in self._numbers() if number >= 0]

    def values_of_the_dead(self) -> list[int]:
        """And of the one that was killed, which says -1, -2 ..."""
        return [-number for number in self._numbers() if number < 0]

    def _numbers(self) -> list[int]:
        return [int(line.split()[-1]) for line in list(self.lines)]


class Mesh:
    """Nodes of both kinds around one tower."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._topic = f"hello-{uuid.uuid4().hex}"
        self._tower = [f"--{side}=tcp://127.0.0.1:{free_port()}" for side in ("sub", "pub")]
        self._nodes: list[Node] = []

    def start(self, kind: str, c_program: str, *arguments: str) -> Node:
        mesh = [word for option in self._tower for word in option.split("=", 1)]
        if kind == C:
            program, *more = c_program.split()
            # The options of the C programs come first, and their output is flushed for each line.
            names = [word for word in arguments if not word.startswith("--") and word not in NOT_FOR_C]
            command = ["stdbuf", "-oL", str(Path(PROGRAMS).absolute() / program), *mesh, *names[1:], *more]
        else:
            bound = [] if arguments[0] == "tower" else ["--bind", "127.0.0.1"]
            command = [sys.executable, "-m", "dafka.cli", *arguments, *mesh, *bound]
        node = Node(self._folder, command)
        self._nodes.append(node)
        return node

    def tower(self, kind: str) -> Node:
        return self.start(kind, "dafka_towerd", "tower")

    def store(self, kind: str) -> Node:
        """A store; one of ours is running, which takes a while on a busy machine. C nodes are at once."""
        store = self.start(kind, "dafka_stored --verbose", "store", "storedb", "--verbose")
        if kind == OURS:
            until(partial(_says, store, "store: "), "the store runs")
        return store

    def producer(self, kind: str) -> Node:
        return self.start(kind, "dafka_console_producer", "produce", self._topic)

    def consumer(self, kind: str) -> Node:
        return self.start(
            kind, "dafka_console_consumer --from-beginning", "consume", self._topic, "--from", "earliest"
        )

    def close(self) -> None:
        for node in self._nodes:
            node.end(signal.SIGKILL)


NOT_FOR_C = {"storedb", "earliest"}


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Mesh]:
    mesh = Mesh(tmp_path)
    yield mesh
    mesh.close()


@pytest.mark.parametrize(("tower", "producer", "store", "consumer"), [*product((OURS, C), repeat=4)])
def test_every_mix_delivers_everything_once_and_in_order(
    mesh: Mesh, tower: str, producer: str, store: str, consumer: str
) -> None:
    mesh.tower(tower)
    storing = mesh.store(store)
    consuming = mesh.consumer(consumer)
    producing = mesh.producer(producer)
    doomed = mesh.producer(producer)
    producing.say("0\n")
    doomed.say("-1\n")
    consuming = _one_that_hears(mesh, consumer, consuming)
    until(lambda: _acknowledged(storing) == 2, "the store has their first records, so it is connected")

    doomed.say("".join(f"{-number}\n" for number in range(2, DOOMED + 1)))
    until(lambda: len(consuming.values_of_the_dead()) == DOOMED, "everything of the other producer arrives")
    assert consuming.values_of_the_dead() == list(range(1, DOOMED + 1))
    doomed.end(signal.SIGKILL)
    producing.say(_lines(1, COUNT // 3))
    _wait_for(consuming, COUNT // 3, "a third arrives")
    if OURS in (producer, consumer):
        consuming.end(signal.SIGKILL)
        consuming = _one_that_hears(mesh, consumer, mesh.consumer(consumer))
    producing.say(_lines(COUNT // 3, COUNT // 2))
    _wait_for(consuming, COUNT // 2, "a consumer that begins anew has all of it")
    _check_dead(consuming)
    if producer == OURS:
        storing.end(signal.SIGKILL)
        producing.say(_lines(COUNT // 2, COUNT - 100))
        storing = mesh.store(store)
    producing.say(_lines(COUNT // 2 if producer == C else COUNT - 100, COUNT))
    _wait_for(consuming, COUNT, "everything arrives")
    assert consuming.values() == list(range(COUNT))
    _check_dead(consuming)

    assert producing.process.stdin is not None
    producing.process.stdin.close()
    if producer == C:
        # With nothing left to send it waits for ever for nodes that were killed: its linger is -1.
        with suppress(subprocess.TimeoutExpired):
            producing.process.wait(C_LEAVES_SECONDS)
        producing.end(signal.SIGKILL)
    else:
        assert producing.process.wait(60) == 0, producing.lines  # the store has acknowledged everything
    late = _one_that_hears(mesh, consumer, mesh.consumer(consumer))
    _wait_for(late, COUNT, "the store has everything")
    assert late.values() == list(range(COUNT))
    _check_dead(late)


def _one_that_hears(mesh: Mesh, kind: str, consuming: Node) -> Node:
    """A consumer that has something of both producers: this one, or another one if it is a C one that stands
    still."""
    for _ in range(CONSUMERS if kind == C else 0):
        began = time.monotonic()
        while not _has_both(consuming) and time.monotonic() < began + SILENT_SECONDS:
            time.sleep(0.005)
        if _has_both(consuming):
            break
        consuming.end(signal.SIGKILL)
        consuming = mesh.consumer(kind)
    until(lambda: _has_both(consuming), lambda: f"something of both arrives: {consuming.lines[-3:]}")
    return consuming


def _has_both(consumer: Node) -> bool:
    return bool(consumer.values() and consumer.values_of_the_dead())


def _check_dead(consumer: Node) -> None:
    """Of the producer that was killed there is what the store had got by then."""
    found = consumer.values_of_the_dead()
    assert found == list(range(1, len(found) + 1))


def _says(node: Node, words: str, times: int = 1) -> bool:
    """Whether a node has printed so many lines with these words."""
    return sum(words in line for line in list(node.lines)) >= times


def _acknowledged(store: Node) -> int:
    """The number of partitions of which it has acknowledged records."""
    found = (ACKNOWLEDGED.search(line) for line in list(store.lines))
    return len({match[1] or match[2] for match in found if match is not None})


def _lines(begin: int, end: int) -> str:
    return "".join(f"{number}\n" for number in range(begin, end))


def _wait_for(consumer: Node, count: int, what: str) -> None:
    """Until it has so many of the producer that lives."""
    until(_has(consumer, count), lambda: f"{what}: {len(consumer.values())} of {count} {consumer.lines[-3:]}")


def _has(consumer: Node, count: int) -> Callable[[], bool]:
    def has() -> bool:
        has_ended = consumer.process.poll() is not None
        if has_ended:
            consumer._reader.join(10)  # what it has said before
        found = len(consumer.values()) >= count
        assert found or not has_ended, consumer.lines[-5:]
        return found

    return has
