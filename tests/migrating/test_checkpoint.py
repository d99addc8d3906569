"""The checkpoint of a migration."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from dafka.migrating.checkpoint import Checkpoint, Progress
from dafka.migrating.errors import MigrationError


def test_positions_are_translated_over_gaps() -> None:
    progress = Progress("t", 0, source_start=10, destination_start=0, source=40, destination=22)
    progress.place(10, 0)
    progress.place(20, 8)  # two offsets are not there: 8 records came from 10 to 19
    progress.place(30, 16)
    wanted = {5: 0, 10: 0, 17: 7, 18: 8, 19: 8, 20: 8, 27: 15, 29: 16, 30: 16, 36: 22, 40: 22, 99: 22}
    assert {source: progress.translate(source) for source in wanted} == wanted


@pytest.mark.parametrize("planned", ["", "[" * 500 + "]" * 500, "[1]", None], ids=lambda one: str(one)[:30])
def test_batches_of_a_damaged_checkpoint_are_an_error(tmp_path: Path, planned: str | None) -> None:
    path = str(tmp_path / "checkpoint")
    checkpoint = Checkpoint(path, "a", "b")
    checkpoint.save([Progress("t", 0, 0, 0, 100, 90, 7, 0, 0)])
    checkpoint.close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE partitions SET planned = ?", (planned,))
    database.close()
    again = Checkpoint(path, "a", "b")
    with pytest.raises(MigrationError, match="the checkpoint is damaged"):
        again.partitions()
    again.close()


def test_a_checkpoint_has_batches_that_were_sent_and_not_acknowledged(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    checkpoint = Checkpoint(path, "a", "b")
    progress = Progress("t", 0, 0, 0, 100, 90, 7, 0, 0)
    progress.place(60, 50)
    progress.planned = [(95, 105), (99, 112)]
    progress.place(107, 95)
    checkpoint.save([progress])
    with pytest.raises(MigrationError, match="in use"):
        Checkpoint(path, "a", "b")
    checkpoint.close()

    found = Checkpoint(path, "a", "b").partitions()["t", 0]
    assert not found.catch_up(97)
    assert found.catch_up(95)
    assert (found.source, found.destination, found.shifts) == (105, 95, [(60, 50)])
