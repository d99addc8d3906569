"""Large values as files: which, that they come and go with their rows, and what a power cut may take."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import pytest
from log.messages import ADDRESS, EVERYTHING, chunk_rows, database, numbered

from dafka.log import DamagedError, Log, LogPartition, LogReadError, LogWriteError, compact
from dafka.log.chunk import CHUNK_TAG, decode_chunk
from dafka.log.limits import FILE_BYTES
from dafka.log.storage import Storage
from dafka.log.values import ValueDisk
from dafka.log.verify import verify
from dafka.protocol.batch import read_header
from dafka.protocol.batch_writer import encode_batch

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> list[Path]:
    """The files of values, oldest first."""
    return sorted((folder / "values").glob("*"), key=lambda path: path.stat().st_mtime_ns)


def large(sequence: int) -> list[bytes]:
    return numbered(sequence, 1, FILE_BYTES)


def everything(log: Log, partition: LogPartition) -> list[bytes]:
    return log.read(partition, partition.first_sequence, count=EVERYTHING, max_bytes=EVERYTHING)[1]


def damages(folder: Path) -> list[tuple[str, str]]:
    *_, seen = verify(folder)
    return seen.damages


def test_large_values_are_files_and_small_ones_rows(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(3):
            log.write([(partition, large(sequence))])
        log.write([(partition, numbered(3, 5))])
    assert len(files(folder)) == 3
    assert damages(folder) == []
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert everything(log, partition) == [*large(0), *large(1), *large(2), *numbered(3, 5)]


def test_plain_diskcache_reads_all_of_it(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(0)), (log.partition(b"b", ADDRESS), [b"small"])])
    keys = [key for _, key, _ in chunk_rows(folder)]
    with diskcache.Cache(folder) as cache:
        assert [list(decode_chunk(key, cache[key]).contents) for key in keys] == [large(0), [b"small"]]


def test_values_of_tables_are_rows_whatever_their_size(folder: Path) -> None:
    with Log(folder) as log:
        log.write([], {("table", "key"): bytes(2 * FILE_BYTES)})
    assert not files(folder)
    with Log(folder) as log:
        assert log.table("table").get("key") == bytes(2 * FILE_BYTES)


def test_what_has_to_survive_a_power_cut_is_in_the_database(folder: Path) -> None:
    with Log(folder, durability="power") as log:
        log.write([(log.partition(b"hello", ADDRESS), large(0))])
    assert not files(folder)


def test_a_folder_without_files_gets_some_and_the_other_way_round(folder: Path) -> None:
    for sequence, durability in enumerate(("power", "process", "power", "process")):
        with Log(folder, durability=durability) as log:  # type: ignore[arg-type]
            log.write([(log.partition(b"hello", ADDRESS), large(sequence))])
    assert len(files(folder)) == 2
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert everything(log, partition) == [message for n in range(4) for message in large(n)]
        log.trim(partition, before_sequence=3)
        log.space.tidy()
        assert everything(log, partition) == large(3)
    assert len(files(folder)) == 1


def test_files_of_deleted_values_go_with_the_next_checkpoint(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(5):
            log.write([(partition, large(sequence))])
        full = log.space.disk_bytes
        assert full > 5 * FILE_BYTES
        log.trim(partition, before_sequence=4)
        log.write([], collect_bytes=EVERYTHING)
        assert len(files(folder)) == 5  # the rows could come back
        assert log.space.removable_bytes > 4 * FILE_BYTES
        assert log.space.disk_bytes > 5 * FILE_BYTES
        log.space.checkpoint()
        assert len(files(folder)) == 1
        assert log.space.removable_bytes == 0
        assert log.space.disk_bytes < full - 3 * FILE_BYTES


def test_many_deleted_files_make_a_checkpoint_due(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.log.storage.REMOVABLE_FILES", 3)
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(5):
            log.write([(partition, large(sequence))])
        log.trim(partition, before_sequence=4)
        log.write([], collect_bytes=EVERYTHING)
        assert len(files(folder)) == 1


def test_what_removable_files_take_is_known_while_rounds_add_and_a_checkpoint_removes_some(
    folder: Path,
) -> None:
    """A count that goes astray never ends at 0, and the writer makes a checkpoint each second for good."""
    disk = ValueDisk(str(folder))

    def delete() -> None:
        for _ in range(800):
            disk._released = [("no file", 1)] * 200
            disk.committed()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread = threading.Thread(target=delete)
        thread.start()
        while thread.is_alive() or disk.removable:
            disk.unlink_removed(min(disk.removable, 10))
    finally:
        sys.setswitchinterval(before)
    assert disk.removable_bytes == 0


def test_closing_leaves_no_files_of_deleted_values(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, large(0))])
        log.drop(partition)
        log.write([], collect_bytes=EVERYTHING)
        assert len(files(folder)) == 1
    assert not files(folder)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What statements begin with that fail, as they do on a full disk."""
    beginnings: set[str] = set()

    class Connection(sqlite3.Connection):
        def execute(self, text: str, *arguments: Any) -> sqlite3.Cursor:
            if text.startswith(tuple(beginnings)):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(text, *arguments)

    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    monkeypatch.setattr(
        diskcache.core.sqlite3,
        "connect",
        lambda *arguments, **options: connect(*arguments, factory=Connection, **options),
    )
    return beginnings


