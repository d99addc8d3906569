"""Large values as files: which values, and that files come and go with their rows."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import pytest
from log.messages import (
    ADDRESS,
    EVERYTHING,
    chunk_rows,
    damages,
    everything,
    files,
    large,
    numbered,
)

from dafka.log import DamagedError, Durability, Log, LogReadError, LogWriteError, compact
from dafka.log.chunk import CHUNK_TAG, RAW, decode_chunk, encode_chunk
from dafka.log.limits import FILE_BYTES
from dafka.log.storage import Storage
from dafka.log.values import ValueDisk
from dafka.protocol.batch import read_header
from dafka.protocol.batch_writer import encode_batch


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


def flags_of(folder: Path, added: int = 0) -> int:
    """The flags that a file system keeps for a folder, to which some are added. Skips where it has none."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        known = int.from_bytes(fcntl.ioctl(descriptor, 0x80086601, bytes(8))[:4], sys.byteorder)
        if added:
            fcntl.ioctl(descriptor, 0x40086602, (known | added).to_bytes(8, sys.byteorder))
    except OSError as error:
        pytest.skip(f"the file system does not take it: {error}")
    finally:
        os.close(descriptor)
    return known


@pytest.mark.skipif(sys.platform != "linux" or sys.byteorder == "big", reason="numbers of most Linuxes")
def test_the_folder_of_files_is_made_where_ext4_has_little_else(folder: Path, tmp_path: Path) -> None:
    unrelated = 0x20000
    flags_of(tmp_path, unrelated)
    with Log(folder) as log:
        before = flags_of(folder)
        log.write([(log.partition(b"hello", ADDRESS), large(0))])
    assert flags_of(folder) == before | unrelated
    assert not before & unrelated


def test_the_folder_of_files_is_made_also_where_the_system_takes_no_hint(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTTY, "not for this file system")

    monkeypatch.setattr("fcntl.ioctl", refuse)
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), large(0))])
    assert len(files(folder)) == 1
    assert [name for name in os.listdir(folder) if name.startswith("values")] == ["values"]


@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("octets", [4000, 5000, 200_000])
def test_contents_that_are_written_one_by_one_are_stored_as_those_that_are_joined(
    folder: Path, octets: int, durability: Durability
) -> None:
    contents = [bytes([number]) * octets for number in range(10)]
    with Log(folder, durability=durability) as log:
        log.write([(log.partition(b"hello", ADDRESS), contents)])
    assert damages(folder) == []
    ((_, key, _),) = chunk_rows(folder)
    with diskcache.Cache(folder) as cache:
        value = cache[key]
    assert value == encode_chunk(key, RAW, contents, decode_chunk(key, value).stamps)


def test_a_file_that_the_system_takes_in_parts_is_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = [bytes([number % 256]) * 5000 for number in range(600)]

    def write_some(descriptor: int, pieces: list[bytes]) -> int:
        return os.write(descriptor, b"".join(pieces)[:7777])

    monkeypatch.setattr("dafka.log.values.os.writev", write_some)
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), contents)])
    assert damages(folder) == []
    with Log(folder) as log:
        assert everything(log, log.partition(b"hello", ADDRESS)) == contents


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


def test_with_durability_power_values_are_in_the_database(folder: Path) -> None:
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


def test_the_size_of_removable_files_is_right_while_rounds_add_and_a_checkpoint_removes_some(
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
def test_a_round_that_fails_keeps_the_files_of_the_values_it_would_delete(
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


def test_a_checkpoint_keeps_the_files_of_values_that_an_open_round_deletes(folder: Path) -> None:
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
