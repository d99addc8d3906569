"""Write rounds: one transaction, one at a time, and what is left when it fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, database, numbered

from dafka.log import AppendError, Log, LogPartition, LogWriteError, TableValueError


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    return log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)[1]


def test_a_commit_in_another_thread_shows_nothing_before_finish(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"1"])])
        round_ = log.begin([(partition, [b"2"])], {("table", "key"): 1})
        thread = threading.Thread(target=round_.commit)
        thread.start()
        thread.join()
        assert everything(log, partition) == [b"1"]
        assert "key" not in log.table("table")
        round_.finish()
        round_.finish()
        assert everything(log, partition) == [b"1", b"2"]
        assert log.table("table").get("key") == 1


@pytest.mark.parametrize("tail_bytes", [0, 8 * 1024 * 1024])
def test_messages_can_be_read_while_a_merge_has_taken_their_rows_away(folder: Path, tail_bytes: int) -> None:
    with Log(folder, tail_bytes=tail_bytes) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(15):
            log.write([(partition, numbered(sequence, 1))])
        round_ = log.begin([(partition, numbered(15, 1))])
        assert round_.replaced
        round_.commit()
        assert everything(log, partition) == numbered(0, 15)
        round_.finish()
        assert everything(log, partition) == numbered(0, 16)


def test_there_is_one_round_at_a_time(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        round_ = log.begin([(partition, [b"1"])])
        with pytest.raises(LogWriteError, match="not finished"):
            log.write([(partition, [b"2"])])
        round_.finish()  # never committed: nothing happened
        assert partition.next_sequence == 0
        log.write([(partition, [b"3"])])
        assert everything(log, partition) == [b"3"]


def test_a_full_disk_fails_the_round_and_changes_nothing(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 10))], {("table", "key"): "old"})
        cache = log._storage._cache
        (pages,) = cache._sql("PRAGMA page_count").fetchone()
        cache._sql(f"PRAGMA max_page_count = {pages + 20}").fetchall()
        with pytest.raises(LogWriteError, match=r"could not be written.*full") as caught:
            log.write(
                [(partition, [bytes(100_000)]), (log.partition(b"new", ADDRESS), [b"1"])],
                {("table", "key"): "new", ("table", "other"): 1},
            )
        assert caught.value.path == str(folder)
        assert partition.next_sequence == 10
        assert [p.topic for p in log.partitions()] == [b"hello"]
        assert dict(log.table("table").items()) == {"key": "old"}
        log.write([(partition, numbered(10, 1))])
    with Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == numbered(0, 11)


def test_a_database_locked_by_another_program_fails_the_round_in_bounded_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.log.creating.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("dafka.log.creating._made", {})
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"1"])])
        with database(folder) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            with pytest.raises(LogWriteError, match="database is locked"):
                log.write([(partition, [b"2"])])
            foreign.execute("ROLLBACK")
        log.write([(partition, [b"3"])])
        assert everything(log, partition) == [b"1", b"3"]


def test_a_commit_that_failed_and_is_on_disk_after_all_stops_writing_until_reopened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, [b"1"])])
        commit = log._storage.commit

        def commit_and_fail(*rows: object) -> None:
            commit(*rows)  # type: ignore[arg-type]
            raise LogWriteError(log.path, "the sync failed")

        with monkeypatch.context() as patch, pytest.raises(LogWriteError, match="sync"):
            patch.setattr(log._storage, "commit", commit_and_fail)
            log.write([(partition, [b"2"])])
        assert everything(log, partition) == [b"1"]
        with pytest.raises(LogWriteError, match="open it again"):
            log.write([(partition, [b"2"])])
    with Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == [b"1", b"2"]


def test_more_in_one_value_than_the_database_holds_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dafka.log.growth.CHUNK_BYTES", 1000)
    with Log(folder) as log, pytest.raises(AppendError, match="append fewer"):
        log.write([(log.partition(b"hello", ADDRESS), [bytes(1000)])])


def test_a_table_value_that_cannot_be_stored_fails_the_round(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        with pytest.raises(TableValueError, match="object"):
            log.write([(partition, [b"1"])], {("table", "key"): object()})
        assert partition.next_sequence == 0


def test_a_round_is_committed_once(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        round_ = log.begin([(partition, [b"1"])])
        round_.commit()
        with pytest.raises(LogWriteError, match="begin another"):
            round_.commit()
        round_.finish()
        assert everything(log, partition) == [b"1"]


def test_closing_drops_a_round_that_is_not_finished(folder: Path) -> None:
    with Log(folder) as log:
        round_ = log.begin([(log.partition(b"hello", ADDRESS), [b"1"])])
    with pytest.raises(LogWriteError, match="begin another"):
        round_.commit()
    with Log(folder) as log:
        assert log.partitions() == []
