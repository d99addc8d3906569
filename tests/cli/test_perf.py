"""``dafka perf``: each measurement ends and says what it measured."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import forking
import gevent
import pytest
from cli.tools import mesh, run
from click.testing import CliRunner
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.cli import main, perf
from dafka.mesh import limits
from dafka.roles.outputs import Output
from dafka.roles.store import StoreRole

REPORT = r"2000 records of 100 octets %s in [\d.]+ s: [\d,]+/s, [\d.]+ MB/s\n"


def test_perf_store_counts_what_a_store_has_acknowledged(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower) as store:
        done = run("perf", "store", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "published, stored and acknowledged", done.stdout), done.stderr
        assert [topic for topic, _ in store.heads()] == [b"$STORE_PERF"]


def test_perf_store_does_not_count_the_time_until_it_has_found_a_store(tmp_path: Path) -> None:
    with Tower() as tower:
        command = [sys.executable, "-m", "dafka.cli", "perf", "store", "10", "100", *mesh(tower)]
        with forking.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            with Consumer(["$STORE_PERF"], tower=tower, offset_reset="earliest") as consumer:
                next(consumer)
            published = time.monotonic()
            time.sleep(1.0)  # without a store
            with Store(tmp_path / "db", tower=tower):
                said, _ = process.communicate(timeout=200)
            waited = time.monotonic() - published
    seconds = re.search(r"in ([\d.]+) s:", said)
    assert seconds is not None, said
    assert float(seconds[1]) < waited - 0.9


def test_perf_consumer_counts_what_another_process_publishes() -> None:
    with Tower() as tower:
        done = run("perf", "consumer", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "consumed", done.stdout), done.stderr


def test_perf_consumer_counts_the_records_of_its_own_run(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        for count in ("1000", "2000"):
            done = run("perf", "consumer", count, "100", *mesh(tower))
        assert re.fullmatch(REPORT % "consumed", done.stdout), done.stdout


def test_perf_consumer_does_not_end_its_producer_before_the_store_has_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = StoreRole.stored

    def late(self: StoreRole, now: float, topic: bytes, address: bytes, end: int) -> list[Output]:
        if end == 2001:
            gevent.sleep(0.5)
        return stored(self, now, topic, address, end)

    monkeypatch.setattr(StoreRole, "stored", late)
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        done = run("perf", "consumer", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "consumed", done.stdout)
        assert done.stderr == ""


def test_perf_producer_asks_no_store() -> None:
    with Tower() as tower:
        done = run("perf", "producer", "2000", "100", *mesh(tower))
        assert re.fullmatch(REPORT % "published", done.stdout), done.stderr


def _published_to_a_store(tower: Tower, store: Store) -> Producer:
    producer = Producer("$PRODUCER_PERF", min_stores=0, tower=tower)
    producer.send(b"the first")
    until(lambda: producer.unstored or store.heads())  # it has heard of the store
    for _ in range(2000):
        producer.send(b"x" * 100)
    return producer


def test_perf_producer_stays_until_stores_have_what_nobody_else_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = StoreRole.stored

    def late(self: StoreRole, now: float, topic: bytes, address: bytes, end: int) -> list[Output]:
        gevent.sleep(0.2)
        return stored(self, now, topic, address, end)

    with Tower() as tower, Store(tmp_path / "db", tower=tower) as store:
        monkeypatch.setattr(StoreRole, "stored", late)
        monkeypatch.setattr(perf, "LEFT_SECONDS", 200.0)
        producer = _published_to_a_store(tower, store)
        perf._wait_until_stored(producer)
        assert list(store.heads().values()) == [2000]
        assert producer.unstored == 0
        producer.close()
    assert capsys.readouterr().err == ""


def test_perf_producer_says_what_it_takes_along_from_a_store_that_does_not_get_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower) as store:
        monkeypatch.setattr(StoreRole, "stored", lambda *_: [])
        monkeypatch.setattr(perf, "LEFT_SECONDS", 0.3)
        with _published_to_a_store(tower, store) as producer:
            perf._wait_until_stored(producer)
    assert "a store has not acknowledged 2001 of the records in 0 s; they go with" in capsys.readouterr().err


def test_perf_producer_waits_for_as_many_stores_as_it_is_told(tmp_path: Path) -> None:
    with Tower() as tower:
        asked = mesh(tower)
        command = [sys.executable, "-m", "dafka.cli", "perf", "producer", "2000", "100", "--min-stores", "1"]
        with forking.Popen([*command, *asked], stdout=subprocess.PIPE, text=True) as process:
            with Consumer(["$PRODUCER_PERF"], tower=tower, offset_reset="earliest") as consumer:
                assert [next(consumer).sequence for _ in range(2001)] == list(range(2001))
            with Store(tmp_path / "db", tower=tower) as store:
                said, _ = process.communicate(timeout=200)
                assert re.fullmatch(REPORT % "published", said)
                assert list(store.heads().values()) == [2000]


def test_perf_consumers_producer_goes_no_further_ahead_of_the_stores_than_it_can_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it forgets records that nobody has, and the measurement counts losses."""
    monkeypatch.setattr(perf, "STALLED", 2.0)
    with Tower() as tower:
        done = CliRunner().invoke(main, ["perf", "consumer", "80", "1000000", *mesh(tower)])
        assert "If no store is running, give --min-stores 0" in done.output


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
