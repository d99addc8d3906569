"""``dafka perf``: each measurement ends and says what it measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.tools import mesh, run
from click.testing import CliRunner

from dafka import Store, Tower
from dafka.cli import main
from dafka.mesh import limits

REPORT = r"2000 records of 100 octets %s in [\d.]+ s: [\d,]+/s, [\d.]+ MB/s\n"


def test_perf_store_counts_what_a_store_has_acknowledged(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower) as store:
        done = run("perf", "store", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "published, stored and acknowledged", done.stdout), done.stderr
        assert [topic for topic, _ in store.heads()] == [b"$STORE_PERF"]


def test_perf_consumer_counts_what_another_process_publishes() -> None:
    with Tower() as tower:
        done = run("perf", "consumer", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "consumed", done.stdout), done.stderr


def test_perf_producer_asks_no_store() -> None:
    with Tower() as tower:
        done = run("perf", "producer", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "published", done.stdout), done.stderr


@pytest.mark.parametrize("tool", ["store", "consumer", "producer"])
def test_records_go_in_batches_too(tmp_path: Path, tool: str) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        done = run("perf", tool, "2000", "100", "--batch", *mesh(tower))
        assert re.fullmatch(REPORT % "(published|consumed|published, stored and acknowledged)", done.stdout)


@pytest.mark.parametrize("tool", ["store", "consumer", "producer"])
def test_a_size_that_no_record_has_is_refused(tool: str) -> None:
    done = CliRunner().invoke(main, ["perf", tool, "10", "99999999999"])
    assert done.exit_code == 2
    assert "Invalid value for 'SIZE'" in done.output
    assert f"<={limits.RECORD_OCTETS}" in done.output
