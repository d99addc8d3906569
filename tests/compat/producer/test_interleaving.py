"""Between any two instructions of ``send`` something else happens: another thread sends, the hub takes what
is there, Ctrl-C is pressed. Each place is tried, so nothing here depends on chance.

What happens is done by the sending thread itself, from its trace function, wherever the locks are free: where
they are not, another thread would wait until they are.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from types import CodeType
from typing import Any

import pytest

from compat.kafka import KafkaProducer
from compat.kafka.errors import IllegalStateError
from compat.kafka.producer import _accumulator, _batches, kafka
from compat.kafka.producer._accumulator import RecordAccumulator
from compat.kafka.producer._batches import Batch, PartitionQueue
from compat.kafka.producer._topics import Topic
from compat.kafka.structs import TopicPartition
from dafka.protocol.batch_reader import decode_batch
from dafka.testing import TestBroker

TRACED = {module.__file__ for module in (kafka, _batches, _accumulator)}
VALUE = 40  # octets
ROOM = 3 * (VALUE + 11)  # for three records


class Place:
    """Does something before one instruction, of all that the producer's own code comes to in this thread."""

    def __init__(
        self, number: int, what: Callable[[], object], only_where_signals_are_seen: bool = False
    ) -> None:
        self.reached = False
        self._left = number
        self._what = what
        self._signals = only_where_signals_are_seen

    def __enter__(self) -> Place:
        # Python 3.12 traces instructions only if some frame wanted that before settrace().
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: Any, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not (self._signals and frame.f_lasti not in _behind_calls(frame.f_code)):
            self._left -= 1
            if self._left < 0 and not self.reached:
                self.reached = True
                self._what()
        return self._trace


_known: dict[CodeType, set[int]] = {}


def _behind_calls(code: CodeType) -> set[int]:
    """Where Python looks for signals: behind calls, and at the beginning."""
    if code not in _known:
        before, known = "RESUME", set()
        for instruction in dis.get_instructions(code):
            if before.startswith("CALL") or before == "RESUME":
                known.add(instruction.offset)
            if instruction.opname != "CACHE":
                before = instruction.opname
        _known[code] = known
    return _known[code]


class Hub:
    """Plays the sender: takes batches, and has them acknowledged at once."""

    def __init__(self, accumulator: RecordAccumulator, queue: PartitionQueue) -> None:
        self._accumulator = accumulator
        self._queue = queue
        self.taken: dict[Batch, list[bytes | None]] = {}

    def take(self) -> None:
        queue = self._queue
        if not queue.sealed:
            sealed = queue.seal_open()
            if sealed is not None:
                self._accumulator.pool.take(sealed)
        while (batch := queue.take_sealed()) is not None:
            assert batch not in self.taken and batch.content
            self.taken[batch] = decode_batch(batch.content).values
            batch.resolve(0, -1, None)


@pytest.fixture
def alone(
    new_producer: Callable[..., KafkaProducer], monkeypatch: pytest.MonkeyPatch
) -> Iterator[KafkaProducer]:
    """A producer without its sender."""
    with monkeypatch.context() as patched:
        patched.setattr(RecordAccumulator, "serve", lambda self, sender: None)
        producer = new_producer()
    yield producer
    producer._topics.known.clear()


@pytest.mark.parametrize("encoded_by_both", [False, True])
@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize(
    "meanwhile", ["one", "three", "take", "take and one", "one and take", "four and take", "take and close"]
)
def test_each_record_is_where_its_future_says(
    alone: KafkaProducer, monkeypatch: pytest.MonkeyPatch, before: int, meanwhile: str, encoded_by_both: bool
) -> None:
    monkeypatch.setattr(_batches, "ENCODING_SECONDS", 0.0 if encoded_by_both else 60.0)
    place, reached = 0, True
    while reached:
        reached = sent_while(alone, before, meanwhile, place)
        place += 1
    assert place > 100


def sent_while(producer: KafkaProducer, before: int, meanwhile: str, place: int) -> bool:
    """Send a record behind ``before`` others in its batch, and do something meanwhile; whether the place
    exists."""
    accumulator = producer._accumulator
    queue = PartitionQueue(
        producer._client.hub, TopicPartition("t", 0), ROOM + _batches.BATCH_HEADER, None, accumulator
    )
    producer._topics.known["t"] = Topic([queue])
    hub, sent = Hub(accumulator, queue), list[tuple[bytes, Any]]()

    def send(count: int) -> None:
        for _ in range(count):
            place = len(sent)
            value = b"%d" % place + b"-" * (VALUE - 1)
            sent.append((value, None))
            with suppress(IllegalStateError):  # closed
                sent[place] = value, producer.send("t", value)

    def happen() -> None:
        if queue.lock.locked() or accumulator.pool._lock.locked():
            return
        for what in meanwhile.split(" and "):
            if what == "take":
                hub.take()
            elif what == "close":
                queue.close_if_empty()
            else:
                send({"one": 1, "three": 3, "four": 4}[what])

    send(before)
    with Place(place, happen) as at:
        send(1)
    for _ in range(3):
        hub.take()
    found = list(chain.from_iterable(hub.taken.values()))
    accepted = [(value, future) for value, future in sent if future is not None]
    assert sorted(found) == sorted(value for value, _ in accepted)
    for value, future in accepted:
        assert hub.taken[future._produce_future][future.args[0]] == value
    assert not accumulator.incomplete and accumulator.pool.under_way == 0
    return at.reached


@pytest.mark.parametrize("before", range(4))
def test_nothing_is_lost_and_nothing_waits_for_ever_wherever_ctrl_c_is_pressed(
    broker: TestBroker, new_producer: Callable[..., KafkaProducer], before: int
) -> None:
    linger = 60_000 if before else 0
    producer = new_producer(batch_size=ROOM + _batches.BATCH_HEADER, linger_ms=linger)
    producer.partitions_for("t")
    place, reached, sent = 0, True, list[bytes]()
    while reached:
        values = [b"%d %d" % (place, number) + b"-" * (VALUE - 6) for number in range(before + 2)]
        futures = [producer.send("t", value) for value in values[:before]]
        interrupted = Place(place, interrupt, only_where_signals_are_seen=True)
        try:
            with interrupted:
                producer.send("t", values[before])
        except KeyboardInterrupt:
            pass
        futures.append(producer.send("t", values[-1]))
        if before:
            producer.flush(60)
        for future in futures:
            future.get(10)
        reached = interrupted.reached
        sent += values
        place += 1
    assert place > 10
    found = [record.value for record in broker.records("t")]
    assert len(set(found)) == len(found)
    assert [value for value in sent if value in set(found)] == found
    not_sure = {value for value in sent if value.split(b" ")[1].startswith(b"%d-" % before)}
    assert set(sent) - set(found) <= not_sure


def interrupt() -> None:
    raise KeyboardInterrupt
