"""The contents of a folder, read from its keys when the log opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, database, numbered

from dafka.log import DamagedError, Log, Trim
from dafka.log.catalogue import Catalogue, read_catalogue
from dafka.log.partition import unpack_index
from dafka.log.storage import Storage


@pytest.mark.parametrize("row", [b"?what", b"c", b"p", b"t", b"t\x05a", "layout2"])
def test_a_key_that_no_log_writes_is_damage(folder: Path, row: object) -> None:
    Log(folder).close()
    with database(folder) as rows:
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (?, 1, 1)", (row,))
    with pytest.raises(DamagedError, match="key") as caught:
        Log(folder)
    assert caught.value.path == str(folder)


def read(folder: Path) -> tuple[Catalogue, int]:
    """What is read from the folder of a closed log, and how often there was a pause."""
    pauses: list[None] = []
    storage = Storage(str(folder), "process")
    try:
        return read_catalogue(storage, lambda: pauses.append(None)), len(pauses)
    finally:
        storage.close()


def test_partitions_their_chunks_and_the_keys_of_tables_are_found(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 3))], {("names", "a"): 1})
        expected = list(partition.index)
    catalogue, _ = read(folder)
    ((number, names, index),) = catalogue.partitions()
    assert (number, names) == (0, (b"hello", ADDRESS))
    assert isinstance(index, bytes)
    assert list(unpack_index(index)) == expected
    assert catalogue.table_keys == {"names": ["a"]}
    assert (len(catalogue.garbage), catalogue.dropped) == (0, set())


def test_trimmed_values_and_those_of_deleted_partitions_are_garbage(folder: Path) -> None:
    with Log(folder) as log:
        trimmed, deleted = log.partition(b"trimmed", ADDRESS), log.partition(b"deleted", ADDRESS)
        for first in (0, 1):
            log.write([(one, numbered(first, 1, 9000)) for one in (trimmed, deleted)])
        log.write([], trims=[Trim(trimmed, 1)], drops=[deleted])
        garbage = log.space.garbage_bytes
        number = deleted.number
    catalogue, _ = read(folder)
    assert [topic for _, (topic, _), _ in catalogue.partitions()] == [b"trimmed"]
    assert catalogue.dropped == {number}
    assert catalogue.garbage.bytes == garbage > 2 * 9000


def test_records_without_the_name_of_their_partition_are_damage(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
    with database(folder) as rows:
        rows.execute("DELETE FROM Cache WHERE substr(key, 1, 1) = X'70'")  # p
    with pytest.raises(DamagedError, match="it has records and no name"):
        Log(folder)


def test_chunks_that_overlap_are_damage_of_their_partitions_index(folder: Path) -> None:
    with Log(folder) as log:
        partition = log.partition(b"hello", ADDRESS)
        log.write([(partition, numbered(0, 2))])
        overlapping = partition.index[0]._replace(first=1, base_offset=1).pack()
    with database(folder) as rows:
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (?, 1, 1)", (overlapping,))
    with pytest.raises(DamagedError, match="the index of topic b'hello'"):
        Log(folder)


def test_reading_many_keys_pauses_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.log.database.PAUSE_KEYS", 10)
    with Log(folder) as log:
        log.write([], {("names", str(number)): number for number in range(100)})
    catalogue, pauses = read(folder)
    assert len(catalogue.table_keys["names"]) == 100
    assert pauses >= 10
