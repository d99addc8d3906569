"""Write rounds, and what the writer tidies up between them."""

from __future__ import annotations

import itertools
import sqlite3
import time
from pathlib import Path
from typing import Any

import gevent
import pytest
from commit.bench import EVERYTHING, Bench
from timing import until

from dafka.commit import tidying as writer_tidying
from dafka.commit import writer as writer_module
from dafka.commit.items import Item
from dafka.commit.writer import Numbered, OutOfSequenceError
from dafka.hub.hub import get_hub
from dafka.hub.limits import PACE_SECONDS
from dafka.hub.turns import in_later_turn, next_turn
from dafka.log import AppendError, Log, LogClosedError
from dafka.log.limits import CHECKPOINT_BYTES, FILE_BYTES, WAL_BYTES
from dafka.log.table import COMPACTION_TABLE
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch


def test_items_handed_over_at_once_are_committed_in_one_round(in_hub: Any, monkeypatch: Any) -> None:
    def check(bench: Bench) -> None:
        rounds = []
        begin = bench.log.begin
        monkeypatch.setattr(bench.log, "begin", lambda *a, **o: rounds.append(1) or begin(*a, **o))
        order: list[int] = []
        for number in range(50):
            partition = bench.partition(b"%d" % (number % 3))
            first = number // 3
            bench.writer.append(partition, first, [b"x"], lambda error, n=number: order.append(n))
        bench.until(lambda: len(order) == 50)
        assert order == list(range(50))
        assert len(rounds) == 1

    in_hub(check)


