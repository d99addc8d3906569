"""Rounds that fail: their callers are told, nothing of them is written, and the writer goes on or stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commit.bench import EVERYTHING, Bench

from dafka.commit.writer import Numbered, OutOfSequenceError, WriterStoppedError
from dafka.log import AppendError, LogPartition, LogWriteError
from dafka.protocol.batch_writer import encode_batch


def test_a_round_that_fails_tells_everyone_in_it(in_hub: Any, monkeypatch: Any) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, b"0")

        def commit(*_: object) -> None:
            raise LogWriteError(bench.log.path, "disk full")

        monkeypatch.setattr(bench.log._storage, "commit", commit)
        outcomes: list[Exception | None] = []
        bench.writer.append(partition, 1, [b"1"], outcomes.append)
        bench.writer.trim(partition, outcomes.append, before_sequence=1)
        bench.writer.put({("a", "b"): 1}, outcomes.append)
        bench.until(lambda: len(outcomes) == 3)
        assert [type(outcome) for outcome in outcomes] == 3 * [LogWriteError]
        monkeypatch.undo()
        assert (partition.first_sequence, partition.next_sequence) == (0, 1)
        bench.append(partition, b"1")

    in_hub(check)


def test_an_unexpected_error_fails_its_round_and_the_writer_goes_on(
    in_hub: Any, monkeypatch: Any, caplog: Any
) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()

        def begin(*_: object, **__: object) -> None:
            raise RuntimeError("nobody expects it")

        monkeypatch.setattr(bench.log, "begin", begin)
        outcomes: list[Exception | None] = []
        bench.writer.append(partition, 0, [b"0"], outcomes.append)
        bench.writer.put({("a", "b"): 1}, outcomes.append)
        bench.until(lambda: len(outcomes) == 2)
        assert [type(outcome) for outcome in outcomes] == 2 * [LogWriteError]
        assert "nobody expects it" in caplog.text
        assert "Traceback" in caplog.text
        monkeypatch.undo()
        bench.append(partition, b"0")

    in_hub(check)


def test_invalid_messages_fail_their_round_and_the_writer_goes_on(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        partition, other = bench.partition(), bench.partition(b"other")
        outcomes: list[Exception | None] = []
        wrong: Any = Numbered(0, [1, 2], 2)
        bench.writer.append_numbered(partition, lambda sequence, offset: wrong, 2, outcomes.append)
        bench.writer.append(other, 0, [b"0"], outcomes.append)
        bench.until(lambda: len(outcomes) == 2)
        assert all(isinstance(outcome, LogWriteError) for outcome in outcomes)
        bench.append(partition, b"0")
        bench.append(other, b"0")

    in_hub(check)


def test_listeners_and_tidying_up_that_fail_unexpectedly_harm_no_round(
    in_hub: Any, monkeypatch: Any, caplog: Any
) -> None:
    def check(bench: Bench) -> None:
        told: list[set[LogPartition]] = []
        bench.writer.on_commit(lambda grown: 1 // 0)
        bench.writer.on_commit(told.append)
        monkeypatch.setattr(bench.writer._tidying, "_step", lambda: {}["nothing"])
        partition = bench.partition()
        bench.append(partition, b"0")
        bench.append(partition, b"1")
        bench.until(lambda: told == [{partition}, {partition}])
        assert "ZeroDivisionError" in caplog.text
        assert "KeyError" in caplog.text

    in_hub(check)


def test_the_writer_stops_where_the_log_may_not_show_what_is_on_the_disk(
    in_hub: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, b"0")
        forget = bench.log._reader.forget
        monkeypatch.setattr(bench.log._reader, "remember", lambda *_: 1 // 0)
        outcomes: list[Exception | None] = []
        bench.writer.append(partition, 1, [b"1"], outcomes.append)
        bench.until(lambda: outcomes)
        monkeypatch.setattr(bench.log._reader, "forget", forget)
        bench.writer.put({("a", "b"): 1}, outcomes.append)
        with pytest.raises(WriterStoppedError):
            bench.writer.trim_and_wait(partition, before_sequence=1)
        bench.until(lambda: len(outcomes) == 2)
        assert all(isinstance(outcome, WriterStoppedError) for outcome in outcomes)
        assert "opened again" in str(outcomes[0])

    in_hub(check)


def test_calls_that_continue_each_other_fail_one_by_one(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        partition = bench.partition()
        bench.append(partition, b"0", b"1", b"2")
        outcomes: list[tuple[int, type]] = []
        for first in range(1, 6):
            bench.writer.append(
                partition, first, [b"%d" % first], lambda error, n=first: outcomes.append((n, type(error)))
            )
        bench.until(lambda: len(outcomes) == 5)
        none = type(None)
        expected = [(1, OutOfSequenceError), (2, OutOfSequenceError), (3, none), (4, none), (5, none)]
        assert outcomes == expected
        contents = bench.log.read(partition, 0, count=99, max_bytes=EVERYTHING)[1]
        assert contents == [b"%d" % n for n in range(6)]

    in_hub(check)


def test_messages_that_a_partition_cannot_hold_leave_the_rest_of_their_round_whole(
    in_hub: Any, monkeypatch: Any
) -> None:
    def check(bench: Bench) -> None:
        good, other, bad = (bench.partition(name) for name in (b"good", b"other", b"bad"))
        bench.append(bad, encode_batch([(0, None, b"x", ())]))
        rounds = []
        commit = bench.log._storage.commit
        monkeypatch.setattr(bench.log._storage, "commit", lambda *rows: rounds.append(1) or commit(*rows))
        outcomes: list[type] = []

        def done(error: Exception | None) -> None:
            outcomes.append(type(error))

        bench.writer.put({("a", "b"): 1}, done)
        bench.writer.append(good, 0, [b"0"], done)
        bench.writer.append(bad, 1, [b"no batch"], done)
        bench.writer.append(other, 0, [b"0"], done)
        bench.until(lambda: len(outcomes) == 4)
        assert outcomes == [type(None), type(None), AppendError, type(None)]
        assert len(rounds) == 1
        assert [one.next_sequence for one in (good, other, bad)] == [1, 1, 1]

    in_hub(check)


def test_values_whose_check_fails_are_not_written(in_hub: Any) -> None:
    def check(bench: Bench) -> None:
        outcomes: list[Exception | None] = []
        failure = ValueError("not now")

        def refuse() -> None:
            raise failure

        bench.writer.put({("a", "1"): 1}, outcomes.append, refuse)
        bench.writer.put({("a", "2"): 2}, outcomes.append, lambda: None)
        bench.until(lambda: len(outcomes) == 2)
        assert outcomes == [failure, None]
        assert dict(bench.log.table("a").items()) == {"2": 2}

    in_hub(check)
