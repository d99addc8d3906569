"""The console tools as a user starts them: real processes, real signals, the C quick start's steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dafka import Tower

DAFKA = [sys.executable, "-m", "dafka.cli"]
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*DAFKA, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DAFKA, *arguments], input=stdin, capture_output=True, text=True, timeout=30, env=ENVIRONMENT
    )


def test_lines_produced_are_stored_and_consumed_after_the_producer_is_gone(tmp_path: Path) -> None:
    with Tower() as tower:
        mesh = ["--sub", tower.addresses[0], "--pub", tower.addresses[1], "--bind", "127.0.0.1"]
        with running("store", str(tmp_path / "storedb"), *mesh) as store:
            assert store.stderr is not None
            assert store.stderr.readline().startswith("store: ")
            produced = run("produce", "hello", *mesh, stdin="A first event\nA second event\n")
            assert (produced.returncode, produced.stderr) == (0, "")
            consumed = run("consume", "hello", "--from", "earliest", "--count", "2", *mesh)
            assert consumed.stdout == "A first event\nA second event\n"
            store.send_signal(signal.SIGTERM)
            assert store.wait(10) == 0


def test_a_producer_without_a_store_says_what_is_not_acknowledged() -> None:
    with Tower() as tower:
        mesh = ["--sub", tower.addresses[0], "--pub", tower.addresses[1], "--bind", "127.0.0.1"]
        done = run("produce", "hello", "--timeout", "0.1", *mesh, stdin="one\ntwo\n")
        assert done.returncode == 1
        assert "2 records of topic 'hello'" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_tower_says_where_it_is_and_ends_on_a_signal() -> None:
    with running("tower", "--sub", "tcp://127.0.0.1:*", "--pub", "tcp://127.0.0.1:*") as tower:
        assert tower.stderr is not None
        assert "tcp://127.0.0.1:" in tower.stderr.readline()
        tower.send_signal(signal.SIGINT)
        assert tower.wait(10) == 0


def test_errors_are_one_line_that_names_the_value() -> None:
    done = run("tower", "--sub", "nonsense")
    assert done.returncode == 1
    assert done.stderr.strip().startswith("Error: a tower cannot bind 'nonsense'")
    assert run("consume", "hello", "--from", "5").returncode == 2
    assert "neither earliest" in run("consume", "hello", "--from", "soon").stderr
