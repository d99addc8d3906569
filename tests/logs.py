"""What a test has logged, without what other tests have left running in the same process."""

from __future__ import annotations

import pytest


def logged(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """The messages of one logger."""
    return [record.getMessage() for record in caplog.records if record.name == name]
