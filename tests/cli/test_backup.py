"""dafka backup, as somebody types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli.tools import LOOPBACK, address_of, produce, refused, run, running

from dafka import Broker


def backup(*arguments: str, status: int = 0) -> str:
    done = refused("backup", *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_broker_that_runs_is_backed_up_and_restored(tmp_path: Path) -> None:
    data, folder, restored = (str(tmp_path / name) for name in ("data", "backups", "restored"))
    with running("broker", *LOOPBACK, "--data", data) as process:
        produce(address_of(process), "orders", b"first")
        first = run("backup", "create", data, folder)
        assert first.returncode == 0 and first.stdout.startswith("backup 2"), first.stderr
        name = json.loads(backup("create", data, folder, "--json"))["name"]
    assert name in backup("list", folder)
    listed = [json.loads(line) for line in backup("list", folder, "--json").splitlines()]
    assert [row["name"] for row in listed][1] == name and listed[1]["source"] == data
    assert "2 backups" in backup("verify", folder) and "no damage" in backup("verify", folder, name)
    assert f"restored {name}" in backup("restore", folder, restored)
    assert "overwrites nothing" in backup("restore", folder, restored, status=1)
    assert "1 backup deleted" in backup("prune", folder, "--keep", "1")
    with running("broker", *LOOPBACK, "--data", restored) as process:
        read = run("kafka", "consume", "orders", "--exit", "--bootstrap-server", address_of(process))
        assert read.stdout == "first\n"


def test_damage_is_told_line_by_line(tmp_path: Path) -> None:
    data, folder = str(tmp_path / "data"), str(tmp_path / "backups")
    with running("broker", *LOOPBACK, "--data", data) as process:
        produce(address_of(process), "orders", os.urandom(300_000))
    backup("create", data, folder)
    (value,) = (tmp_path / "backups" / "values").iterdir()
    value.write_bytes(b"")
    said = backup("verify", folder, status=1)
    assert f"{value}: it has 0 bytes" in said and "1 damaged places" in said
    assert "--keep-damaged" in backup("restore", folder, str(tmp_path / "restored"), status=1)
    (stored,) = (tmp_path / "data" / "values").iterdir()
    stored.unlink()
    value.unlink()
    assert "damaged when it was backed up: values/" in backup("create", data, folder, status=1)


def test_a_damaged_list_hides_no_other_backup(tmp_path: Path) -> None:
    data, folder = str(tmp_path / "data"), str(tmp_path / "backups")
    Broker(data).start().stop()
    first, second = (json.loads(backup("create", data, folder, "--json"))["name"] for _ in range(2))
    (tmp_path / "backups" / "backups" / f"{first}.json").write_text("{}")
    said = backup("list", folder, status=1)
    assert second in said and f"{first}.json is damaged" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "nothing", "backups"], "no such folder"),
        (["create", "", "backups"], "no such folder"),
        (["list", "nothing"], "holds no backups"),
        (["verify", "nothing"], "holds no backups"),
        (["restore", "nothing", "new"], "holds no backups"),
        (["prune", "nothing", "--keep", "1"], "holds no backups"),
    ],
)
def test_missing_folders_and_backups_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = backup(*arguments, status=1)
    assert said.startswith("Error: ") and words in said and said.count("\n") == 1
    assert os.listdir(tmp_path) == []
