"""A restore makes a new folder, and takes nothing from anybody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from backup.filled import append
from log.expecting import expect_undamaged

from dafka.backup import blocks
from dafka.backup.creating import create
from dafka.backup.errors import (
    BackupLockedError,
    RestoreTargetError,
)
from dafka.backup.restoring import SUFFIX, restore
from dafka.log.lock import FolderLock


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_a_restore_overwrites_nothing(data: str, folder: str, tmp_path: Path, there: str) -> None:
    create(data, folder)
    target = tmp_path / "target"
    if there == "file":
        target.write_bytes(b"mine")
    elif there == "folder":
        target.mkdir()
        (target / "mine").touch()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RestoreTargetError, match="overwrites nothing"):
        restore(folder, str(target))
    assert not os.path.exists(str(target) + SUFFIX)


def test_what_comes_to_the_place_of_a_restore_meanwhile_stays(
    data: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(data, folder)
    target, reading = tmp_path / "target", blocks.read

    def read(*arguments: object) -> object:
        target.mkdir()
        (target / "mine").touch()
        return reading(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(blocks, "read", read)
    with pytest.raises(RestoreTargetError):
        restore(folder, str(target))
    assert os.listdir(target) == ["mine"]


def test_an_empty_folder_is_filled(data: str, folder: str, tmp_path: Path) -> None:
    create(data, folder)
    (tmp_path / "target").mkdir()
    restore(folder, str(tmp_path / "target"))
    expect_undamaged(tmp_path / "target")


def test_two_restores_to_one_place_do_not_meet(data: str, folder: str, tmp_path: Path) -> None:
    create(data, folder)
    work = str(tmp_path / "target") + SUFFIX
    os.mkdir(work)
    lock = FolderLock(work)
    with pytest.raises(BackupLockedError, match="restoring"):
        restore(folder, str(tmp_path / "target"))
    lock.release()


def test_what_a_restore_needs_for_its_work_is_not_taken_from_anybody(
    data: str, folder: str, tmp_path: Path
) -> None:
    create(data, folder)
    work = tmp_path / ("target" + SUFFIX)
    work.mkdir()
    (work / "mine").touch()
    with pytest.raises(RestoreTargetError, match="mine"):
        restore(folder, str(tmp_path / "target"))
    assert (work / "mine").exists()


def test_a_log_whose_name_looks_like_a_restore_is_not_taken_for_one(
    data: str, folder: str, tmp_path: Path
) -> None:
    create(data, folder)
    other = tmp_path / ("target" + SUFFIX)
    restore(folder, str(other))
    append(data, b"new", 1)
    create(data, folder)
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    with pytest.raises(RestoreTargetError, match="move it away"):
        restore(folder, str(tmp_path / "target"))
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def test_a_restore_deletes_nothing_behind_a_link(data: str, folder: str, tmp_path: Path) -> None:
    create(data, folder)
    (tmp_path / "others" / "values").mkdir(parents=True)
    (tmp_path / "others" / "values" / "mine").touch()
    (tmp_path / ("target" + SUFFIX)).symlink_to(tmp_path / "others")
    with pytest.raises(RestoreTargetError, match="not this user's folder"):
        restore(folder, str(tmp_path / "target"))
    assert (tmp_path / "others" / "values" / "mine").exists()


def test_a_restore_of_another_backup_takes_nothing_of_one_that_was_begun(
    data: str, folder: str, tmp_path: Path
) -> None:
    first = create(data, folder)
    append(data, b"two", 1)
    create(data, folder)
    work = tmp_path / ("target" + SUFFIX)
    (work / "restored" / "values").mkdir(parents=True)
    (work / "restored" / "values" / ("0" * 32 + ".val")).write_bytes(b"of another one")
    restore(folder, str(tmp_path / "target"), first.name)
    expect_undamaged(tmp_path / "target")
