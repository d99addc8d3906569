"""The folder of backups: its content, shared files, damage, and folders that are not backups."""

from __future__ import annotations

import builtins
import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from backup.filled import append, damages, drop
from disks import small_disk
from log.expecting import expect_undamaged
from log.messages import ADDRESS

from dafka.backup.checking import check
from dafka.backup.creating import PARTS, create
from dafka.backup.errors import (
    BackupDamagedError,
    BackupError,
    BackupLockedError,
    NewerBackupError,
    NoSuchBackupError,
    NotABackupError,
)
from dafka.backup.pruning import prune
from dafka.backup.repository import BACKUPS, FORMAT, MARK, Repository, _digest
from dafka.backup.restoring import restore
from dafka.backup.source import Source
from dafka.log import Log, LogError, NotALogError
from dafka.log.limits import FILE_BYTES, LAYOUT


def test_a_restored_log_equals_the_original_octet_by_octet(data: str, folder: str, tmp_path: Path) -> None:
    made = create(data, folder)
    assert (made.partitions, len(made.values), made.source) == (1, 2, data)
    restored = tmp_path / "deep" / "new"
    assert restore(folder, str(restored)) == made
    with Log(restored) as log, Log(data) as original:
        for partition in original.partitions():
            same = log.partition(partition.topic, partition.address)
            everything = {"count": 100, "max_bytes": 2**40}
            assert log.read(same, 0, **everything) == original.read(partition, 0, **everything)
        assert log.table("table").get("key") == 5
    expect_undamaged(restored)
    assert stat.S_IMODE(restored.stat().st_mode) == 0o700


