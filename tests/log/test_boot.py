"""The note of the boot in which a log was opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from dafka.log import boot


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file that takes the place of Linux's boot id."""
    file = tmp_path / "boot_id"
    file.write_text("first\n")
    monkeypatch.setattr(boot, "_BOOT_ID", str(file))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = tmp_path / "log"
    path.mkdir()
    return str(path)


def test_a_folder_without_a_note_may_have_seen_a_power_cut(booted: Path, folder: str) -> None:
    assert boot.rebooted(folder)


def test_the_note_holds_until_the_machine_boots_again(booted: Path, folder: str) -> None:
    boot.note_boot(folder)
    assert not boot.rebooted(folder)
    booted.write_text("second\n")
    assert boot.boot_id() == "second"
    assert boot.rebooted(folder)
    boot.note_boot(folder)
    assert not boot.rebooted(folder)


def test_a_note_that_a_power_cut_emptied_counts_as_a_reboot(booted: Path, folder: str) -> None:
    boot.note_boot(folder)
    Path(folder, boot.NOTE_NAME).write_bytes(b"")
    assert boot.rebooted(folder)


def test_only_the_owner_may_read_the_note(booted: Path, folder: str) -> None:
    boot.note_boot(folder)
    assert Path(folder, boot.NOTE_NAME).stat().st_mode & 0o777 == 0o600


def test_without_a_boot_id_of_the_system_nothing_is_noted(booted: Path, folder: str) -> None:
    booted.unlink()
    boot.note_boot(folder)
    assert boot.boot_id() is None
    assert not boot.rebooted(folder)
    assert not Path(folder, boot.NOTE_NAME).exists()


@pytest.mark.parametrize("note", ["", "x", "-1", "9" * 20])
def test_a_restore_whose_note_has_no_number_is_one_timeline_ahead(folder: str, note: str) -> None:
    assert (boot.timeline(folder), boot.restored_ahead(folder)) == (0, 0)
    boot.note_restored(folder, 7, 3)
    assert (boot.timeline(folder), boot.restored_ahead(folder)) == (4, 3)
    Path(folder, boot.RESTORED_NAME).write_text(note)  # an empty one is of an older version
    assert (boot.timeline(folder), boot.restored_ahead(folder)) == (6, 1)
    boot.forget_restored(folder)
    assert (boot.timeline(folder), boot.restored_ahead(folder)) == (7, 0)
