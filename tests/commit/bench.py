"""A log with a writer, for tests that look at single rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

from dafka.commit.writer import Writer
from dafka.hub.hub import get_hub
from dafka.log import Log, LogPartition

EVERYTHING = 2**40


class Bench:
    """A log with a writer in the hub; everything here runs in a green thread of the hub."""

    def __init__(self, folder: Path) -> None:
        self.log = Log(folder)
        self.writer = Writer(get_hub(), self.log)

    def partition(self, name: bytes = b"t") -> LogPartition:
        return self.log.partition(name, b"A" * 32)

    def append(self, partition: LogPartition, *contents: bytes) -> None:
        self.wait(lambda done: self.writer.append(partition, partition.next_sequence, list(contents), done))

    def wait(self, hand_over: Callable[[Any], None]) -> None:
        outcome = gevent.event.AsyncResult()
        hand_over(lambda error: outcome.set_exception(error) if error else outcome.set(None))
        outcome.get(timeout=200)

    def until(self, holds: Callable[[], object]) -> None:
        with gevent.Timeout(100):
            while not holds():
                gevent.sleep(0.005)
