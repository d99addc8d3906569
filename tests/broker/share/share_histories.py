"""Random histories of a share partition beside a model that knows each offset by itself.

Members acquire, acknowledge in every way, renew, lag behind their locks, die and come back. The log has
markers, aborted records, gaps left by compaction and batches of all sizes; it grows, is trimmed, and the
broker restarts from what was stored by then. After each step the state machine has to say of every offset
what the model says. In the end members that live drain the partition, and everything in it is done with.

    scripts/share_groups --seeds 10000      # or --seed 123 for one of them
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import histories  # noqa: E402 - needs the path
from broker.share.taking import acquire  # noqa: E402

from dafka.broker.interface.share import Acknowledged, AcknowledgeType  # noqa: E402
from dafka.broker.share import stored  # noqa: E402
from dafka.broker.share.acknowledgements import InvalidRecordStateError  # noqa: E402
from dafka.broker.share.acquisition import Terms  # noqa: E402
from dafka.broker.share.partition import LogBatch, SharePartition  # noqa: E402
from dafka.broker.share.runs import RecordState  # noqa: E402

AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
STEPS = 120
BATCHES_READ = 4


class Model:
    """What is known of one offset."""

    def __init__(self) -> None:
        self.state = AVAILABLE
        self.count = 0
        self.member = ""  # which has acquired it, or released it and waits until that is on disk
        self.until = 0.0


class World:
    """One history. Raises AssertionError as soon as something does not hold."""

    def __init__(self, seed: int, machine: type[SharePartition] = SharePartition) -> None:
        self.random = random.Random(seed)
        pick = self.random
        self.machine = machine
        self.now = 0.0
        self.terms = Terms(
            lock=pick.choice((5.0, 30.0)),
            deliveries=pick.choice((2, 3, 5, 8)),
            in_flight=pick.choice((5, 20, 1000)),
        )
        self.log: list[LogBatch] = []
        self.log_start = self.log_end = 0
        self.start = pick.choice((0, 0, 7))
        self.partition = machine(self.start)
        self.model: dict[int, Model] = {}
        self.end = self.start
        self.written = self.start  # the start on disk
        self.writing: tuple[int, list[int]] | None = (
            None  # a round: its start, and the released offsets in it
        )
        self.members = [f"m{number}" for number in range(pick.randrange(1, 6))]
        self.rows: list[bytes] = [stored.snapshot(0, self.partition)]
        self.delivered: dict[int, int] = {}
        self.finished: set[int] = set()  # accepted or rejected, and stored
        self.calm = False  # no crashes and no restarts any more

    # -- the log -------------------------------------------------------------------------------------

    def grow(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            first = self.log_end
            if self.random.random() < 0.15:
                first += self.random.randrange(1, 6)  # compaction has left nothing there
            deliver = self.random.random() < 0.8
            size = self.random.choice((1, 1, 2, 5, 12)) if deliver else self.random.choice((1, 4))
            self.log.append(LogBatch(first, first + size - 1, deliver))
            self.log_end = first + size

    def trim(self) -> None:
        if not self.log:
            return
        self.log_start = self.random.choice(self.log).first
        self.log = [batch for batch in self.log if batch.first >= self.log_start]
        self.partition.trim(self.log_start)
        for offset in [offset for offset in self.model if offset < self.log_start]:
            del self.model[offset]
        self.start, self.end = max(self.start, self.log_start), max(self.end, self.log_start)
        self.written = max(self.written, self.log_start)
        self._advance()

    def deliverable(self) -> Iterator[int]:
        for batch in self.log:
            if batch.deliver:
                yield from range(batch.first, batch.last + 1)

    # -- members -------------------------------------------------------------------------------------

    def acquire(self) -> None:
        member = self.random.choice(self.members)
        self._expire()
        self.partition.expire(self.now, self.terms)
        read_from = self.partition.next_offset(self.terms)
        if read_from is None:
            return
        assert self.start <= read_from <= self.end
        batches = [batch for batch in self.log if batch.last >= read_from][:BATCHES_READ]
        records, strict = self.random.choice((1, 3, 10, 500)), self.random.random() < 0.5
        end = self.end
        acquired = acquire(
            self.partition,
            self.now,
            member,
            read_from,
            batches,
            self.terms,
            records=records,
            strict=strict,
            batch_size=self.random.choice((1, 5, 500)),
        )
        self._learn(read_from, batches, acquired)
        before = max(end, read_from) - self.written  # as in Kafka all that are not known to be done with
        records_there = {*self.deliverable(), *self._gaps(read_from, batches)}
        offsets = [offset for first, last, _ in acquired for offset in range(first, last + 1)]
        assert offsets == sorted(set(offsets))
        assert not strict or len(offsets) <= records
        new = 0
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                assert offset in records_there, f"{offset} is no record"
                assert offset not in self.finished, f"{offset} was finished"
                one = self.model[offset]
                assert one.state is AVAILABLE, f"{offset} is {one.state.name} and was acquired again"
                assert not one.member, f"{offset} was acquired again before its release was on disk"
                new += offset >= end
                one.state, one.member, one.until = ACQUIRED, member, self.now + self.terms.lock
                one.count += 1
                assert one.count == count <= max(self.terms.deliveries, 1)
                last_delivery = one.count == self.terms.deliveries > 2
                assert not last_delivery or len(offsets) == 1, "the last delivery is not alone"
        room = self.terms.in_flight - before
        assert not strict or room <= 0 or len(offsets) <= room, "more were acquired than there was room for"
        assert not new or room > 0, "there was no room"
        ends = {batch.last for batch in batches if batch.first <= self.end - 1 <= batch.last}
        assert not new or ends <= {self.end - 1}, "a part of a batch came into flight"
        self._advance()
        if self.calm:
            self.store()

    def _gaps(self, read_from: int, batches: list[LogBatch]) -> Iterator[int]:
        """The offsets without records between batches that are read together."""
        seen = [batch for batch in batches if batch.last >= read_from]
        for before, behind in pairwise(seen):
            yield from range(before.last + 1, behind.first)

    def _learn(self, read_from: int, batches: list[LogBatch], acquired: Any) -> None:
        """The offsets at which the machine has found no records, and the new ones that it has taken."""
        records = set(self.deliverable())
        end = self.partition.end
        taken = {offset for first, last, _ in acquired for offset in range(first, last + 1)}
        for offset in range(self.end, end):
            one = self.model[offset] = Model()
            if offset not in records and offset not in taken:
                one.state = ARCHIVED
        self.end = max(self.end, end)
        # Offsets without a record that were given back are archived when a read begins with them.
        for offset in range(read_from, self.end):
            one_of = self.model.get(offset)
            if one_of is not None and one_of.state is AVAILABLE and offset not in records:
                run = next(iter(self.partition.within(offset, offset)), None)
                if run is None or run[2] is ARCHIVED:
                    one_of.state = ARCHIVED

    def acknowledge(self) -> None:
        member = self.random.choice(self.members)
        held = [o for o, one in self.model.items() if one.state is ACQUIRED and one.member == member]
        if not held:
            return
        begin = self.random.choice(sorted(held))
        size = self.random.choice((1, 2, 5, 40))
        offsets = [o for o in range(begin, begin + size) if o in held]
        ranges: list[tuple[int, int]] = []
        for offset in offsets:
            if ranges and ranges[-1][1] + 1 == offset:
                ranges[-1] = (ranges[-1][0], offset)
            else:
                ranges.append((offset, offset))
        choices = [1, 1, 1, 2, 3, 0, 4] if not self.calm else [1]
        batches = []
        for first, last in ranges:
            if self.random.random() < 0.5:
                types = [self.random.choice(choices)]
            else:
                types = [self.random.choice(choices) for _ in range(first, last + 1)]
            batches.append(Acknowledged(first, last, types))
        late = any(self.model[o].until <= self.now for o in offsets)
        try:
            self.partition.acknowledge(self.now, member, batches, self.terms)
        except InvalidRecordStateError:
            assert late, "an acknowledgement in time was refused"
            return
        assert not late, "an acknowledgement that came too late was taken"
        for first, last, types in batches:
            for offset in range(max(first, self.start), last + 1):
                type_ = types[0] if len(types) == 1 else types[offset - first]
                one = self.model[offset]
                if type_ == AcknowledgeType.RENEW:
                    one.until = self.now + self.terms.lock
                elif type_ == AcknowledgeType.RELEASE:
                    self._give_back(one)
                    one.member = member if one.state is AVAILABLE else ""
                else:
                    one.state = ACKNOWLEDGED if type_ == AcknowledgeType.ACCEPT else ARCHIVED
                    one.member = ""
        if self.random.random() < 0.9 or self.calm:
            self.store()
        self._advance()

    def acknowledge_others(self) -> None:
        """A member that has not acquired a record, or no longer, changes nothing."""
        self._expire()
        self.partition.expire(self.now, self.terms)
        if not self.model:
            return
        offset = self.random.choice(list(self.model))
        one = self.model[offset]
        member = self.random.choice([*self.members, "stranger"])
        if one.state is ACQUIRED and one.member == member:
            return
        try:
            batches = [Acknowledged(offset, offset, [self.random.choice((0, 1, 2, 3, 4))])]
            self.partition.acknowledge(self.now, member, batches, self.terms)
        except InvalidRecordStateError:
            return
        raise AssertionError(f"{member} has acknowledged {offset}, which it does not hold")

    def leave(self) -> None:
        member = self.random.choice(self.members)
        for one in self.model.values():
            if one.state is ACQUIRED and one.member == member:
                self._give_back(one)
        for _ in range(100):  # of very many some are given back at a time
            if not self.partition.release(member, self.terms):
                break
        self._advance()

    def _give_back(self, one: Model) -> None:
        one.state = AVAILABLE if one.count < self.terms.deliveries else ARCHIVED
        one.member = ""

    def wait(self) -> None:
        self.now += self.random.choice((0.5, 2.0, 4.0, 31.0))
        locked = (one.until for one in self.model.values() if one.state is ACQUIRED)
        assert self.partition.wake_at <= min(locked, default=inf)
        if self.random.random() < 0.5:  # otherwise the next call of a member is the first to notice
            self._expire()
            self.partition.expire(self.now, self.terms)
            self._advance()

    def _expire(self) -> None:
        for one in self.model.values():
            if one.state is ACQUIRED and one.until <= self.now:
                self._give_back(one)
        self._advance()

    def _advance(self) -> None:
        while self.start in self.model and self.model[self.start].state.is_final:
            del self.model[self.start]
            self.start += 1

    # -- storing ---------------------------------------------------------------------------------------

    def store(self) -> None:
        """A round is committed: its acknowledgements are final; what it sets free is free then, or later."""
        partition = self.partition
        self.finish_round()
        ranges = partition.take_changes()
        released = [o for o, one in self.model.items() if one.state is AVAILABLE and one.member]
        self.writing = partition.start, released
        if len(self.rows) > 6:
            self.rows = [stored.snapshot(0, partition)]
        else:
            self.rows.append(stored.change(0, partition, ranges))
        assert all(map(stored.is_stored, self.rows))
        self.finished.update(o for o, one in self.model.items() if one.state.is_final)
        if self.random.random() < 0.7 or self.calm:
            self.finish_round()

    def finish_round(self) -> None:
        """What was committed is known to be."""
        if self.writing is None:
            return
        start, released = self.writing
        self.writing = None
        self.partition.written()
        self.written = max(self.written, start)
        for offset in released:
            if offset in self.model:
                self.model[offset].member = ""

    def restart(self) -> None:
        found = stored.restored(self.rows)
        assert found is not None
        partition = self.machine(found.start)
        partition.restore(found.start, found.runs)
        stored_start = partition.start
        partition.trim(self.log_start)
        partition.truncate(self.log_end)
        self.partition = partition
        self.start, self.end = partition.start, partition.end
        # What retention has removed moves the start further over what was done with: that is not on disk.
        self.written, self.writing = min(max(stored_start, self.log_start), self.start), None
        self.model = {}
        for run in partition.runs:
            assert run.state is not ACQUIRED
            for offset in range(run.first, run.last + 1):
                one = self.model[offset] = Model()
                one.state, one.count = run.state, run.count
        for offset in self.finished:
            assert offset not in self.model or self.model[offset].state.is_final, f"{offset} was lost"
            assert offset < self.end, f"{offset} was lost"

    # -- a history -------------------------------------------------------------------------------------

    def run(self) -> None:
        actions = [self.grow, self.acquire, self.acquire, self.acquire, self.acknowledge, self.acknowledge]
        actions += [self.acknowledge_others, self.leave, self.wait, self.wait, self.finish_round]
        for _ in range(STEPS):
            if self.random.random() < 0.01:
                self.trim()
            elif self.random.random() < 0.01:
                self.restart()
            else:
                self.random.choice(actions)()
            self.check()
        self.drain()

    def drain(self) -> None:
        """With members that take and acknowledge everything, the partition becomes empty."""
        self.calm = True
        self.restart()
        for _ in range(20 * (self.log_end + 10)):
            if self.start >= self.log_end:
                break
            self.acquire()
            self.acknowledge()
            self.now += 0.01 if self.random.random() < 0.9 else 31.0
            self._expire()
            self.partition.expire(self.now, self.terms)
            self._advance()
            self.store()
            self.check()
        assert self.start >= self.log_end, f"records from {self.start} on were never finished"

    def check(self) -> None:
        partition = self.partition
        assert (partition.start, partition.end) == (self.start, self.end)
        at = partition.start
        for run in partition.runs:
            assert run.first == at <= run.last
            at = run.last + 1
            for offset in range(run.first, run.last + 1):
                one = self.model[offset]
                said = (run.state, run.count, run.member)
                assert said == (one.state, one.count, one.member), f"{offset}: {said}, {vars(one)}"
                assert run.state is not ACQUIRED or run.until == one.until
        assert at == partition.end
        assert partition.in_flight == sum(1 for one in self.model.values() if not one.state.is_final)
        free = (o for o, one in self.model.items() if one.state is AVAILABLE and not one.member)
        first = min(free, default=None)
        assert first is None or partition.next_offset(self.terms) == first


def play(seed: int) -> None:
    World(seed).run()


if __name__ == "__main__":
    histories.main("scripts/share_groups", "Random histories of share partitions.", play, 10_000)