@pytest.mark.parametrize("statement", ["INSERT", "COMMIT"])
def test_a_round_that_fails_takes_its_files_back(folder: Path, failing: set[str], statement: str) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, large(0))])
        failing.add(statement)
        for _ in range(10):
            with pytest.raises(LogWriteError, match="full"):
                log.write([(partition, large(1))])
            assert len(files(folder)) <= 2
        failing.clear()
        log.write([(partition, large(1))])
        assert len(files(folder)) == 2
        assert everything(log, partition) == [*large(0), *large(1)]


@pytest.mark.parametrize("statement", ["INSERT", "COMMIT"])
def test_a_round_that_fails_leaves_the_files_of_what_it_was_to_delete(
    folder: Path, failing: set[str], statement: str
) -> None:
    def batches(base: int) -> list[bytes]:
        return [encode_batch([(0, b"key", bytes(FILE_BYTES), ())], base_offset=base)]

    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"hello", ADDRESS)
        for base in range(4):
            log.write([(partition, batches(base))])
        failing.add(statement)
        with pytest.raises(LogWriteError, match="full"):
            list(compact(log, partition))
        failing.clear()
        log.space.checkpoint()
        assert everything(log, partition) == [batch for base in range(4) for batch in batches(base)]
        list(compact(log, partition))
        log.space.checkpoint()
        assert len(files(folder)) == 1
        assert everything(log, partition)[3:] == batches(3)


def test_a_checkpoint_leaves_the_files_of_what_a_round_under_way_deletes(folder: Path) -> None:
    key, value = CHUNK_TAG + b"key", bytes(FILE_BYTES)
    storage = Storage(str(folder), "process")
    storage.commit([], [(key, value)])

    def rows() -> Iterator[tuple[bytes, bytes]]:
        thread = threading.Thread(target=storage.checkpoint)
        thread.start()
        thread.join()
        assert len(files(folder)) == 1
        yield b"row", b"value"

    storage.commit([key], rows())
    assert storage.checkpoint()
    assert not files(folder)
    storage.close()


def test_values_in_the_place_of_others_are_rows(folder: Path) -> None:
    """What they hold was stored before, and on the disk perhaps: a power cut must not take it."""
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        for base in range(0, 8, 2):
            records = [(0, b"key %d" % (number // 2), bytes(FILE_BYTES), ()) for number in (base, base + 1)]
            log.write([(partition, [encode_batch(records, base_offset=base)])])
        assert len(files(folder)) == 4
        list(compact(log, partition))
        log.space.checkpoint()
        assert len(files(folder)) == 1  # the tail, which is not compacted
        assert [read_header(batch).count for batch in everything(log, partition)] == [1, 1, 1, 2]


def test_a_file_that_cannot_be_written_fails_the_round(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        (folder / "values").write_bytes(b"in the way")
        with pytest.raises(LogWriteError, match="could not be written"):
            log.write([(partition, large(0))])
        (folder / "values").unlink()
        log.write([(partition, large(0))])
        assert everything(log, partition) == large(0)


def test_a_file_that_cannot_be_read_is_not_damage(folder: Path) -> None:
    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, large(0))])
        (file,) = files(folder)
        file.rename(folder / "elsewhere")
        file.mkdir()
        with pytest.raises(LogReadError, match="Is a directory"):
            everything(log, partition)
        file.rmdir()
        (folder / "elsewhere").rename(file)
        assert everything(log, partition) == large(0)


def test_a_missing_or_changed_file_is_damage(folder: Path) -> None:
    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"hello", ADDRESS)
        for sequence in range(3):
            log.write([(partition, large(sequence))])
        first, second, _ = files(folder)
        first.unlink()
        second.write_bytes(second.read_bytes().replace(b"message", b"massage"))
        with pytest.raises(DamagedError, match=r"sequences 0 to 0 .* missing"):
            log.read(partition, 0, count=1, max_bytes=1)
        with pytest.raises(DamagedError, match=r"sequences 1 to 1 .* checksum"):
            log.read(partition, 1, count=1, max_bytes=1)
        assert log.read(partition, 2, count=1, max_bytes=1) == (2, large(2))
    assert len(damages(folder)) == 2


