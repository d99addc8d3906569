"""Checking a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from log.messages import ADDRESS, batch, chunk_rows, database, numbered

from dafka.log import Log, LogLockedError, NotALogError
from dafka.log.chunk import ChunkKey, encode_chunk
from dafka.log.verify import Verification, verify


@pytest.fixture
def filled(folder: Path) -> Path:
    with Log(folder, clock=lambda: 1000.0) as log:
        raw, batches = log.partition(b"raw", ADDRESS), log.partition(b"batches", ADDRESS)
        for first in (0, 3):
            log.write([(raw, numbered(first, 3, 10_000))], {("table", "key"): first})
        log.write([(batches, [batch(0, 5, 7), batch(2, 9)])])
        log.trim(batches, before_offset=1)
    return folder


def checked(folder: Path) -> Verification:
    *_, seen = verify(folder)
    return seen


def test_a_good_log_is_counted(filled: Path) -> None:
    seen = checked(filled)
    assert not seen.damages
    counts = seen.partitions, seen.values, seen.messages, seen.records, seen.table_values
    assert counts == (2, 3, 8, 9, 1)


def test_each_damage_is_named(filled: Path) -> None:
    first, second, _ = chunk_rows(filled)
    with database(filled) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (first[2][:-1] + b"?", first[0]))
        rows.execute("UPDATE Cache SET value = NULL WHERE rowid = ?", (second[0],))
        rows.execute("UPDATE Cache SET value = x'00' WHERE key = ?", (b"t\5tablekey",))
        rows.execute("UPDATE Cache SET value = x'00' WHERE substr(key, 1, 1) = x'70'")
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (x'7a', 1, x'00')")
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (x'630000', 1, x'00')")
    seen = checked(filled)
    text = "\n".join(map(str, seen.damages))
    for place in ("sequences 0 to 2 of topic", "sequences 3 to 5", "key 'key' of table 'table'", "b'z'"):
        assert place in text


def test_a_batch_that_is_damaged_inside_a_good_value_is_named(filled: Path) -> None:
    row, old, _ = chunk_rows(filled)[2]
    contents = [batch(0, 5, 7)[:-1] + b"?", batch(2, 9)]
    key = ChunkKey.unpack(old)
    with database(filled) as rows:
        value = encode_chunk(key.pack(), key.kind, contents, [])
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value, row))
    ((place, cause),) = checked(filled).damages
    assert place.startswith("sequence 0 in sequences 0 to 1 of topic b'batches'")
    assert "crc" in cause


def test_overlapping_values_are_named(filled: Path) -> None:
    _, key, value = chunk_rows(filled)[1]
    with database(filled) as rows:
        overlapping = key[:5] + (2).to_bytes(8, "big") + key[13:]
        rows.execute("INSERT INTO Cache (key, raw, value) VALUES (?, 1, ?)", (overlapping, value))
    assert any("overlaps" in cause for _, cause in checked(filled).damages)


def test_a_folder_that_is_open_or_not_a_log_is_refused(filled: Path, tmp_path: Path) -> None:
    with Log(filled), pytest.raises(LogLockedError, match="this process"):
        checked(filled)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotALogError):
        checked(tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir())
