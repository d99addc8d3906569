"""Waiting for what another process brings about."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import forking
import pytest
import timing
from timing import ending_of, line_of, until


@contextmanager
def program(code: str) -> Iterator[subprocess.Popen[str]]:
    with forking.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_a_wait_ends_at_once_with_the_output_of_the_process_that_has_ended() -> None:
    with program("import sys; print('here'); sys.exit('no port is free')") as process:
        began = time.monotonic()
        with pytest.raises(AssertionError) as raised:
            until(lambda: False, "it serves", 1000.0, by=process)
        assert time.monotonic() - began < 500.0
    assert str(raised.value) == ("it serves: the process has ended with status 1\nhere\n\nno port is free\n")


def test_a_condition_that_the_ended_process_has_brought_about_is_seen() -> None:
    with program("") as process:
        process.wait()
        assert until(lambda: 7, by=process) == 7


def test_a_line_of_a_process_that_has_ended_is_a_failure_that_says_how() -> None:
    with program("import sys; print('first'); sys.exit('the end')") as process:
        assert line_of(process, process.stdout) == "first\n"
        with pytest.raises(AssertionError, match="its address: the process has ended with status 1\nthe end"):
            line_of(process, process.stdout, "its address")


def test_processes_that_keep_its_pipes_open_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "REST", 0.2)
    with program(
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'])\n"
        "print('first', flush=True); sys.stderr.close(); import os; os._exit(3)"
    ) as process:
        assert line_of(process, process.stdout) == "first\n"
        assert ending_of(process) == "the process has ended with status 3, without a word"
        process.stdin.close()  # the one that is left ends
