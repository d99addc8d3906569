"""Power cuts beside writers and readers that go on when the power is back, by seeds.

scripts/power_cuts --seeds 5000            # seeds 0 to 4999, on every core
scripts/power_cuts --seed 123              # one of them again

Each time some of what was acknowledged is lost, and its offsets are given to other records. Readers come back
sooner or later, with epoch and offset of what they have read last, and then have read what is there. A
producer that repeats its last batch, which it was not answered, has it stored once. Nobody sees a record of
a transaction that was not committed, none stays open, and no group stands behind the end. Octet positions
that were given out name the same records, as far as these are there.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import pytest  # noqa: E402 - needs the path
from broker.clients import MEGABYTE, Client, batch  # noqa: E402
from broker.positions.octets import Octets, size  # noqa: E402
from broker.records.machine import Machine  # noqa: E402
from broker.transactions.transactional import Producer, fetch, offset_of, visible  # noqa: E402
from histories import main  # noqa: E402
from kafka.errors import OutOfOrderSequenceNumberError  # noqa: E402

from dafka import Broker  # noqa: E402
from dafka.broker.interface.broker import EARLIEST, CommittedOffset, FetchFrom  # noqa: E402
from dafka.log.limits import FILE_BYTES  # noqa: E402
from dafka.log.verify import verify  # noqa: E402
from dafka.protocol.batch import read_header, with_producer  # noqa: E402
from dafka.protocol.batch_reader import decode_batch  # noqa: E402

PLACE = ("t", 0)
RUNS = 8  # of the broker, with a power cut behind most of them
STEPS = 12
LOTS = 50 * MEGABYTE

Reader = dict[int, tuple[bytes, int]]
"""What it has read: value and epoch by offset."""


class Repeating:
    """An idempotent producer that does not know whether its last batch was stored."""

    def __init__(self, client: Client) -> None:
        _, self.producer_id, self.epoch = client.call("init_producer_id", None, 60.0)
        self.sequence = 0
        self.last: bytes | None = None

    def send(self, client: Client, value: bytes) -> None:
        self.last = value
        assert self._produce(client, value) is None
        self.sequence += 1

    def repeat(self, client: Client) -> None:
        if self.last is None:
            return
        self.sequence -= 1
        error = self._produce(client, self.last)
        self.sequence += 1
        log: Reader = {}
        read_on(client, log)
        there = [value for value, _ in log.values()].count(self.last)
        if error is None:
            assert there == 1, f"{self.last[:9]!r} is stored {there} times"
        else:
            # Records before it were lost, too, and the broker still knows the producer.
            assert error is OutOfOrderSequenceNumberError
            assert not there
            self.__init__(client)  # type: ignore[misc]

    def _produce(self, client: Client, value: bytes) -> object:
        content = with_producer(batch(value), self.producer_id, self.epoch, self.sequence)
        return client.call("produce", {PLACE: [content]})[PLACE].error


class History:
    """What a seed stands for."""

    def __init__(self, seed: int, machine: Machine) -> None:
        self.chance = random.Random(seed)
        self.machine = machine
        self.readers: list[Reader] = [{}]
        self.committed: set[bytes] = set()  # the values of transactions whose commit was asked for
        self.transactional: set[bytes] = set()
        self.open = False  # whether the producer has left a transaction open
        self.repeating: Repeating | None = None
        self.written = 0
        self.positions: list[tuple[int, bytes, int]] = []  # offset and value, and what was given out for it

    def value(self) -> bytes:
        self.written += 1
        octets = self.chance.choice((0, 0, 0, 1000, FILE_BYTES))
        return b"%d " % self.written + bytes(octets)

    def run_broker(self, last: bool = False) -> None:
        """One run of the broker, from start to stop."""
        with Broker(self.machine.path) as broker:
            client = Client(broker)
            producer = Producer(client)  # which aborts what it has left open
            self.open = False
            self.check(client)
            if self.chance.random() < 0.5:  # otherwise when the lost offsets are given again
                self.check_positions(client)
            if self.repeating is None:
                self.repeating = Repeating(client)
            self.repeating.repeat(client)
            for reader in self.readers:
                if self.chance.random() < 0.3:  # the others come when the lost offsets are given again
                    read_on(client, reader)
            for _ in range(0 if last else self.chance.randrange(STEPS)):
                self.step(client, producer)
            self.everybody_reads(client)
            self.check_positions(client)

    def step(self, client: Client, producer: Producer) -> None:
        chance = self.chance
        action = chance.choice(("plain", "plain", "transaction", "repeating", "group", "reader", "synced"))
        if action == "plain":
            client.produce("t", self.value())
        elif action == "transaction":
            values = [self.value() for _ in range(chance.randrange(1, 4))]
            if self.open:
                producer.init()
            self.transactional.update(values)
            for value in values:
                producer.send(value, PLACE)
            end = chance.choice(("commit", "abort", "open"))
            if end == "commit":
                self.committed.update(values)
                producer.commit()
            elif end == "abort":
                producer.abort()
            self.open = end == "open"
        elif action == "repeating":
            assert self.repeating is not None
            self.repeating.send(client, self.value())
        elif action == "group":
            end = client.fetch("t").high_watermark
            client.call("commit_offsets", "g", {PLACE: CommittedOffset(chance.randrange(end + 1))})
        elif action == "reader":
            self.readers.append(dict(chance.choice(self.readers)))
            read_on(client, self.readers[-1])
        elif chance.random() < 0.3:
            client.core.log.space.checkpoint()
            self.machine.synced()

    def everybody_reads(self, client: Client) -> None:
        log: Reader = {}
        read_on(client, log)
        for reader in self.readers:
            read_on(client, reader)
            assert {at: value for at, (value, _) in reader.items()} == {
                at: value for at, (value, _) in log.items()
            }

    def check_positions(self, client: Client) -> None:
        """Records that are still there have the positions that they had; those behind a lost one are others,
        also where a producer has repeated what it had sent."""
        octets = Octets(client)
        log: Reader = {}
        read_on(client, log)
        offsets = {value: offset for offset, (value, _) in log.items()}
        found, position = [], octets.first
        for value in visible(fetch(client, beginning(client), max_bytes=LOTS)):
            assert value is not None
            found.append((offsets[value], value, position))
            position += size([value])
        assert octets.all() == [[value] for _, value, _ in found]
        for before, now in zip(self.positions, found, strict=False):
            if before[:2] != now[:2]:
                break
            assert before == now
        self.positions = found

    def check(self, client: Client) -> None:
        """What holds when a broker has started and the producer has come back."""
        fetched = fetch(client, beginning(client), max_bytes=LOTS)
        seen = visible(fetched)
        assert not (set(seen) & self.transactional) - self.committed
        assert len(set(seen)) == len(seen)
        assert fetched.last_stable_offset == fetched.high_watermark
        assert (offset_of(client) or 0) <= fetched.high_watermark


def play(seed: int) -> None:
    """Play the history of a seed; AssertionError says what did not hold."""
    with tempfile.TemporaryDirectory(prefix="dafka-test-") as folder, pytest.MonkeyPatch.context() as patch:
        machine = Machine(Path(folder), patch)
        with Broker(machine.path) as broker:
            Client(broker).create("t")
        machine.synced()
        history = History(seed, machine)
        for _ in range(RUNS):
            history.run_broker()
            ends = history.chance.random()
            if ends < 0.3:
                machine.synced()
            elif ends < 0.7:
                machine.power_cut()
            elif ends < 0.9:
                machine.power_cut_of_files(history.chance)
        history.run_broker(last=True)
        *_, seen = verify(str(machine.path))
        assert seen.damages == []


def beginning(client: Client) -> int:
    """Where the log begins: behind its only value if that is lost."""
    offset: int = client.call("list_offsets", {PLACE: EARLIEST})[PLACE].offset
    return offset


def read_on(client: Client, reader: Reader) -> None:
    """Read up to the end; records that the broker reports as lost are read again, or forgotten if nothing is
    there."""
    start = beginning(client)
    for offset in [offset for offset in reader if offset < start]:
        del reader[offset]
    while True:
        position = max(reader, default=start - 1) + 1
        last = reader[position - 1][1] if position - 1 in reader else -1
        wanted = {PLACE: FetchFrom(position, LOTS, last_epoch=last)}
        fetched = client.call("fetch", wanted, max_wait=0, min_bytes=1, max_bytes=LOTS)[PLACE]
        assert fetched.error is None
        if fetched.diverging is not None:
            assert fetched.diverging[1] < position
            for offset in range(fetched.diverging[1], position):
                del reader[offset]
        elif fetched.batches:
            reader.update(unpacked(fetched.batches))
        else:
            return


def unpacked(batches: list[bytes]) -> Reader:
    found: Reader = {}
    for content in batches:
        columns, epoch = decode_batch(content), read_header(content).leader_epoch
        for at, value in zip(columns.offsets, columns.values, strict=True):
            found[at] = value or b"", epoch
    return found


if __name__ == "__main__":
    main("scripts/power_cuts", (__doc__ or "").partition("\n")[0], play, 1000)
