"""Files of values when a log is opened: the youngest are looked at, and all of them only after a kill."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from log.messages import ADDRESS, database, everything, files, large

from dafka.log import DamagedError, Log, Trim, compact, limits
from dafka.log.sweeping import TIDY_NAME, leave_note, take_note
from dafka.protocol.batch_writer import encode_batch

STRAY = f"{0:032}.val"


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small logs count as large: they leave a note, and without one look for files after they are opened."""
    monkeypatch.setattr("dafka.log.sweeping.NOTED_ROWS", 1)
    monkeypatch.setattr("dafka.log.storage.NOTED_ROWS", 1)


@pytest.fixture
def filled(folder: Path, noted: None) -> Path:
    """A closed log of five values in files, with a file that no row names beside them."""
    with Log(folder) as log:
        for sequence in range(5):
            log.write([(log.partition(b"hello", ADDRESS), large(sequence))])
    (folder / "values" / STRAY).write_bytes(b"named by no row")
    return folder


def test_after_an_orderly_end_the_files_are_not_gone_through(filled: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dafka.log.storage.Sweep", None)
    with Log(filled) as log:
        assert not log.space.sweeps
        assert not (filled / TIDY_NAME).exists()
        assert everything(log, log.partition(b"hello", ADDRESS)) == [m for n in range(5) for m in large(n)]
    assert (filled / TIDY_NAME).exists()


def test_the_files_that_a_kill_leaves_are_gone_through(filled: Path, tmp_path: Path):
    with Log(filled) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(5))])
        shutil.copytree(filled, tmp_path / "killed")
    with Log(tmp_path / "killed") as log:
        assert len(files(tmp_path / "killed")) == 7  # not looked for when it is opened
        assert log.space.sweeps
        log.space.tidy()
        assert not log.space.sweeps
        assert len(files(tmp_path / "killed")) == 6
        assert len(everything(log, log.partition(b"hello", ADDRESS))) == len(large(0)) * 6
    assert (tmp_path / "killed" / TIDY_NAME).exists()


def test_small_logs_go_through_them_when_they_are_opened(folder: Path):
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(0))])
    (folder / "values" / STRAY).write_bytes(b"named by no row")
    with Log(folder) as log:
        assert len(files(folder)) == 1
        assert not log.space.sweeps


def test_a_log_that_is_closed_before_all_were_gone_through_goes_on_next_time(
    filled: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dafka.log.database.SWEPT_ROWS", 1)
    (filled / TIDY_NAME).unlink()
    for _ in range(2):
        with Log(filled) as log:
            assert log.space.sweep()
        assert not (filled / TIDY_NAME).exists()
        assert len(files(filled)) == 6
    with Log(filled) as log:
        log.space.tidy()
    assert (filled / TIDY_NAME).exists()
    assert len(files(filled)) == 5


def test_without_old_files_no_row_is_gone_through(folder: Path, noted: None):
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"small"])])
    (folder / TIDY_NAME).unlink()
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(1))])
        assert log.space.sweeps
        assert not log.space.sweep()
        assert len(files(folder)) == 1


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), OSError("input/output error")])
def test_files_stay_where_looking_for_them_fails(
    filled: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    (filled / TIDY_NAME).unlink()

    def fails(*_: object) -> None:
        raise error

    with Log(filled) as log:
        monkeypatch.setattr("dafka.log.database.Database.file_names", fails)
        assert not log.space.sweep()
        assert not log.space.sweeps
        assert len(everything(log, log.partition(b"hello", ADDRESS))) == len(large(0)) * 5
    assert len(files(filled)) == 6
    assert not (filled / TIDY_NAME).exists()


@pytest.mark.parametrize("seed", range(25))
def test_rounds_kills_and_power_cuts_while_files_are_looked_for_lose_nothing(
    folder: Path, tmp_path: Path, noted: None, monkeypatch: pytest.MonkeyPatch, seed: int
):
    chance = random.Random(seed)
    monkeypatch.setattr("dafka.log.database.SWEPT_ROWS", chance.choice((1, 2, 50)))
    monkeypatch.setattr("dafka.log.values.SWEPT_FILES", chance.choice((1, 2, 50)))
    monkeypatch.setattr("dafka.log.sweeping._BUCKETS", chance.choice((1, 1024)))
    names = [b"%032d" % number for number in range(3)]
    first, count = [0, 0, 0], [0, 0, 0]
    log = Log(folder)
    for step in range(60):
        partitions = [log.partition(b"hello", name) for name in names]
        number = chance.randrange(3)
        what = chance.random()
        if what < 0.35:
            log.write([(partitions[number], large(count[number]))])
            count[number] += 1
        elif what < 0.5:
            first[number] = chance.randint(first[number], count[number])
            log.write([], trims=[Trim(partitions[number], first[number])], collect_bytes=2**30)
        elif what < 0.55 and count[number]:
            log.drop(partitions[number])
            log.write([], collect_bytes=2**30)
            first[number] = count[number] = 0
        elif what < 0.8:
            log.space.sweep()
        elif what < 0.9:
            log.space.checkpoint()
        else:
            if chance.random() < 0.7:
                killed = tmp_path / f"killed {step}"
                with closing(_reading(folder)):  # or closing it would make a checkpoint
                    shutil.copytree(folder, killed)
                    log.close()
                folder = killed
                (folder / "values").mkdir(exist_ok=True)
                (folder / "values" / f"{chance.getrandbits(128):032x}.val").write_bytes(b"half a value")
            else:
                log.close()
            log = Log(folder)
        for number, name in enumerate(names):
            expected = [message for at in range(first[number], count[number]) for message in large(at)]
            assert everything(log, log.partition(b"hello", name)) == expected, (step, number)
    log.space.tidy()
    log.close()
    assert {str(path.relative_to(folder)) for path in files(folder)} == set(_by_row(folder))


def test_a_note_of_another_state_of_the_log_does_not_count(filled: Path):
    note = (filled / TIDY_NAME).read_bytes()
    with Log(filled) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(5))])
    (filled / TIDY_NAME).write_bytes(note)  # as it may be back after a power cut
    with Log(filled) as log:
        log.space.tidy()
        assert len(files(filled)) == 6


