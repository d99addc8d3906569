"""Test runs of the pytest plugin."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import forking
import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = any(point.value == "dafka.testing.plugin" for point in entry_points(group="pytest11"))


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest in a process of its own on a test file, as in a project that has the package installed."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("DAFKA_EMBEDDED", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def run_(source: str, *arguments: str, fresh: bool = False) -> pytest.RunResult:
        """A fresh interpreter has imported nothing of ours."""
        if not fresh:
            monkeypatch.setattr("_pytest.pytester.subprocess.Popen", forking.Popen)
        pytester.makepyfile(source)
        plugin = () if INSTALLED else ("-p", "dafka.testing.plugin")
        return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *arguments)

    return run_
