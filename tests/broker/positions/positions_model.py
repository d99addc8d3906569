"""A partition with positions next to a model of it: a plain list of records and what each has of octets.

A seed stands for a history: messages of one, two and many frames, records as Kafka's clients write them,
transactions that are committed and aborted, deleted records, retention, a full disk, restarts, kills (also in
the midst of a deletion), and a topic that is deleted and created again. The positions are first asked for
late in some, and between the steps somebody looks or nobody does. Checked by each look:

- Every position that was ever given out names the same record, as long as the record is there.
- Any number of octets from any position on are those of the model, and so are the whole messages.
- So are the messages that a stream has read meanwhile, whatever happened while it waited or read.
- First and end, and offsets and positions in both directions, are what the list says.

The rule of the list: a record has the octets of its message if it is visible; an aborted one has none, and so
has a marker, and a record that was deleted before its transaction had ended.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import Any, NamedTuple

from broker.clients import Client
from broker.positions.octets import Octets
from broker.transactions.transactional import Producer
from kafka.errors import UnknownTopicOrPartitionError

from dafka import Broker
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.broker import EARLIEST, TopicSpec
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.positions import PositionOutOfRangeError
from dafka.log import LogClosedError, LogWriteError
from dafka.protocol import raw
from dafka.protocol.batch import with_producer
from dafka.protocol.batch_writer import encode_batch

TOPIC = "t", 0
OPEN, SEEN, NEVER_SEEN = "open", "seen", "never seen"
LARGE = 9000  # octets of a message that is not merged with others in the log


class Given(NamedTuple):
    """A position that was given out, and the record that it named."""

    offset: int
    octets: bytes
    position: int


class Stream:
    """A green thread that reads all messages from the first one on, while other things happen."""

    def __init__(self, octets: Octets) -> None:
        self.positions = octets.positions
        self.seen: list[tuple[int, list[list[bytes]], int]] = []  # position, messages, position behind
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            self.read()
        except (BrokerStoppedError, UnknownTopicOrPartitionError, LogClosedError):
            pass  # the end
        except Exception as error:
            self.failed = error

    def read(self) -> None:
        position = self.positions.first
        while True:
            try:
                messages, behind = self.positions.messages(position, 700)
            except PositionOutOfRangeError:
                position = self.positions.first  # deleted meanwhile
                continue
            if messages:
                self.seen.append((position, messages, behind))
                position = behind
            else:
                self.positions.wait(60.0)
                self.positions.catch_up()


class Record:
    """A record, or a marker, and what has become of it."""

    def __init__(self, octets: bytes, producer: Producer | None, state: str) -> None:
        self.octets = octets
        self.producer = producer
        self.state = state
        self.gone = False  # deleted before it could be seen


class History:
    """The broker, the model, and the rules by which both go on."""

    def __init__(self, seed: int, folder: str) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.runs = 0
        self.path = os.path.join(folder, "data-0")
        self.open_broker()
        self.begin_topic()

    # -- the broker -----------------------------------------------------------------------------

    def open_broker(self) -> None:
        self.broker = Broker(self.path).start()
        self.client = Client(self.broker)
        self.octets: Octets | None = None
        self.stream: Stream | None = None
        for producer in getattr(self, "producers", ()):
            producer.client = self.client

    def close(self) -> None:
        self.broker.stop()
        if self.stream is not None:
            self.streamed += self.stream.seen
            assert self.stream.failed is None, repr(self.stream.failed)

    @property
    def core(self) -> Any:
        return self.client.core

    def in_hub(self, call: Any, *args: Any) -> Any:
        return self.client.connection.hub.run(call, *args)

    def copy(self) -> None:
        """What a kill would leave at this moment goes into another folder."""
        self.runs += 1
        copied = os.path.join(self.folder, f"data-{self.runs}")
        shutil.copytree(self.path, copied)
        self.copied = copied

    def go_on_in_copy(self) -> None:
        self.close()
        shutil.rmtree(self.path)
        self.path = self.copied
        self.open_broker()

    # -- the model ------------------------------------------------------------------------------

    def begin_topic(self) -> None:
        assert self.client.change("create_topics", {"t": TopicSpec(1)}) == {"t": None}
        self.records: list[Record] = []
        self.start = 0  # the first offset that was not deleted
        self.base: int | None = None  # the offset at which positions begin
        self.given: list[Given] = []
        self.streamed: list[tuple[int, list[list[bytes]], int]] = []
        self.retention = False
        self.producers = [Producer(self.client, name) for name in "ab"]

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def stable(self) -> int:
        starts = (place for place, record in enumerate(self.records) if record.state == OPEN)
        return max(next(starts, self.end), self.start)

    def positions(self) -> list[int]:
        """The position of each offset up to the last stable one, that included."""
        assert self.base is not None
        found = [0]
        for offset in range(self.stable):
            record = self.records[offset]
            seen = offset >= self.base and record.state == SEEN and not record.gone
            found.append(found[-1] + (len(self.records[offset].octets) if seen else 0))
        return found

    # -- what happens ---------------------------------------------------------------------------

    def step(self) -> None:
        rules = {
            self.write: 20, self.write_and_advance: 20, self.write_as_kafka_does: 15,
            self.write_in_transaction: 20, self.end_transaction: 10, self.delete_records: 6,
            self.retain: 4, self.restart: 3, self.kill: 3, self.kill_in_deletion: 3, self.look: 30,
            self.fill_disk: 3, self.recreate: 0.3,
        }  # fmt: skip
        self.chance.choices(list(rules), list(rules.values()))[0]()

    def messages(self) -> list[list[bytes]]:
        chance = self.chance
        return [
            [
                chance.randbytes(chance.choice((0, 1, 5, 5, 254, 255, 300, 300, LARGE)))
                for _ in range(chance.choice((1, 1, 1, 2, 3)))
            ]
            for _ in range(chance.choice((1, 1, 2, 5, 12)))
        ]

    def write(self) -> int:
        messages = self.messages()
        if self.chance.random() < 0.3:  # of one shape: other ways through the code
            messages = [[b"%05d" % number] for number in range(self.chance.randint(8, 40))]
        return self.append(raw.encode_bulk(messages, 1000), messages)

    def append(self, content: bytes, messages: list[list[bytes]]) -> int:
        produced = self.client.call("produce", {TOPIC: [content]})[TOPIC]
        assert (produced.error, produced.base_offset) == (None, self.end)
        self.records += [Record(raw.encode_message(frames), None, SEEN) for frames in messages]
        return int(produced.base_offset)

    def write_and_advance(self) -> None:
        base = self.write()
        if self.octets is None:
            return
        sizes = [len(record.octets) for record in self.records[base:]]
        told = self.octets.call("advance", base, sizes)
        assert told == (self.positions()[base] if self.stable == self.end else None), (told, base)

    def write_as_kafka_does(self) -> None:
        chance, records, messages = self.chance, [], []
        for _ in range(chance.choice((1, 3, 10))):
            key = chance.choice((None, b"", b"key"))
            value = chance.choice((None, b"", b"value", b"\x01\x01x", chance.randbytes(400)))
            headers = chance.choice(((), (("a", b"b"),), ((raw.FRAMES, b"9"),)))
            records.append((1000, key, value, headers))
            messages.append([value or b""] if key is None else [key, value or b""])
        self.append(encode_batch(records, compression=chance.choice((None, "gzip"))), messages)

    def write_in_transaction(self) -> None:
        producer = self.chance.choice(self.producers)
        messages = self.messages()
        assert producer.add(TOPIC) is None
        sequence = producer.sequences.get(TOPIC, 0)
        identity = producer.producer_id, producer.epoch, sequence
        content = with_producer(raw.encode_bulk(messages, 1000), *identity, transactional=True)
        produced = self.client.call("produce", {TOPIC: [content]}, transactional_id=producer.id)[TOPIC]
        assert (produced.error, produced.base_offset) == (None, self.end)
        producer.sequences[TOPIC] = sequence + len(messages)
        self.records += [Record(raw.encode_message(frames), producer, OPEN) for frames in messages]

    def end_transaction(self) -> None:
        producer = self.chance.choice(self.producers)
        self.end_transaction_of(producer, self.chance.random() < 0.6)

    def end_transaction_of(self, producer: Producer, commit: bool) -> None:
        of_it = [record for record in self.records if record.producer is producer]
        if not of_it:
            return
        assert producer.end(commit) is None
        for record in of_it:
            record.producer = None
            if record.state == OPEN:
                record.state = SEEN if commit else NEVER_SEEN
        self.records.append(Record(b"", None, NEVER_SEEN))  # the marker

    def delete_records(self) -> None:
        offset = self.chance.randint(self.start, self.end)
        stable = self.stable
        assert self.client.call("delete_records", {TOPIC: offset})[TOPIC].error is None
        self.deleted(stable)

    def retain(self) -> None:
        stable = self.stable
        if not self.retention:
            self.retention = True
            change = [ConfigChange("retention.bytes", ConfigOperation.SET, "30000")]
            resource = Resource(ResourceType.TOPIC, "t")
            assert self.client.call("alter_configs", {resource: change})[resource].error is None
        cleaner = self.core._log_cleaner._cleaner
        self.in_hub(cleaner._pass, cleaner._retain)
        self.deleted(stable)

    def deleted(self, stable: int) -> None:
        """Records were deleted when the last stable offset was this one."""
        found = self.client.call("list_offsets", {TOPIC: EARLIEST})[TOPIC].offset
        assert found >= self.start
        self.start = found
        for record in self.records[stable:found]:
            record.gone = True

    def restart(self) -> None:
        self.close()
        self.open_broker()

    def kill(self) -> None:
        self.in_hub(self.copy)
        self.go_on_in_copy()

    def kill_in_deletion(self) -> None:
        """The kill comes after one of the commits of a deletion, the first or a later one."""
        writer, wanted = self.core._writer, self.chance.randint(1, 4)
        write, commits = writer._write, []

        def counted(*args: Any) -> None:
            write(*args)
            commits.append(True)
            if len(commits) == wanted:
                self.copy()

        stable = self.stable
        writer._write = counted
        self.chance.choice((self.delete_records_quietly, self.retain_quietly))()
        if len(commits) < wanted:
            self.in_hub(self.copy)
        self.go_on_in_copy()
        self.deleted(stable)

    def delete_records_quietly(self) -> None:
        self.client.call("delete_records", {TOPIC: self.chance.randint(self.start, self.end)})

    def retain_quietly(self) -> None:
        cleaner = self.core._log_cleaner._cleaner
        self.in_hub(cleaner._pass, cleaner._retain)

    def fill_disk(self) -> None:
        """Nothing can be written for a while: nothing is deleted, and everything can be read."""
        storage, stable = self.core.log._storage, self.stable
        commit = storage.commit

        def full(*rows: Any) -> None:
            raise LogWriteError(self.path, "no space")

        storage.commit = full
        try:
            if self.octets is not None:
                self.check()
            self.delete_records_quietly()
            self.retain_quietly()
            if self.octets is not None:
                self.check()
        finally:
            storage.commit = commit
        start = self.start
        self.deleted(stable)
        assert self.start == start

    def recreate(self) -> None:
        assert self.client.change("delete_topics", ["t"]) == {"t": None}
        self.octets = self.stream = None
        self.begin_topic()

    # -- looking --------------------------------------------------------------------------------

    def look(self) -> None:
        if self.octets is None:
            self.octets = Octets(self.client)
            if self.base is None:
                self.base = self.start
            self.stream = Stream(self.octets)
            hub = self.client.connection.hub
            hub.post(lambda stream: hub.spawn(stream.run), self.stream)
        self.check()

    def check(self) -> None:
        """Compare what the broker says with the model, and with all that it has said before."""
        octets, chance, positions = self.octets, self.chance, self.positions()
        assert octets is not None
        assert octets.end == positions[-1], (octets.end, positions[-1])
        first = positions[min(self.start, self.stable)]
        assert octets.first == first, (octets.first, first)
        there = range(self.start, self.stable)
        seen = [offset for offset in there if positions[offset + 1] > positions[offset]]
        whole = b"".join(self.records[offset].octets for offset in seen)
        for _ in range(3):
            position, size = chance.randint(first, positions[-1]), chance.choice((1, 30, 1000, 1 << 40))
            expected = whole[position - first :][:size]
            assert octets.read(position, size) == expected, (position, size)
        for offset in chance.sample(seen, min(len(seen), 3)):
            position = positions[offset]
            assert octets.call("position_of", offset) == position, offset
            assert octets.call("offset_of", chance.randint(position, positions[offset + 1] - 1)) == offset
            self.given.append(Given(offset, self.records[offset].octets, position))
        if there:
            offset = chance.choice(there)
            assert octets.call("position_of", offset) == positions[offset], offset
        self.check_messages(first, positions[-1], whole)
        for given in chance.sample(self.given, min(len(self.given), 5)):
            if given.offset >= self.start:
                assert octets.read(given.position, len(given.octets)) == given.octets, given
                assert octets.call("offset_of", given.position) == given.offset, given

    def check_messages(self, first: int, end: int, whole: bytes) -> None:
        """From any position on, come the whole messages that begin there or behind it."""
        assert self.octets is not None
        pieces, _ = raw.split_messages(whole)
        position = self.chance.randint(first, end)
        begin = first
        while pieces and begin < position:
            begin += len(pieces.pop(0))
        while True:
            size = self.chance.choice((1, 500, 1 << 30))
            messages, behind = self.octets.call("messages", position, size)
            if not messages:
                assert (pieces, behind) == ([], begin)
                return
            octets = b"".join(pieces[: len(messages)])
            assert messages == raw.decode_messages(octets)[0]
            assert len(octets) <= size or len(messages) == 1
            position = begin = begin + len(octets)
            assert behind == begin
            del pieces[: len(messages)]

    def check_streams(self) -> None:
        """Each message that a stream has read has the position of its record."""
        assert self.stream is not None
        positions = self.positions()
        there = {
            positions[offset]: record.octets
            for offset, record in enumerate(self.records[: self.stable])
            if positions[offset + 1] > positions[offset]
        }
        for position, messages, behind in self.streamed + self.stream.seen:
            begin = position
            for message in messages:
                assert there[begin] == raw.encode_message(message), begin
                begin += len(there[begin])
            assert begin == behind

    def finish(self) -> None:
        """End all transactions and look at everything."""
        for producer in self.producers:
            self.end_transaction_of(producer, commit=True)
        self.look()
        assert self.octets is not None
        self.check_streams()
        positions = self.positions()
        for given in self.given:
            assert positions[given.offset] == given.position, given
        for offset in range(self.start, self.end + 1):
            assert self.octets.call("position_of", offset) == positions[offset], offset
        first = self.octets.first
        assert self.octets.read(first) == b"".join(
            record.octets
            for offset, record in enumerate(self.records)
            if offset >= max(self.start, self.base or 0) and record.state == SEEN and not record.gone
        )
