"""Values whose files are lost after a power cut, and files that a killed process leaves."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forking
import pytest
from log.messages import (
    ADDRESS,
    EVERYTHING,
    damages,
    database,
    everything,
    files,
    large,
)

from dafka.log import DamagedError, Log, compact
from dafka.log.limits import FILE_BYTES
from dafka.protocol.batch import read_header
from dafka.protocol.batch_writer import encode_batch

ROOT = Path(__file__).parents[2]


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
    forking.run([sys.executable, "-c", program], cwd=ROOT, check=True)
    assert len(files(folder)) == 6
    return folder


def test_files_that_no_row_names_go_when_the_log_is_opened(left: Path) -> None:
    (left / "values" / "notes.txt").write_text("somebody's")
    with Log(left) as log:
        assert len(files(left)) == 5 + 1
        assert everything(log, log.partition(b"hello", ADDRESS)) == [m for n in range(5) for m in large(n)]
    assert (left / "values" / "notes.txt").read_text() == "somebody's"


def test_a_partition_ends_before_the_first_value_that_a_power_cut_took(left: Path, caplog: Any) -> None:
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
def test_lost_values_are_found_also_after_the_log_was_closed_or_verified(
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


def test_compaction_starts_again_in_a_partition_that_a_power_cut_has_shortened(folder: Path) -> None:
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


def test_values_that_can_be_read_stay_even_if_the_first_one_is_lost(left: Path) -> None:
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
    with Log(left) as log:
        log.write([(log.partition(b"another", ADDRESS), [b"stored today"])])
    files(left)[4].unlink()
    with database(left) as rows:
        rows.execute("UPDATE Cache SET store_time = store_time - 1000 WHERE filename IS NOT NULL")
        rows.commit()
        with Log(left) as log:
            partition = log.partition(b"hello", ADDRESS)
            assert partition.next_sequence == 5
            with pytest.raises(DamagedError, match="sequences 4 to 4"):
                log.read(partition, 4, count=1, max_bytes=1)
