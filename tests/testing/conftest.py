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

    def run_(source: str, *arguments: str, fresh: bool = False, installed: bool = False) -> pytest.RunResult:
        """A fresh interpreter has imported nothing of ours. Unless the package is to be found as an
        ``installed`` one, pytest imports no other packages' plugins: most of the time of a short run."""
        if not fresh:
            monkeypatch.setattr("_pytest.pytester.subprocess.Popen", forking.Popen)
        pytester.makepyfile(source)
        plugin: tuple[str, ...] = () if installed and INSTALLED else ("-p", "dafka.testing.plugin")
        if not installed:
            monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        if "-n" in arguments:
            plugin += ("-p", "xdist.plugin")
        return pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *arguments)

    return run_
