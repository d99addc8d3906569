"""A log with a writer for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commit.bench import Bench

from dafka.hub.hub import get_hub


@pytest.fixture
def in_hub(tmp_path: Path) -> Iterator[Callable[[Callable[[Bench], object]], None]]:
    """Run a function in the hub with a fresh log and writer."""
    hub = get_hub()
    bench = hub.run(Bench, tmp_path / "log")
    yield lambda function: hub.run(function, bench)
    hub.run(bench.writer.close)
    hub.run(bench.log.close)
