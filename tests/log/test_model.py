"""After random operations a log holds the same as a few dicts and lists."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from log.messages import batch

from dafka.log import AppendError, Log, LogWriteError, StoredBatches, compact, compaction, reader, storage
from dafka.log.limits import COMPACTION_GAP, FILE_BYTES
from dafka.log.values import ValueDisk
from dafka.log.verify import verify
from dafka.protocol.batch import check_batch
from dafka.protocol.batch_reader import decode_batch

NUMBERS = st.integers(0, 5)  # partitions; the odd ones hold record batches
SIZES = st.sampled_from((0, 1, 100, 1_000, 9_000))
APPENDS = st.lists(st.tuples(NUMBERS, st.integers(1, 20), SIZES, st.sampled_from((0, 0, 0, 7))), max_size=6)
KEYS = st.sampled_from(("a", "b", "ab", "b\udc80"))
VALUES = st.dictionaries(
    st.tuples(KEYS, KEYS), st.none() | st.integers() | st.text() | st.binary(), max_size=4
)


class Model:
    """A partition as a list of (sequence, base offset, next offset, timestamp, content)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.clear()

    def clear(self) -> None:
        self.rows: list[tuple[int, int, int, int, bytes]] = []
        self.written = False
        self.next = self.next_offset = 0
        self.floor = self.floor_offset = 0

    @property
    def first(self) -> tuple[int, int]:
        """The first sequence and offset."""
        if not self.rows:
            return self.next, self.next_offset
        return max(self.floor, self.rows[0][0]), self.floor_offset or self.rows[0][1]

    def trim(self, sequence: int, offset: int) -> None:
        """Drop messages below the sequence and records below the offset."""
        first = self.first[1]
        if self.number % 2 == 0:
            sequence = offset = max(sequence, offset)
        for row in self.rows:
            if row[0] >= sequence and row[2] > offset:
                break
            self.floor, self.floor_offset = row[0] + 1, row[2]
        self.rows = [row for row in self.rows if row[0] >= sequence and row[2] > offset]
        if self.rows:
            self.floor_offset = max(first, self.floor_offset, offset)

    def records(self) -> Iterator[tuple[int, int]]:
        """(offset, timestamp) of each record."""
        for _, base, _, time, content in self.rows:
            columns = decode_batch(content) if self.number % 2 else None
            pairs = zip(columns.offsets, columns.timestamps, strict=True) if columns else [(base, time)]
            yield from (pair for pair in pairs if pair[0] >= self.floor_offset)

    def extended(self, count: int, size: int, gap: int, now: int) -> list[bytes]:
        """Add ``count`` messages behind ``gap`` missing ones."""
        contents = []
        for sequence in range(self.next + gap, self.next + gap + count):
            if self.number % 2:
                base = self.next_offset + gap
                times = [(sequence * 7919) % 100 + n for n in range(1 + sequence % 3)]
                content = batch(base, *times)
                self.rows.append((sequence, base, base + len(times), max(times), content))
            else:
                content = b"%d" % sequence + bytes(size)
                self.rows.append((sequence, sequence, sequence + 1, now, content))
            contents.append(content)
            self.written = True
            self.next, self.next_offset = self.rows[-1][0] + 1, self.rows[-1][2]
        return contents


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.now = 1000
        self.models = [Model(number) for number in range(6)]
        self.tables: dict[tuple[str, str], Any] = {}
        self.log: Log | None = None
        self.files = patch.dict(storage._FILES_FROM)
        self.files.start()
        self.gaps = patch.object(compaction, "COMPACTION_GAP")
        self.gaps.start()
        self.sent_from = patch.object(reader, "FILE_BYTES")
        self.sent_from.start()
        self.sending: list[tuple[list[bytes | StoredBatches], bytes]] = []

    def teardown(self) -> None:
        try:
            if self.log is not None:
                self.log.close()
                *_, seen = verify(self.folder)
                assert seen.damages == []
            self.send_the_rest()
            assert StoredBatches.opened == 0
        finally:
            self.files.stop()
            self.gaps.stop()
            self.sent_from.stop()
            shutil.rmtree(self.folder)

    @initialize(
        tail_bytes=st.sampled_from((0, 3_000, 2**23)),
        file_bytes=st.sampled_from((200, FILE_BYTES)),
        gap=st.sampled_from((1, 3, COMPACTION_GAP)),
    )
    def begin(self, tail_bytes: int, file_bytes: int, gap: int) -> None:
        storage._FILES_FROM["process"] = reader.FILE_BYTES = file_bytes
        compaction.COMPACTION_GAP = self.gap = gap
        self.open(tail_bytes)

    def open(self, tail_bytes: int) -> None:
        self.tail_bytes = tail_bytes
        self.log = Log(self.folder, tail_bytes=tail_bytes, clock=lambda: self.now / 1000)

    @rule(tail_bytes=st.sampled_from((0, 3_000, 2**23)))
    def reopen(self, tail_bytes: int) -> None:
        assert self.log is not None
        self.log.close()
        self.open(tail_bytes)

    @rule(seconds=st.integers(-5, 50))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(appends=APPENDS, values=VALUES, steps=st.booleans())
    def write(self, appends: list[tuple[int, int, int, int]], values: dict[Any, Any], steps: bool) -> None:
        assert self.log is not None
        entries: list[Any] = []
        for number, count, size, gap in appends:
            partition = self.partition(number)
            first = self.models[number].next + gap
            contents = self.models[number].extended(count, size, gap, self.now)
            entries.append((partition, contents, first) if gap else (partition, contents))
        if steps:
            round_ = self.log.begin(entries, values)
            round_.commit()
            round_.finish()
        else:
            self.log.write(entries, values)
        self.tables.update(values)

    @rule(number=NUMBERS, count=st.integers(1, 40), size=st.sampled_from((0, 50)))
    def write_one_by_one(self, number: int, count: int, size: int) -> None:
        assert self.log is not None
        for _ in range(count):
            contents = self.models[number].extended(1, size, 0, self.now)
            self.log.write([(self.partition(number), contents)])

    @rule(number=NUMBERS, values=VALUES)
    def fail_to_write(self, number: int, values: dict[Any, Any]) -> None:
        assert self.log is not None
        model = self.models[number]
        wrong: Any = (self.partition(number), [b"a"], model.next - 1)
        if model.next:
            with pytest.raises(AppendError):
                self.log.write([(self.partition(0), [b"lost"]), wrong], values)
        round_ = self.log.begin([(self.partition(2), [b"lost"])], values)
        with pytest.raises(LogWriteError):
            self.log.begin([])
        round_.finish()

    @rule(number=NUMBERS, checkpoint=st.booleans())
    def fill_the_disk(self, number: int, checkpoint: bool) -> None:
        """A round deletes what it replaces before it cannot store the new."""
        assert self.log is not None
        full = OSError(errno.ENOSPC, "No space left on device")
        with patch.object(ValueDisk, "store", side_effect=full):
            with suppress(LogWriteError):  # if there is something to compact
                list(compact(self.log, self.partition(number)))
            with pytest.raises(LogWriteError):
                self.log.write([], {("a", "a"): 1})
        if checkpoint:
            self.log.space.checkpoint()

    @rule(number=NUMBERS, data=st.data(), count=st.integers(0, 50), max_bytes=st.integers(0, 20_000))
    def read(self, number: int, data: Any, count: int, max_bytes: int) -> None:
        assert self.log is not None
        model = self.models[number]
        sequence = data.draw(st.integers(0, model.next + 1))
        first, contents = self.log.read(self.partition(number), sequence, count=count, max_bytes=max_bytes)
        rows = [row for row in model.rows if row[0] >= sequence]
        expected: list[bytes] = []
        for row in rows[:count]:
            gap = bool(expected) and row[0] != rows[0][0] + len(expected)
            if gap or (expected and sum(map(len, expected)) + len(row[4]) > max_bytes):
                break
            expected.append(row[4])
        assert contents == expected
        assert first == (rows[0][0] if expected else sequence)

    @rule(number=NUMBERS, data=st.data(), by_offset=st.booleans())
    def trim(self, number: int, data: Any, by_offset: bool) -> None:
        assert self.log is not None
        model = self.models[number]
        if by_offset:
            offset = data.draw(st.integers(0, model.next_offset + 2))
            self.log.trim(self.partition(number), before_offset=offset)
            model.trim(0, offset)
        else:
            sequence = data.draw(st.integers(0, model.next + 2))
            self.log.trim(self.partition(number), before_sequence=sequence)
            model.trim(sequence, 0)

    @rule(number=NUMBERS)
    def drop(self, number: int) -> None:
        assert self.log is not None
        partition = self.partition(number)
        self.log.drop(partition)
        assert partition.dropped == self.models[number].written
        self.models[number].clear()

    @rule(whole=st.booleans())
    def give_space_back(self, whole: bool) -> None:
        assert self.log is not None
        if whole:
            self.log.space.tidy()
            assert self.log.space.garbage_bytes == 0
        else:
            self.log.write([], collect_bytes=5_000)

    @rule(number=st.sampled_from((1, 3, 5)), steps=st.sampled_from((1, 5, 10**6)), data=st.data())
    def compact(self, number: int, steps: int, data: Any) -> None:
        """All records have one key: of those before the last stored value, the newest stays."""
        assert self.log is not None
        model, partition = self.models[number], self.partition(number)
        for _ in islice(compact(self.log, partition, max_keys=data.draw(st.integers(1, 3))), steps):
            pass
        before, kept = model.rows, list[tuple[int, int, int, int, bytes]]()
        by_base = {row[1]: row for row in before}
        for base, time, content in self.log.read_offsets(partition, 0, max_bytes=2**40):
            sequence, old, end, _, was = by_base[base]
            header, columns = check_batch(content), decode_batch(content)
            assert (header.base_offset, header.next_offset, base) == (old, end, old)
            originals = decode_batch(was)
            values = dict(zip(originals.offsets, originals.values, strict=True))
            for offset, value in zip(columns.offsets, columns.values, strict=True):
                assert values[offset] == value
            kept.append((sequence, base, end, time, content))
        assert len(before) - len(kept) == 0 or len(before) - len(kept) >= self.gap
        assert kept[:1] == [] == before or kept[0][:3] == before[0][:3]
        if kept:
            assert decode_batch(kept[-1][4]).offsets[-1:] == [model.next_offset - 1]
        model.rows = kept

    @rule(number=NUMBERS, data=st.data(), max_bytes=st.integers(0, 20_000))
    def read_offsets(self, number: int, data: Any, max_bytes: int) -> None:
        assert self.log is not None
        model = self.models[number]
        offset = data.draw(st.integers(0, model.next_offset + 1))
        found = self.log.read_offsets(self.partition(number), offset, max_bytes=max_bytes)
        expected: list[tuple[int, int, bytes]] = []
        for _, base, end, time, content in model.rows:
            if end <= offset:
                continue
            if expected and sum(len(row[2]) for row in expected) + len(content) > max_bytes:
                break
            expected.append((base, time, content))
        assert found == expected

    @rule(number=st.sampled_from((1, 3, 5)), data=st.data(), max_bytes=st.sampled_from((0, 300, 20_000)))
    def read_stored(self, number: int, data: Any, max_bytes: int) -> None:
        """What it gives is sent later, whatever has become of the log by then."""
        assert self.log is not None
        model = self.models[number]
        offset = data.draw(st.integers(0, model.next_offset + 1))
        end = data.draw(st.integers(offset, model.next_offset + 1) | st.just(2**62))
        found, behind = self.log.read_stored(self.partition(number), offset, end=end, max_bytes=max_bytes)
        expected: list[bytes] = []
        expected_behind = offset
        for _, base, next_offset, _, content in model.rows:
            if next_offset <= offset:
                continue
            if base >= end or (expected and sum(map(len, expected)) + len(content) > max_bytes):
                break
            expected.append(content)
            expected_behind = next_offset
        assert sum(map(len, found)) == sum(map(len, expected))
        if expected:
            assert behind == expected_behind
        self.sending.append((found, b"".join(expected)))

    @rule()
    def send_the_rest(self) -> None:
        for found, expected in self.sending:
            octets = [run.read() if isinstance(run, StoredBatches) else run for run in found]
            assert b"".join(octets) == expected
            for run in found:
                if isinstance(run, StoredBatches):
                    run.close()
        self.sending.clear()

    @rule(number=NUMBERS, data=st.data())
    def find_a_timestamp(self, number: int, data: Any) -> None:
        assert self.log is not None
        model = self.models[number]
        wanted = data.draw(st.sampled_from(sorted({row[3] for row in model.rows} | {0, 10**9})))
        found = self.log.offset_for_timestamp(self.partition(number), wanted)
        assert found == next((record for record in model.records() if record[1] >= wanted), None)

    @invariant()
    def what_is_known_without_reading_is_right(self) -> None:
        if self.log is None:
            return
        written = [model for model in self.models if model.written]
        assert len(self.log.partitions()) == len(written)
        for model in written:
            partition = self.partition(model.number)
            assert partition.kind == ("batch" if model.number % 2 else "raw")
            assert (partition.first_sequence, partition.first_offset) == model.first
            assert (partition.next_sequence, partition.next_offset) == (model.next, model.next_offset)
        for table in ("a", "b", "ab", "b\udc80"):
            expected = {key: value for (of, key), value in self.tables.items() if of == table}
            stored = {key: value for key, value in expected.items() if value is not None}
            assert list(self.log.table(table).items()) == sorted(stored.items())

    def partition(self, number: int) -> Any:
        assert self.log is not None
        return self.log.partition(b"topic %d" % (number % 3), b"%032d" % number)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
