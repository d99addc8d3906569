"""C nodes and nodes of this project in one mesh, in every mix; consumers and stores are killed.

For those who have built libdafka: DAFKA_TEST_LIBDAFKA is the folder with its programs. The answers of a C
producer to a FETCH have the contents of other records, which C nodes take. So a store is killed only where
the producer is ours, and a C consumer too.

A C consumer that has nothing of a partition asks for its records once, when it first hears of a head: it
takes no later head for news, only a record. If nobody hears that FETCH, because the others are still
connecting to it, or the store is about to write the record, it stands still beside a producer that says
nothing more; so it does among C nodes alone. Producers of ours go on talking until it has something.

C nodes bind the first port that is free, and one that has died is connected to again for some seconds. So the
node that takes its port, maybe one of another test, is heard in its mesh. Each mesh has a topic of its own.
"""

from __future__ import annotations

import os
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
CONNECTED_SECONDS = 1.5
SILENT_SECONDS = 2.0
MOST_SAID = 20
C_LEAVES_SECONDS = 10.0
C, OURS = "C", "ours"

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
        """What a consumer has got: the last word of each line."""
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
    talks = producer == OURS and consumer == C
    said = _say_until_heard(producing, consuming, 0, talks)
    _wait_for(consuming, said, "the first record arrives")
    if store == OURS:
        until(partial(_says, storing, "connected to the peer", 2), "the store hears consumer and producer")
        time.sleep(CONNECTED_SECONDS)  # nothing tells when it is subscribed everywhere
    else:
        until(partial(_says, storing, "Acked"), "the store has the first record")

    producing.say(_lines(said, COUNT // 3))
    _wait_for(consuming, COUNT // 3, "a third arrives")
    if OURS in (producer, consumer):
        consuming.end(signal.SIGKILL)
        consuming = mesh.consumer(consumer)
    producing.say(_lines(COUNT // 3, COUNT // 2 - 100))
    said = _say_until_heard(producing, consuming, COUNT // 2 - 100, talks)
    producing.say(_lines(said, COUNT // 2))
    _wait_for(consuming, COUNT // 2, "a consumer that begins anew has all of it")
    if producer == OURS:
        storing.end(signal.SIGKILL)
        producing.say(_lines(COUNT // 2, COUNT - 100))
        storing = mesh.store(store)
    producing.say(_lines(COUNT // 2 if producer == C else COUNT - 100, COUNT))
    _wait_for(consuming, COUNT, "everything arrives")
    assert consuming.values() == list(range(COUNT))

    assert producing.process.stdin is not None
    producing.process.stdin.close()
    if producer == C and consumer == OURS:
        # With nothing left to send it waits for ever for a consumer that was killed: its linger is -1.
        with suppress(subprocess.TimeoutExpired):
            producing.process.wait(C_LEAVES_SECONDS)
        producing.end(signal.SIGKILL)
    else:
        assert producing.process.wait(60) == 0, producing.lines  # the store has acknowledged everything
    late = mesh.consumer(consumer)
    _wait_for(late, COUNT, "the store has everything")
    assert late.values() == list(range(COUNT))


def _say_until_heard(producing: Node, consuming: Node, number: int, talks: bool) -> int:
    """Say this number, and if the producer ``talks`` a further one whenever the consumer is silent for long,
    until it has said anything, MOST_SAID of them at most. The number to be said next."""
    for said in range(number, number + MOST_SAID if talks else number + 1):
        producing.say(f"{said}\n")
        began = time.monotonic()
        while not consuming.lines and time.monotonic() < began + SILENT_SECONDS:
            time.sleep(0.005)
        number = said + 1
        if consuming.lines:
            break
    return number


def _says(node: Node, words: str, times: int = 1) -> bool:
    """Whether a node has printed so many lines with these words."""
    return sum(words in line for line in list(node.lines)) >= times


def _lines(begin: int, end: int) -> str:
    return "".join(f"{number}\n" for number in range(begin, end))


def _wait_for(consumer: Node, count: int, what: str) -> None:
    until(_has(consumer, count), lambda: f"{what}: {len(consumer.lines)} of {count} {consumer.lines[-3:]}")


def _has(consumer: Node, count: int) -> Callable[[], bool]:
    def has() -> bool:
        has_ended = consumer.process.poll() is not None
        if has_ended:
            consumer._reader.join(10)  # what it has said before
        found = len(consumer.lines) >= count
        assert found or not has_ended, consumer.lines[-5:]
        return found

    return has
