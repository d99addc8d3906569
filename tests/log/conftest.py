from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place for a log that does not exist yet."""
    return tmp_path / "some" / "log"
