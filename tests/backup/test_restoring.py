"""A restore makes a new folder, and takes nothing from anybody."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backup.filled import append
from log.expecting import expect_undamaged

from dafka.backup import blocks
from dafka.backup.creating import create
from dafka.backup.errors import (
    BackupDamagedError,
    BackupLockedError,
    RestoreTargetError,
)
from dafka.backup.repository import RESTORES, Repository
from dafka.backup.restoring import SUFFIX, restore
from dafka.log import boot
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


@pytest.mark.parametrize("place", ["unfinished", "values/restored", "restored"])
def test_nothing_is_restored_where_the_next_backup_or_pruning_would_clear_it_away(
    data: str, folder: str, tmp_path: Path, place: str
) -> None:
    create(data, folder)
    (tmp_path / "link").symlink_to(folder)
    for name in (Path(folder), tmp_path / "link"):
        with pytest.raises(RestoreTargetError, match="is in the folder of backups"):
            restore(folder, str(name / place))
    assert os.listdir(Path(folder) / "unfinished") == []


def test_files_that_appear_at_the_target_of_a_restore_stay(
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


def test_each_restore_begins_a_timeline_above_all_others(data: str, folder: str, tmp_path: Path) -> None:
    """A tree of restores: each knows how far it is ahead of what was backed up, and none is like another."""

    def restored(name: str, backup: str) -> tuple[int, int]:
        restore(folder, str(tmp_path / name), backup)
        return boot.timeline(str(tmp_path / name)), boot.restored_ahead(str(tmp_path / name))

    first = create(data, folder).name
    assert restored("a", first) == (0, 1) and restored("b", first) == (0, 2)
    again = create(str(tmp_path / "b"), folder)
    assert again.timeline == 0, "no broker has opened it yet"
    boot.forget_restored(str(tmp_path / "b"))  # as a broker does that has opened it
    of_b = create(str(tmp_path / "b"), folder)
    assert of_b.timeline == 2
    assert restored("c", of_b.name) == (2, 1)  # the third restore
    assert restored("d", first) == (0, 4)
    boot.forget_restored(str(tmp_path / "c"))
    elsewhere = str(tmp_path / "elsewhere")
    create(str(tmp_path / "c"), elsewhere)
    restore(elsewhere, str(tmp_path / "e"))
    assert boot.restored_ahead(str(tmp_path / "e")) == 1 and boot.timeline(str(tmp_path / "e")) == 3


def test_restores_at_once_have_numbers_of_their_own(data: str, folder: str) -> None:
    create(data, folder)
    repository = Repository(folder)
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: repository.begin_timeline(0), range(40)))
    assert sorted(numbers) == list(range(1, 41))
    (Path(folder) / RESTORES).write_text("000100\n")
    assert [repository.begin_timeline(0) for _ in range(2)] == [101, 102], "a person's number"
    (Path(folder) / RESTORES).write_text("many")
    with pytest.raises(BackupDamagedError, match="the number of restores"):
        repository.begin_timeline(0)


def test_backups_that_can_only_be_read_are_restored_and_it_is_told(
    data: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(data, folder)
    for number in (1, 2):
        restore(folder, str(tmp_path / f"before{number}"))

    def refuse(self: Repository, after: int) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Repository, "begin_timeline", refuse)
    said: list[str] = []
    restore(folder, str(tmp_path / "target"), say=said.append)
    assert boot.restored_ahead(str(tmp_path / "target")) == 3, "above those that were counted"
    assert len(said) == 1 and "let no client use both" in said[0]


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


def test_a_restore_takes_no_working_folder_from_anybody(data: str, folder: str, tmp_path: Path) -> None:
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