def test_nobody_else_can_read_backups(data: str, folder: str) -> None:
    create(data, folder)
    for path in [Path(folder), *Path(folder).rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_each_damage_of_a_value_is_found_and_no_broken_folder_is_restored(
    data: str, folder: str, tmp_path: Path
) -> None:
    made = create(data, folder)
    assert damages(folder) == []
    changed, missing = (Path(folder) / "values" / name for name, _, _ in made.values)
    content = bytearray(changed.read_bytes())
    content[1000] ^= 1
    changed.write_bytes(content)
    missing.unlink()
    assert damages(folder) == [
        (str(changed), "its checksum (CRC-32C) does not match its bytes"),
        (str(missing), "it is missing"),
    ]
    with pytest.raises(BackupDamagedError, match="--keep-damaged"):
        restore(folder, str(tmp_path / "target"))
    said: list[str] = []
    restore(folder, str(tmp_path / "target"), keep_damaged=True, say=said.append)
    assert len(said) == 2
    with Log(tmp_path / "target", on_damage="skip") as log:
        assert [one.topic for one in log.partitions()] == [b"one"]


def test_the_next_backup_mends_what_has_gone_from_the_folder(data: str, folder: str, tmp_path: Path) -> None:
    made = create(data, folder)
    (Path(folder) / "values" / made.values[0][0]).unlink()
    for pack in (Path(folder) / "blocks").iterdir():
        pack.write_bytes(b"")
    create(data, folder)
    restore(folder, str(tmp_path / "target"))
    expect_undamaged(tmp_path / "target")


def rot(path: Path) -> None:
    """Change an octet of a file, and neither its size nor its times."""
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_damaged_files_of_the_folder_are_told_and_copied_again(data: str, folder: str) -> None:
    made = create(data, folder)
    values = [Path(folder) / "values" / name for name, _, _ in made.values]
    for path in [*values, *(Path(folder) / "blocks").iterdir()]:
        rot(path)
    said: list[str] = []
    second = create(data, folder, check_all=True, say=said.append)
    assert all(any(str(path) in line for line in said) for path in values)
    assert any("earlier backups need it" in line for line in said)
    found: list[tuple[str, str]] = []
    check(Repository(folder), [second.name], lambda *damage: found.append(damage))
    assert found == [] and second.damaged == []


def test_files_the_disk_cannot_read_any_more_are_copied_again(
    data: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(data, folder)
    (pack,) = (Path(folder) / "blocks").iterdir()
    bad = {(str(path), path.stat().st_ino) for path in [pack, *(Path(folder) / "values").iterdir()]}
    real = builtins.open

    def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, str) and os.path.exists(path) and (path, os.stat(path).st_ino) in bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", opened)
    assert {cause for _, cause in damages(folder)} == {"it cannot be read: Input/output error"}
    second = create(data, folder, check_all=True)
    found: list[tuple[str, str]] = []
    check(Repository(folder), [second.name], lambda *damage: found.append(damage))
    assert found == [] and second.new_bytes >= made.bytes // 2


def test_damage_is_found_within_as_many_backups_as_there_are_parts(data: str, folder: str) -> None:
    made = create(data, folder)
    values = [Path(folder) / "values" / name for name, _, _ in made.values]
    for path in values:
        rot(path)
    said: list[str] = []
    parts = [create(data, folder, say=said.append).checked for _ in range(PARTS)]
    assert sorted(parts) == list(range(PARTS))
    assert len([line for line in said if "is copied again" in line]) == len(values)
    assert damages(folder) == []


def test_damaged_blocks_and_lists_are_found(data: str, folder: str, tmp_path: Path) -> None:
    made = create(data, folder)
    (pack,) = (Path(folder) / "blocks").iterdir()
    content = bytearray(pack.read_bytes())
    content[0] ^= 1
    pack.write_bytes(content)
    ((place, cause),) = damages(folder)
    assert str(pack) in place and "SHA-256" in cause
    with pytest.raises(BackupDamagedError, match="octets 0 to"):
        restore(folder, str(tmp_path / "target"), keep_damaged=True)
    assert not (tmp_path / "target").exists()
    pack.unlink()
    assert damages(folder)[0][1] == "it is missing"
    list_ = Path(folder) / "backups" / (made.name + ".json")
    whole = list_.read_bytes()
    other, deep = whole.replace(b"data", b"date"), b"[" * 100_000
    for wrong in (b"", b"[]", b'{"sha256": "0", "backup": {}}', whole[:-1], other, deep):
        list_.write_bytes(wrong)
        ((place, cause),) = damages(folder)
        assert place == made.name and "is damaged" in cause
        with pytest.raises(BackupDamagedError):
            restore(folder, str(tmp_path / "target"))


def test_damage_that_was_there_before_is_told_by_each_backup(data: str, folder: str) -> None:
    values = sorted((Path(data) / "values").iterdir())
    content = bytearray(values[0].read_bytes())
    content[500] ^= 1
    values[0].write_bytes(content)
    values[1].unlink()
    for _ in range(2):
        told = create(data, folder).damaged
        assert len(told) == 2
        assert any(values[0].name in text and "CRC" in text for text in told)
        assert any(values[1].name in text and "it is missing" in text for text in told)
    assert damages(folder) == []


def test_files_of_old_backups_alone_are_deleted_with_them(data: str, folder: str, tmp_path: Path) -> None:
    first = create(data, folder)
    drop(data, b"one")
    append(data, b"two", 1)
    second = create(data, folder)
    repository = Repository(folder)
    assert prune(repository, 2) == ([], 0)
    gone, freed = prune(repository, 1)
    assert gone == [first.name] and freed >= 4 * FILE_BYTES
    assert repository.names() == [second.name]
    assert len(os.listdir(Path(folder) / "values")) == 1
    assert damages(folder) == []
    restore(folder, str(tmp_path / "target"))
    expect_undamaged(tmp_path / "target")


def test_nothing_is_deleted_while_a_backup_that_stays_cannot_be_read(data: str, folder: str) -> None:
    create(data, folder)
    second = create(data, folder)
    (Path(folder) / "backups" / (second.name + ".json")).write_bytes(b"{}")
    with pytest.raises(BackupDamagedError, match=r"json is damaged: .*nothing is deleted: delete this file"):
        prune(Repository(folder), 1)
    assert len(Repository(folder).names()) == 2


def test_files_that_cannot_be_deleted_are_named_and_the_next_call_goes_on(
    data: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(data, folder)
    drop(data, b"one")
    kept = create(data, folder)
    unlink = os.unlink

    def refuse(path: str, **options: object) -> None:
        if os.path.basename(os.path.dirname(path)) == "values":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        unlink(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(BackupError, match=r"values/.* cannot be deleted: Permission denied"):
        prune(Repository(folder), 1)
    assert Repository(folder).names() == [kept.name] and damages(folder) == []
    monkeypatch.undo()
    assert prune(Repository(folder), 1)[1] > 0
    assert os.listdir(Path(folder) / "values") == []


def test_one_process_writes_to_a_folder_of_backups(data: str, folder: str) -> None:
    create(data, folder)
    with Repository(folder).locked(), pytest.raises(BackupLockedError, match="another process"):
        create(data, folder)


def test_leftovers_of_a_killed_process_are_cleared(data: str, folder: str) -> None:
    create(data, folder)
    for place in ("unfinished/value", "blocks/20200101T000000Z.pack"):
        (Path(folder) / place).write_bytes(b"half")
    create(data, folder)
    assert not os.listdir(Path(folder) / "unfinished")
    assert not (Path(folder) / "blocks" / "20200101T000000Z.pack").exists()


def test_half_a_value_that_a_power_cut_left_is_copied_again(data: str, folder: str, tmp_path: Path) -> None:
    Repository.made(folder)
    for path in (Path(data) / "values").iterdir():
        (Path(folder) / "values" / path.name).write_bytes(bytes(path.stat().st_size))
    create(data, folder)
    restore(folder, str(tmp_path / "target"))
    expect_undamaged(tmp_path / "target")


def test_folders_of_something_else_are_refused_and_stay_as_they_are(data: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").touch()
    file = tmp_path / "file"
    file.touch()
    for place in (other, file, Path(data)):
        with pytest.raises(BackupError):
            create(data, str(place))
    with pytest.raises(NotABackupError, match="no such folder"):
        restore(str(tmp_path / "nothing"), str(tmp_path / "target"))
    with pytest.raises(NotABackupError, match=MARK):
        restore(str(other), str(tmp_path / "target"))
    with pytest.raises(BackupError, match="another place"):
        create(data, os.path.join(data, "backups"))
    assert os.listdir(other) == ["mine"]
    assert set(os.listdir(data)) <= {
        "cache.db",
        "dafka.lock",
        "dafka.boot",
        "values",
        "cache.db-shm",
        "cache.db-wal",
    }


def test_folders_that_are_not_logs_are_not_backed_up(folder: str, tmp_path: Path) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    for one in (empty, other):
        one.mkdir()
    (other / "mine").touch()
    for wrong in (tmp_path / "nothing", empty, other):
        with pytest.raises(NotALogError):
            create(str(wrong), folder)
    assert not os.path.exists(folder)


def test_backups_of_a_newer_version_are_refused(data: str, folder: str) -> None:
    create(data, folder)
    (Path(folder) / MARK).write_text(json.dumps({"format": 99}))
    with pytest.raises(NotABackupError, match="upgrade dafka"):
        create(data, folder)
    (Path(folder) / MARK).write_text("{")
    with pytest.raises(BackupDamagedError):
        Repository(folder)


@pytest.mark.parametrize("change", ["format", "field", "layout"])
def test_a_backup_of_a_newer_version_asks_for_an_upgrade_and_is_not_damaged(
    data: str, folder: str, tmp_path: Path, change: str
) -> None:
    made = create(data, folder)
    path = Path(folder) / BACKUPS / f"{made.name}.json"
    outer = json.loads(path.read_text())
    if change == "format":
        outer = {"format": FORMAT + 1, "seal": "of another kind"}
    elif change == "field":
        outer["backup"]["compressed"] = "zstd"
    else:
        outer["backup"]["layout"] = LAYOUT + 1
    if change != "format":
        outer["sha256"] = _digest(outer["backup"])
    path.write_text(json.dumps(outer))
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    with pytest.raises(NewerBackupError, match="upgrade dafka"):
        restore(folder, str(tmp_path / "target"))
    if change != "layout":  # a log of this version may be backed up behind it
        for use in (lambda: create(data, folder), lambda: prune(Repository(folder), 1)):
            with pytest.raises(NewerBackupError, match="newer version of dafka"):
                use()
    assert {path: path.read_bytes() for path in before} == before
    assert not (tmp_path / "target").exists()


def test_a_backup_from_before_formats_had_a_number_is_read(data: str, folder: str, tmp_path: Path) -> None:
    made = create(data, folder)
    path = Path(folder) / BACKUPS / f"{made.name}.json"
    inner = json.loads(path.read_text())["backup"]
    del inner["timeline"]
    path.write_text(json.dumps({"sha256": _digest(inner), "backup": inner}))
    assert restore(folder, str(tmp_path / "target")) == made
    expect_undamaged(tmp_path / "target")


def test_backups_that_are_not_there_are_named(data: str, folder: str, tmp_path: Path) -> None:
    Repository.made(folder)
    with pytest.raises(NoSuchBackupError, match="no backup in"):
        restore(folder, str(tmp_path / "target"))
    made = create(data, folder)
    with pytest.raises(NoSuchBackupError, match=made.name):
        restore(folder, str(tmp_path / "target"), "yesterday")


def test_a_backup_takes_no_lock_and_writes_nothing_to_the_log(data: str, folder: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(data).rglob("*") if path.is_file()}
    with Log(data) as log:
        create(data, folder)
        log.write([(log.partition(b"one", ADDRESS), [b"more"])])
    assert set(before) <= set(Path(data).rglob("*"))


def test_a_row_with_a_strangers_file_is_refused(
    data: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from log.messages import database

    with database(data) as rows:
        rows.execute("UPDATE Cache SET filename = '../../secret' WHERE filename IS NOT NULL")
    with pytest.raises((BackupError, LogError), match="secret"):
        Source(data).files()


def test_a_damaged_list_keeps_no_new_backup_from_being_made(data: str, folder: str, tmp_path: Path) -> None:
    first, second = create(data, folder), create(data, folder)
    (Path(folder) / "backups" / (second.name + ".json")).write_bytes(b"{}")
    (Path(folder) / "blocks" / "20200101T000000Z.pack").write_bytes(
        b"of a killed process, or of the damaged one"
    )
    append(data, b"two", 1)
    third = create(data, folder)
    assert [place for place, _ in damages(folder)] == [second.name]
    for number, one in enumerate((first, third)):
        restore(folder, str(tmp_path / f"target-{number}"), one.name)
        expect_undamaged(tmp_path / f"target-{number}")


def test_backups_of_one_second_are_in_order(data: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.backup.creating.time.time", lambda: 1_800_000_000.5)
    made = [create(data, folder).name for _ in range(11)]
    assert Repository(folder).names() == made


def test_a_clock_that_is_set_back_changes_no_order(
    data: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for number, now in enumerate((1_800_000_000, 1_700_000_000, 1_750_000_000, 1_900_000_000)):
        monkeypatch.setattr("dafka.backup.creating.time.time", lambda now=now: now)
        append(data, b"topic %d" % number, 1)
        made.append(create(data, folder))
    assert Repository(folder).names() == [one.name for one in made]
    assert made[1].taken == "2023-11-14T22:13:20Z", "when it was taken is told as the clock had it"
    assert prune(Repository(folder), 2)[0] == [one.name for one in made[:2]]
    assert restore(folder, str(tmp_path / "target")) == made[-1]


def test_a_killed_process_leaves_no_half_a_mark(data: str, folder: str) -> None:
    os.mkdir(folder)
    (Path(folder) / f"{MARK}.{os.getpid()}").touch()  # when it was killed
    create(data, folder)
    assert damages(folder) == []


def test_two_processes_may_begin_a_folder_of_backups_at_once(
    data: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = os.listdir

    def late(place: str) -> list[str]:
        found = listed(place)
        if place == folder and not found:
            (Path(folder) / MARK).write_text(json.dumps({"format": FORMAT}))  # the other process
        return found

    monkeypatch.setattr(os, "listdir", late)
    create(data, folder)
    assert damages(folder) == []


def test_a_full_disk_of_the_backups_is_told_as_theirs(data: str, folder: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        filling = disk / "filling"
        Repository.made(str(disk / "backups"))
        with contextlib.suppress(OSError), open(filling, "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        with pytest.raises(BackupError, match=f"{disk}/backups.*(full|No space)"):
            create(data, str(disk / "backups"))
        filling.unlink()
        assert create(data, str(disk / "backups")).partitions == 1