def test_small_logs_leave_no_note(folder: Path):
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(0))])
    assert not (folder / TIDY_NAME).exists()
    leave_note(str(folder), limits.NOTED_ROWS)
    assert take_note(str(folder), limits.NOTED_ROWS)
    assert not take_note(str(folder), limits.NOTED_ROWS)


@pytest.mark.parametrize("strange", [b"", b"x" * 1000, b"-1"])
def test_a_strange_note_is_ignored(filled: Path, strange: bytes):
    (filled / TIDY_NAME).write_bytes(strange)
    with Log(filled) as log:
        log.space.tidy()
        assert len(files(filled)) == 5


def test_a_note_that_is_a_link_is_refused(filled: Path):
    (filled / TIDY_NAME).unlink()
    (filled / TIDY_NAME).symlink_to(filled / "cache.db")
    with pytest.raises(Exception, match="symbolic link"):
        Log(filled)


@pytest.mark.parametrize("some_rows", [1, 2, 3, 5000])
def test_only_the_last_rows_are_looked_at_for_lost_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, some_rows: int
):
    monkeypatch.setattr("dafka.log.database._SOME_ROWS", some_rows)
    with Log(folder) as log:
        for sequence in range(8):
            log.write([(log.partition(b"hello", ADDRESS), large(sequence))], {("table", "one"): sequence})
    with database(folder) as rows:
        chunks = [row for (row,) in rows.execute("SELECT rowid FROM Cache WHERE filename IS NOT NULL")]
        for number, row in enumerate(sorted(chunks)):
            since = limits.LOST_SECONDS * (1.5 if number < 5 else 0.5) if number < 7 else 0.0
            rows.execute("UPDATE Cache SET store_time = ? WHERE rowid = ?", (10_000 - since, row))
        rows.execute("UPDATE Cache SET store_time = 20000 WHERE filename IS NULL")  # a table's, often written
    by_age = _by_row(folder)
    for name in by_age[4:]:
        (folder / name).unlink()
    looked: list[int] = []
    with Log(folder, pause=lambda: looked.append(1)) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.next_sequence == 5 * len(large(0))  # without the last three, which are young
        with pytest.raises(DamagedError):
            log.read(partition, 4 * len(large(0)), count=1, max_bytes=1)


def test_lost_files_are_found_where_the_clock_was_set_back(folder: Path):
    with Log(folder) as log:
        for sequence in range(8):
            log.write([(log.partition(b"hello", ADDRESS), large(sequence))])
    with database(folder) as rows:
        chunks = [row for (row,) in rows.execute("SELECT rowid FROM Cache WHERE filename IS NOT NULL")]
        for number, row in enumerate(sorted(chunks)):
            stored = 20_000 + number if number < 5 else 10_000 + number
            rows.execute("UPDATE Cache SET store_time = ? WHERE rowid = ?", (stored, row))
    for name in _by_row(folder)[4:]:
        (folder / name).unlink()
    with Log(folder) as log:
        assert log.partition(b"hello", ADDRESS).next_sequence == 4 * len(large(0))


def _by_row(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "cache.db") as rows:
        select = "SELECT filename FROM Cache WHERE filename IS NOT NULL ORDER BY rowid"
        return [name for (name,) in rows.execute(select)]


@pytest.mark.parametrize("many_rows", [False, True])
@pytest.mark.parametrize("work", ["trim", "compact"])
def test_a_kill_and_a_power_cut_behind_it_leave_no_row_without_its_file(
    folder: Path, tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch, many_rows: bool
):
    """What a killed process has deleted may not have reached the disk; then the rows are back."""
    if many_rows:
        monkeypatch.setattr("dafka.log.storage.NOTED_ROWS", 1)
    killed, cut = tmp_path / "killed", tmp_path / "cut"
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        contents = [
            encode_batch([(1, b"key", bytes([number]) * limits.FILE_BYTES, ())], base_offset=number)
            for number in range(5)
        ]
        for content in contents:
            log.write([(partition, [content])])
        assert log.space.checkpoint()
        if work == "trim":
            log.trim(partition, before_sequence=3)
            log.write([], collect_bytes=2**30)
        else:
            list(compact(log, partition))
        expected = everything(log, partition)
        shutil.copytree(folder, killed)
    # Another program, such as a backup, has the database open: no closed connection makes a checkpoint.
    with closing(_reading(killed)), Log(killed) as log:
        assert log.space.sweeps is many_rows
        while log.space.sweep():
            pass
        assert everything(log, log.partition(b"hello", ADDRESS)) == expected
        shutil.copytree(killed, cut, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    with Log(cut) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) in (expected, contents)


def _reading(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "cache.db")
    connection.execute("SELECT 1 FROM Cache").fetchall()
    return connection