def test_small_rounds_one_after_the_other_are_not_all_in_one_turn(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        turns = get_hub().turns
        turns.reset()
        next_turn()
        for number in range(10):
            ends = time.thread_time() + 4 * PACE_SECONDS
            while time.thread_time() < ends:
                pass
            bench.writer.put_and_wait({("table", "key"): number})
        next_turn()
        assert turns.longest_cpu < 12 * PACE_SECONDS  # otherwise all ten of them are in one turn

    in_hub(check)


def test_listeners_are_told_of_many_partitions_in_a_turn_of_their_own_if_the_commit_has_taken_long(
    in_hub: Any, monkeypatch: Any
) -> None:
    def check(bench: Bench) -> None:
        events: list[str] = []
        begin = bench.log.begin

        def slow(*rest: Any, **more: Any) -> Any:
            events.append("begin")
            ends = time.thread_time() + 2 * PACE_SECONDS
            while time.thread_time() < ends:
                pass
            return begin(*rest, **more)

        def noted() -> None:
            events.append("turn")
            next_turn()

        monkeypatch.setattr(bench.log, "begin", slow)
        monkeypatch.setattr(writer_module, "next_turn", noted)
        bench.writer.on_commit(lambda grown: events.append(f"told of {len(grown)}"))
        next_turn()
        for number in range(20):
            bench.writer.append(bench.partition(b"%d" % number), 0, [b"x"], lambda error: None)
        bench.until(lambda: events[-1:] == ["told of 20"])
        assert events[-3:] == ["begin", "turn", "told of 20"]

    in_hub(check)


def test_appends_that_take_long_to_put_together_go_into_several_rounds_and_stay_in_order(
    in_hub: Any, monkeypatch: Any
) -> None:
    def busy(sequence: int, offset: int) -> Numbered:
        ends = time.thread_time() + writer_module.ROUND_SECONDS / 10
        while time.thread_time() < ends:
            pass
        return Numbered(sequence, [b"x"], offset + 1)

    def check(bench: Bench) -> None:
        rounds: list[int] = []
        begin = bench.log.begin

        def counted(chunks: Any, *rest: Any, **more: Any) -> Any:
            rounds.append(sum(len(contents) for _, contents, _ in chunks))
            return begin(chunks, *rest, **more)

        monkeypatch.setattr(bench.log, "begin", counted)
        partition, order = bench.partition(), list[int]()
        for number in range(64):
            bench.writer.append_numbered(partition, busy, 1, lambda error, n=number: order.append(n))
        bench.until(lambda: len(order) == 64)
        assert order == list(range(64))
        assert rounds == [16, 16, 16, 16]
        assert partition.next_offset == 64

    in_hub(check)


def test_very_many_appends_are_put_together_and_written_in_two_turns(in_hub: Any, monkeypatch: Any) -> None:
    def check(bench: Bench) -> None:
        turns, seen = list[None](), list[tuple[int, int]]()
        begin = bench.log.begin

        def number(sequence: int, offset: int) -> Numbered:
            if sequence == 0:
                in_later_turn(turns.append)
            return Numbered(sequence, [b"x"], offset + 1)

        def written(chunks: Any, *rest: Any, **more: Any) -> Any:
            seen.append((sum(len(contents) for _, contents, _ in chunks), len(turns)))
            return begin(chunks, *rest, **more)

        monkeypatch.setattr(bench.log, "begin", written)
        partition, order = bench.partition(), list[int]()
        for one in range(150):
            bench.writer.append_numbered(partition, number, 1, lambda error, n=one: order.append(n))
        bench.until(lambda: len(order) == 150)
        assert order == list(range(150))
        assert seen[0] == (150, 1)

    in_hub(check)


def test_very_many_partitions_have_a_turn_of_their_own_to_be_told_that_they_have_grown(in_hub: Any) -> None:
    """Whoever waits for them is woken then, which takes half as long as to write and to answer."""

    def check(bench: Bench) -> None:
        for count, later in ((writer_module._LOOKED, 0), (writer_module.TURN_ITEMS + 1, 1)):
            turns, seen = list[None](), list[tuple[int, int]]()
            partitions = [bench.partition(b"%d-%d" % (count, number)) for number in range(count)]

            def listener(grown: set[Any], turns: Any = turns, seen: Any = seen) -> None:
                seen.append((len(grown), len(turns)))

            def told(_: object, turns: Any = turns) -> None:
                in_later_turn(turns.append)

            bench.writer._listeners[:] = [listener]
            for partition in partitions[1:]:
                bench.writer.append(partition, 0, [b"x"], lambda _: None)
            bench.writer.append(partitions[0], 0, [b"x"], told)
            bench.until(lambda seen=seen: seen)
            assert seen == [(count, later)]

    in_hub(check)


def test_messages_out_of_sequence_fail_alone(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, b"0")
        with pytest.raises(OutOfSequenceError):
            bench.wait(lambda done: bench.writer.append(partition, 5, [b"x"], done))
        bench.wait(lambda done: bench.writer.append(partition, 5, [b"x"], done, skip=True))
        assert partition.next_sequence == 6

    in_hub(check)


def test_trimming_and_dropping_go_through_rounds_and_the_space_comes_back(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        kept, dropped = bench.partition(), bench.partition(b"dropped")
        for _ in range(30):
            bench.append(kept, bytes(300_000))
            bench.append(dropped, bytes(300_000))
        full = bench.log.space.disk_bytes
        bench.writer.trim_and_wait(kept, before_sequence=25)
        assert kept.first_sequence == 25
        bench.writer.drop_and_wait(dropped, values={("topics", "dropped"): 1})
        assert dropped.dropped
        with pytest.raises(AppendError):
            bench.wait(lambda done: bench.writer.append(dropped, 30, [b"x"], done))
        bench.until(lambda: bench.log.space.garbage_bytes == 0 and bench.log.space.spare_bytes == 0)
        bench.wait(lambda done: bench.writer.put({("a", "b"): 1}, done))
        bench.until(lambda: bench.log.space.wal_bytes < CHECKPOINT_BYTES)
        bench.log.space.checkpoint(truncate=True)
        assert bench.log.space.disk_bytes < full / 3
        assert len(bench.log.read(kept, 0, count=99, max_bytes=EVERYTHING)[1]) == 5

    in_hub(check)


def test_files_of_deleted_values_go_when_it_is_quiet(in_hub: Any, monkeypatch: Any, tmp_path: Path) -> None:
    def check(bench: Bench) -> None:
        monkeypatch.setattr(writer_tidying, "FILES_STAY", 0.05)
        partition = bench.partition()
        for _ in range(10):
            bench.append(partition, bytes(FILE_BYTES))
        assert len(list((tmp_path / "log" / "values").iterdir())) == 10
        bench.writer.trim_and_wait(partition, before_sequence=9)
        bench.until(lambda: len(list((tmp_path / "log" / "values").iterdir())) == 1)
        bench.until(lambda: bench.log.space.removable_bytes == 0)

    in_hub(check)


def test_files_of_deleted_values_go_in_the_pool_when_the_writer_closes(
    in_hub: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    def check(bench: Bench) -> None:
        monkeypatch.setattr(writer_tidying, "FILES_STAY", 60.0)
        partition = bench.partition()
        for _ in range(10):
            bench.append(partition, bytes(FILE_BYTES))
        bench.writer.trim_and_wait(partition, before_sequence=9)
        bench.until(lambda: bench.log.space.garbage_bytes == 0)
        assert bench.log.space.removable_bytes > 0
        bench.writer.close()
        assert bench.log.space.removable_bytes == 0
        assert len(list((tmp_path / "log" / "values").iterdir())) == 1

    in_hub(check)


def test_items_handed_over_before_a_drop_are_done_before_it(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        outcomes: list[Exception | None] = []
        bench.writer.append(partition, 0, [b"a"], outcomes.append)
        bench.writer.drop([partition], outcomes.append)
        bench.writer.append(partition, 1, [b"b"], outcomes.append)
        bench.until(lambda: len(outcomes) == 3)
        assert outcomes[:2] == [None, None]
        assert isinstance(outcomes[2], AppendError)
        bench.append(bench.partition(), b"anew")

    in_hub(check)


def test_compaction_goes_on_between_rounds(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()

        def write(number: int) -> None:
            records = [(0, b"%d" % key, b"%d" % number, ()) for key in range(100)]
            bench.append(partition, encode_batch(records, base_offset=100 * number))

        for number in range(300):
            write(number)
        compacting = gevent.spawn(bench.writer.compact, partition)
        numbers = itertools.count(300)
        while not compacting.ready():
            write(next(numbers))
        assert compacting.get().records > 20_000
        rows = bench.log.read_offsets(partition, 0, max_bytes=EVERYTHING)
        assert len(rows) == partition.next_sequence
        last = decode_batch(rows[-1][2])
        assert last.offsets == list(range(partition.next_offset - 100, partition.next_offset))

    in_hub(check)


def test_a_compaction_that_ends_behind_the_drop_of_its_partition_notes_nothing(
    in_hub: Any, monkeypatch: Any
) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        for number in range(40):
            bench.append(partition, encode_batch([(0, b"key", bytes(2000), ())], base_offset=number))
        add = bench.writer._add
        noted = []

        def drop_before(item: Item) -> bool:
            if not noted and any(table == COMPACTION_TABLE for table, _ in item.values):
                noted.append(item)
                bench.writer.drop([partition], lambda error: None)
            return add(item)

        monkeypatch.setattr(bench.writer, "_add", drop_before)
        bench.writer.compact(partition)
        assert noted
        assert partition.dropped
        assert len(bench.log.table(COMPACTION_TABLE)) == 0

    in_hub(check)


def test_the_wal_is_copied_while_rounds_go_on_and_stays_bounded(in_hub: Any, tmp_path: Path) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        wal = tmp_path / "log" / "cache.db-wal"
        largest = 0
        for _ in range(400):
            bench.append(partition, bytes(FILE_BYTES - 1000))
            largest = max(largest, wal.stat().st_size)
        assert largest < WAL_BYTES + 3 * writer_module.ROUND_BYTES
        bench.until(lambda: bench.log.space.wal_bytes < 2 * CHECKPOINT_BYTES)

    in_hub(check)


def test_tidying_up_that_fails_harms_no_round_and_is_tried_again(in_hub: Any, monkeypatch: Any) -> None:
    def check(bench: Bench) -> None:
        monkeypatch.setattr(writer_tidying, "REST", 0.05)
        partition = bench.partition()
        for _ in range(10):
            bench.append(partition, bytes(100_000))
        database = bench.log._storage._cache
        failures = []

        def pragma(text: str) -> Any:
            failures.append(text)
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(database, "pragma", pragma)
        bench.writer.trim_and_wait(partition, before_sequence=9)
        bench.until(lambda: len(failures) >= 2)
        bench.append(partition, b"goes on")
        monkeypatch.undo()
        bench.until(lambda: bench.log.space.garbage_bytes == 0 and bench.log.space.spare_bytes == 0)

    in_hub(check)


def test_a_closed_writer_refuses(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        bench.writer.close()
        with pytest.raises(LogClosedError):
            bench.append(bench.partition(), b"x")

    in_hub(check)


@pytest.mark.parametrize("what", ["records", "a row"])
def test_the_hub_goes_on_while_a_round_is_slow(in_hub: Any, monkeypatch: Any, what: str) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, b"0")
        commit = bench.log._storage.commit
        beats = 0

        def slow(*arguments: Any) -> None:
            until(lambda: beats > 5)
            commit(*arguments)

        monkeypatch.setattr(bench.log._storage, "commit", slow)
        outcomes: list[Exception | None] = []
        content = bytes(writer_module.INLINE_BYTES + 1)
        if what == "records":
            bench.writer.append(partition, 1, [content], outcomes.append)
        else:
            bench.writer.put({("table", "key"): content}, outcomes.append)
        while not outcomes:
            gevent.sleep(0.01)
            beats += 1
        assert outcomes == [None]

    in_hub(check)


def test_the_last_of_several_values_with_one_key_counts(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        outcomes: list[Exception | None] = []
        partition = bench.partition()

        def number(sequence: int, offset: int) -> Numbered:
            return Numbered(sequence, [b"x"], offset + 1)

        bench.writer.put({("a", "1"): "first"}, outcomes.append)
        bench.writer.append_numbered(partition, number, 1, outcomes.append, {("a", "1"): 1, ("a", "2"): 1})
        bench.writer.put({("a", "2"): "last"}, outcomes.append)
        bench.until(lambda: len(outcomes) == 3)
        assert dict(bench.log.table("a").items()) == {"1": 1, "2": "last"}

    in_hub(check)


def test_files_that_a_killed_process_has_left_are_removed_while_the_log_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.log.storage.NOTED_ROWS", 1)  # as in a log of many rows
    monkeypatch.setattr("dafka.log.database.SWEPT_ROWS", 2)
    monkeypatch.setattr("dafka.commit.tidying.FILES_STAY", 0.05)
    with Log(tmp_path / "log") as log:
        for _ in range(5):
            log.write([(log.partition(b"t", b"A" * 32), [bytes(FILE_BYTES)])])
    stray = tmp_path / "log" / "values" / f"{7:032x}.val"
    stray.write_bytes(b"named by no row")

    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, bytes(FILE_BYTES))
        bench.until(lambda: not stray.exists())
        bench.until(lambda: not bench.log.space.sweeps)
        read = bench.log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)
        assert read == (0, [bytes(FILE_BYTES)] * 6)
        bench.writer.close()
        bench.log.close()

    hub = get_hub()
    hub.run(check, hub.run(Bench, tmp_path / "log"))
    assert len(list(stray.parent.iterdir())) == 6
