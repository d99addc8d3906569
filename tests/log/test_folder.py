"""The folder of a log: made if it is missing, checked, and locked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from log.messages import database

from dafka.log import Log, LogOpenError, LogVersionError, NotALogError


def test_a_fresh_path_is_made_with_its_parents(folder: Path) -> None:
    with Log(folder) as log:
        assert log.path == str(folder)
    with Log(str(folder)):
        pass


def test_an_empty_folder_becomes_a_log(tmp_path: Path) -> None:
    Log(tmp_path).close()
    Log(tmp_path).close()


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "log"):
        with pytest.raises(NotALogError, match="not a folder"):
            Log(path)


def test_a_refused_folder_is_not_left_locked(folder: Path) -> None:
    Log(folder).close()
    for layout in (2, 1):
        with database(folder) as rows:
            rows.execute("UPDATE Cache SET value = ? WHERE key = 'layout'", (layout,))
        if layout == 2:
            with pytest.raises(LogVersionError):
                Log(folder)
    Log(folder).close()


def test_a_folder_that_cannot_be_made_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(LogOpenError, match="Permission denied"):
        Log(folder)


def test_a_folder_on_a_read_only_disk_is_named(folder: Path) -> None:
    Log(folder).close()
    folder.chmod(0o500)
    (folder / "dafka.lock").chmod(0o400)
    try:
        if os.access(folder / "dafka.lock", os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(LogOpenError, match="Permission denied"):
            Log(folder)
    finally:
        folder.chmod(0o700)


def test_a_path_that_diskcache_would_rewrite_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", "/nowhere")
    with pytest.raises(LogOpenError, match="environment variable"):
        Log(tmp_path / "$ELSEWHERE")
    Log(tmp_path / "$NO_SUCH_VARIABLE~").close()
    assert (tmp_path / "$NO_SUCH_VARIABLE~" / "cache.db").exists()
