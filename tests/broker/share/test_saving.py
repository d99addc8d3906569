"""How changes of a share partition are written: callers wait until they are on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.share.taking import acquire
from kafka.errors import KafkaStorageError

from dafka.broker.interface.share import Acknowledged
from dafka.broker.share.acquisition import Terms
from dafka.broker.share.partition import LogBatch, SharePartition
from dafka.broker.share.states import Saved

ACCEPT = 1


class FakeWriter:
    """A writer that writes when it is told to."""

    def __init__(self) -> None:
        self.rounds: list[Callable[[Exception | None], None]] = []
        self.log = self
        self.path = "folder"

    def put(self, values: Any, done: Callable[[Exception | None], None]) -> None:
        self.rounds.append(done)

    def write(self) -> None:
        self.rounds.pop(0)(None)


def partition() -> SharePartition:
    """A partition with ten records, all acquired by a member."""
    machine = SharePartition(0)
    acquire(machine, 0.0, "m", 0, [LogBatch(0, 9)], Terms(), records=10)
    return machine


def saved_of(machine: SharePartition, writer: Any) -> Saved:
    saved = Saved(writer, "1:g/", [], 0, lambda: machine)
    saved.begin(whole=True)
    writer.write()
    return saved


def acknowledge(machine: SharePartition, offset: int) -> None:
    machine.acknowledge(0.0, "m", [Acknowledged(offset, offset, [ACCEPT])], Terms())


def test_a_write_begun_by_another_is_waited_for() -> None:
    machine, writer = partition(), FakeWriter()
    saved = saved_of(machine, writer)
    acknowledge(machine, 0)
    acknowledge(machine, 1)
    first, second = saved.begin(), saved.begin()  # the first round has both
    assert len(writer.rounds) == 1
    assert first is not None and second is not None
    assert not first.ready() and not second.ready()
    writer.write()
    assert (saved.end(first), saved.end(second), writer.rounds) == (None, None, [])
    assert saved.begin() is None


def test_a_write_abandoned_by_close_is_not_answered_as_done() -> None:
    machine, writer = partition(), FakeWriter()
    saved = saved_of(machine, writer)
    acknowledge(machine, 0)
    saved.close()
    assert saved.end(saved.begin()) is KafkaStorageError
