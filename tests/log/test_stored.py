"""Batches in files: where they are, how long that counts, and that what is read there is what was stored."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from log.messages import ADDRESS, EVERYTHING, files

from dafka.log import DamagedError, Log, LogPartition, StoredBatches, limits
from dafka.log.stored import Layout, Layouts, ValueFile, layout_of_written
from dafka.protocol.batch import read_header
from dafka.protocol.batch_empty import encode_empty
from dafka.protocol.batch_writer import encode_batch

FILE = ValueFile("values/0", (1, 2, 1000, 4))
GAP = 3  # offsets between two batches, as compaction leaves them


def batches(count: int, first: int = 0, size: int = 20_000) -> list[bytes]:
    """Batches of two records with gaps between them."""
    numbers = range(count)
    return [
        encode_batch(
            [(5, b"key", bytes([number % 250]) * (size + 11 * number), ())] * 2,
            base_offset=first + (2 + GAP) * number,
        )
        for number in numbers
    ]


@pytest.fixture
def stored(folder: Path) -> Iterator[tuple[Log, LogPartition, list[bytes]]]:
    """A log, opened again, of two values in files, one in the database, and one more in a file."""
    contents = batches(24)
    with Log(folder) as log:
        for first, end in ((0, 8), (8, 16), (16, 17), (17, 24)):
            log.write([(log.partition(b"t", ADDRESS), contents[first:end])])
    assert len(files(folder)) == 3
    with Log(folder, tail_bytes=0) as log:
        yield log, log.partition(b"t", ADDRESS), contents


def read(
    log: Log, partition: LogPartition, offset: int, end: int = EVERYTHING, most: int = EVERYTHING
) -> tuple[bytes, int, int]:
    """What is read, the offset behind it, and how many runs of batches came from files."""
    runs, behind = log.read_stored(partition, offset, end=end, max_bytes=most)
    octets = [run.read() if isinstance(run, StoredBatches) else run for run in runs]
    assert [len(run) for run in runs] == list(map(len, octets))
    from_files = [run for run in runs if isinstance(run, StoredBatches)]
    for run in from_files:
        run.close()
    return b"".join(octets), behind, len(from_files)


def test_batches_come_from_files_and_only_small_values_from_memory(stored):
    log, partition, contents = stored
    assert read(log, partition, 0) == (b"".join(contents), read_header(contents[-1]).next_offset, 3)
    assert StoredBatches.opened == 0


def test_any_range_is_what_read_offsets_has(stored):
    log, partition, contents = stored
    sizes = random.Random(1)
    last = read_header(contents[-1]).next_offset
    for offset in range(last + 2):
        for end in (EVERYTHING, sizes.randrange(last + 2)):
            most = sizes.choice([0, 1, 40_000, 100_000, 400_000])
            expected = [
                content
                for base, _, content in log.read_offsets(partition, offset, max_bytes=most)
                if base < end
            ]
            octets, behind, _ = read(log, partition, offset, end, most)
            assert octets == b"".join(expected), (offset, end, most)
            assert behind == (read_header(expected[-1]).next_offset if expected else offset)


def test_batches_just_written_are_not_read_to_be_checked(folder, monkeypatch):
    monkeypatch.setattr("os.preadv", None)
    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"t", ADDRESS)
        contents = batches(8)
        log.write([(partition, contents)])
        assert read(log, partition, 0) == (b"".join(contents), 37, 1)


def test_a_file_that_was_changed_is_checked_again(stored):
    log, partition, contents = stored
    assert read(log, partition, 0)[2] == 3
    path = next(path for path in files(Path(log.path)) if contents[0] in path.read_bytes())
    octets = bytearray(path.read_bytes())
    octets[-100] ^= 1
    path.write_bytes(octets)
    os.utime(path, ns=(1, 1))  # independent of the file system's clock
    with pytest.raises(DamagedError, match="sequences 0 to 7"):
        log.read_stored(partition, 0, end=EVERYTHING, max_bytes=EVERYTHING)
    assert read(log, partition, read_header(contents[8]).base_offset)[2] == 2
    assert StoredBatches.opened == 0


def test_a_damaged_file_ends_what_is_read_before_it_or_is_skipped(stored, folder):
    log, partition, contents = stored
    path = next(path for path in files(folder) if contents[8] in path.read_bytes())
    path.write_bytes(path.read_bytes()[:-1])
    assert read(log, partition, 0) == (b"".join(contents[:8]), 37, 1)
    log.close()
    with Log(folder, tail_bytes=0, on_damage="skip") as skipping:
        partition = skipping.partition(b"t", ADDRESS)
        assert read(skipping, partition, 39)[0] == b"".join(contents[16:])
        assert len(skipping.damaged_places) == 1


def test_a_value_with_batches_without_records_is_loaded(folder):
    contents = batches(8)
    empty = read_header(contents[3])
    contents[3] = encode_empty(empty.base_offset, empty.next_offset, 0)
    with Log(folder, tail_bytes=0) as log:
        partition = log.partition(b"t", ADDRESS)
        log.write([(partition, contents)])
        for _ in range(2):
            assert read(log, partition, 0) == (b"".join(contents), 37, 0)
    with Log(folder, tail_bytes=0) as log:
        for _ in range(2):
            assert read(log, log.partition(b"t", ADDRESS), 0)[2] == 0


def test_a_file_of_which_nothing_fits_is_not_opened(stored, monkeypatch):
    log, partition, contents = stored
    read(log, partition, 0)  # from now on it is known where batches are
    opened: list[str] = []
    real_open = os.open
    monkeypatch.setattr(os, "open", lambda path, *more: opened.append(path) or real_open(path, *more))
    octets, _, from_files = read(log, partition, 0, most=sum(map(len, contents[:8])) + 10)
    assert (octets, from_files, len(opened)) == (b"".join(contents[:8]), 1, 1)


def test_no_more_files_are_open_than_the_limit_allows(stored, monkeypatch):
    monkeypatch.setattr("dafka.log.stored.OPEN_VALUES", 2)
    log, partition, _ = stored
    runs, _ = log.read_stored(partition, 0, end=EVERYTHING, max_bytes=EVERYTHING)
    assert [type(run) for run in runs].count(StoredBatches) == 2
    assert len(runs) == 2 + 8
    del runs  # which closes them
    assert StoredBatches.opened == 0


@pytest.mark.parametrize(("descriptors", "files"), [(8, 2), (-1, 3)], ids=["few", "no limit"])
def test_only_a_share_of_few_descriptors_is_taken(stored, monkeypatch, descriptors, files):
    monkeypatch.setattr("resource.getrlimit", lambda _: (descriptors, descriptors))
    log, partition, contents = stored
    assert read(log, partition, 0) == (b"".join(contents), read_header(contents[-1]).next_offset, files)


def test_a_file_that_has_become_shorter_is_an_error(tmp_path):
    path = tmp_path / "value"
    path.write_bytes(b"12345")
    run = StoredBatches(os.open(path, os.O_RDONLY), 2, 4)
    with pytest.raises(EOFError, match="1 octets"):
        run.read()
    run.close()
    run.close()
    assert StoredBatches.opened == 0


def test_layouts_count_for_a_time_and_are_bounded_by_their_batches(monkeypatch):
    monkeypatch.setattr("dafka.log.stored.LAYOUT_BATCHES", 25)
    now = [0.0]
    layouts = Layouts(lambda: now[0])
    contents = batches(10, size=10)
    file = ValueFile("values/0", (1, 2, sum(map(len, contents)) + 4, 4))
    for key in (b"1", b"2"):
        layouts.put(key, layout_of_written(file, contents, 4, now[0]))
    assert layouts.get(b"1") is not None
    layouts.put(b"3", layout_of_written(file, contents, 4, now[0]))
    assert layouts.get(b"2") is None  # the one that was used longest ago
    assert layouts.get(b"1") is not None
    for number in range(30):
        layouts.put(b"none %d" % number, Layout(FILE, [0], [], now[0]))
    assert layouts.get(b"1") is None
    assert layouts.get(b"none 29") is not None
    now[0] += limits.CHECKED_SECONDS + 0.1
    assert layouts.get(b"none 29") is None


def test_views_in_a_file_are_given_back_and_read_from_there(folder):
    contents = batches(8)
    memory = [bytearray(content) for content in contents]
    with Log(folder) as log:
        partition = log.partition(b"t", ADDRESS)
        log.write([(partition, list(map(memoryview, memory)))])
        for one in memory:
            one.clear()  # which nobody may do while there is a view
        assert read(log, partition, 0) == (b"".join(contents), 37, 1)
        assert [content for *_, content in log.read_offsets(partition, 0, max_bytes=EVERYTHING)] == contents


def test_views_of_which_no_file_is_made_are_copied_into_memory(folder, monkeypatch):
    contents = batches(8)
    memory = [bytearray(content) for content in contents]
    with Log(folder, durability="power") as log:
        partition = log.partition(b"t", ADDRESS)
        log.write([(partition, list(map(memoryview, memory)))])
        for one in memory:
            one.clear()
        monkeypatch.setattr("dafka.log.storage.Storage.get", None)
        found = [content for *_, content in log.read_offsets(partition, 0, max_bytes=EVERYTHING)]
        assert found == contents
        assert set(map(type, found)) == {bytes}