# -- a process or a machine that goes down --------------------------------------------------------


@pytest.fixture
def left(folder: Path) -> Path:
    """What a process left that wrote five large values and was about to commit a sixth when it ended."""
    program = f"""if True:
        import os
        from dafka.log import Log
        from dafka.log.limits import FILE_BYTES
        log = Log({str(folder)!r})
        partition = log.partition(b"hello", {ADDRESS!r})
        for sequence in range(5):
            log.write([(partition, [b"message %d" % sequence + bytes(FILE_BYTES)])])
        log._storage._cache.disk.store(bytes(FILE_BYTES), False, b"c a key")
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
    assert len(files(folder)) == 6
    return folder


def test_files_that_no_row_names_go_when_the_log_is_opened(left: Path) -> None:
    (left / "values" / "notes.txt").write_text("somebody's")
    with Log(left) as log:
        assert len(files(left)) == 5 + 1
        assert everything(log, log.partition(b"hello", ADDRESS)) == [m for n in range(5) for m in large(n)]
    assert (left / "values" / "notes.txt").read_text() == "somebody's"


def test_a_partition_ends_before_what_a_power_cut_took(left: Path, caplog: Any) -> None:
    for file in files(left)[3:5]:
        file.write_bytes(b"")
    with Log(left) as log:
        assert "sequences 3 to 4 of topic b'hello'" in caplog.text
        partition = log.partition(b"hello", ADDRESS)
        assert partition.next_sequence == 3
        log.write([(partition, large(3))])
    with Log(left) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == [m for n in range(4) for m in large(n)]
    assert len(files(left)) == 4
    assert damages(left) == []


def test_a_power_cut_never_leaves_files_without_the_database_of_a_new_log(left: Path) -> None:
    """What is in the WAL alone is not on the disk, while files may be."""
    (left / "cache.db-wal").unlink()
    (left / "cache.db-shm").unlink()
    with Log(left) as log:
        assert log.partition(b"hello", ADDRESS).next_sequence == 0
    assert not files(left)


@pytest.mark.parametrize("meanwhile", [lambda folder: Log(folder).close(), damages])
def test_what_was_lost_is_found_also_when_the_log_was_closed_or_verified(
    left: Path, meanwhile: Callable[[Path], object]
) -> None:
    taken = files(left)[4]
    if meanwhile is damages:
        taken.unlink()
    meanwhile(left)
    assert not (left / "cache.db-wal").exists()
    taken.unlink(missing_ok=True)
    with Log(left) as log:
        assert log.partition(b"hello", ADDRESS).next_sequence == 4
    assert damages(left) == []


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_partition_of_which_nothing_is_left_goes_on_at_its_end(left: Path, trimmed: bool) -> None:
    if trimmed:
        copy = left.with_name("copy")
        with Log(left) as log:
            log.trim(log.partition(b"hello", ADDRESS), before_sequence=3)
            shutil.copytree(left, copy)  # while it is open
        left = copy
    for file in files(left):
        file.unlink()
    for _ in range(2):
        with Log(left) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.first_sequence == partition.next_sequence > 0
            assert everything(log, partition) == []
    assert damages(left) == []
    with Log(left) as log:
        partition = log.partition(b"hello", ADDRESS)
        end = partition.next_sequence
        log.write([(partition, large(end))])
        assert everything(log, partition) == large(end)


def test_a_trim_into_lost_values_ends_with_the_log(left: Path) -> None:
    copy = left.with_name("copy")
    with Log(left) as log:
        log.trim(log.partition(b"hello", ADDRESS), before_sequence=5)
        shutil.copytree(left, copy)  # while it is open: what was trimmed is still there
    for file in files(copy)[2:]:
        file.unlink()
    for sequence in (2, 3):
        with Log(copy) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.next_sequence == sequence
            log.write([(partition, large(sequence))])
            assert log.read(partition, sequence, count=1, max_bytes=1) == (sequence, large(sequence))
    assert damages(copy) == []


def test_old_values_or_values_in_the_midst_that_are_lost_are_damage(left: Path) -> None:
    files(left)[2].unlink()
    with Log(left) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert partition.next_sequence == 5
        assert log.read(partition, 3, count=9, max_bytes=EVERYTHING) == (3, [*large(3), *large(4)])
        with pytest.raises(DamagedError, match="sequences 2 to 2"):
            log.read(partition, 2, count=1, max_bytes=1)


def reboot(folder: Path) -> None:
    """Have it look as if the log was opened last before the machine went down."""
    (folder / "dafka.boot").write_text("another run of the machine")


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("meanwhile", [lambda folder: None, damages])
def test_after_a_power_cut_a_partition_ends_before_the_first_value_that_is_lost(
    left: Path, noted: bool, meanwhile: Callable[[Path], object], caplog: Any
) -> None:
    with Log(left) as log:
        log.write([(log.partition(b"other", ADDRESS), large(0))])
    files(left)[2].write_bytes(b"")
    reboot(left)
    if not noted:
        (left / "dafka.boot").unlink()
    meanwhile(left)
    for end in (2, 3):
        with Log(left) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.next_sequence == end
            assert everything(log, partition) == [m for n in range(end) for m in large(n)]
            assert everything(log, log.partition(b"other", ADDRESS)) == large(0)
            log.write([(partition, large(end))])
    assert caplog.text.count("sequences 2 to 4 of topic b'hello'") == caplog.text.count("were lost") == 1
    assert damages(left) == []
    assert len(files(left)) == 5


def test_after_a_power_cut_that_took_its_first_value_a_partition_is_empty(left: Path) -> None:
    files(left)[0].unlink()
    reboot(left)
    for _ in range(2):
        with Log(left) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.first_sequence == partition.next_sequence == 1
            assert everything(log, partition) == []
    assert damages(left) == []


def test_trimmed_values_do_not_count_as_lost(left: Path) -> None:
    copy = left.with_name("copy")
    with Log(left) as log:
        log.trim(log.partition(b"hello", ADDRESS), before_sequence=3)
        shutil.copytree(left, copy)  # while it is open: what was trimmed is still there
    files(copy)[1].unlink()
    reboot(copy)
    with Log(copy) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert (partition.first_sequence, partition.next_sequence) == (3, 5)
        assert everything(log, partition) == [*large(3), *large(4)]


def test_compaction_begins_anew_in_what_a_power_cut_has_shortened(folder: Path) -> None:
    def batch(base: int, key: bytes) -> list[bytes]:
        return [encode_batch([(0, key, bytes(FILE_BYTES), ())], base_offset=base)]

    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        for base in range(5):
            log.write([(partition, batch(base, b"key %d" % base))])
        list(compact(log, partition))
    files(folder)[1].unlink()
    reboot(folder)
    with Log(folder) as log:
        partition = log.partition(b"table", ADDRESS)
        assert partition.next_sequence == 1
        for base in (1, 2):
            log.write([(partition, batch(base, b"key 0"))])
        list(compact(log, partition))
        counts = [read_header(batch).count for batch in everything(log, partition)]
        assert counts == [0, 1, 1]
        assert log.table("log.lost").get(str(partition.number)) == 1
        log.drop(partition)
        assert not len(log.table("log.lost"))


def test_what_can_be_read_stays_though_the_first_value_is_lost(left: Path) -> None:
    first, *_, last = files(left)[:5]
    first.unlink()
    last.unlink()
    with Log(left) as log:
        partition = log.partition(b"hello", ADDRESS)
        assert (partition.first_sequence, partition.next_sequence) == (0, 4)
        assert log.read(partition, 1, count=9, max_bytes=EVERYTHING) == (
            1,
            [m for n in (1, 2, 3) for m in large(n)],
        )
        with pytest.raises(DamagedError, match="sequences 0 to 0"):
            log.read(partition, 0, count=1, max_bytes=1)


def test_missing_values_that_were_stored_long_ago_are_not_given_up(left: Path) -> None:
    files(left)[4].unlink()
    with database(left) as rows:
        last = "SELECT max(key) FROM Cache WHERE filename IS NOT NULL"
        rows.execute(f"UPDATE Cache SET store_time = store_time - 1000 WHERE key = ({last})")
        rows.commit()
        with Log(left) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.next_sequence == 5
            with pytest.raises(DamagedError, match="sequences 4 to 4"):
                log.read(partition, 4, count=1, max_bytes=1)
