"""A log, and a folder for its backups."""

from __future__ import annotations

from pathlib import Path

import pytest
from backup.filled import append


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A log with some small values, and two files."""
    folder = str(tmp_path / "data")
    append(folder, b"one", 2)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "backups")
