"""The pid file: a lock as long as its process runs, with the pid as soon as it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forking
import pytest

from dafka.cli.zper.pid_file import PidFile, RunningError, is_held, pid_of, wait_until_released

HOLDER = """
import sys
from pathlib import Path
from dafka.cli.zper.pid_file import PidFile
with PidFile(Path(sys.argv[1])) as file:
    file.serving()
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "zper.pid"


def test_it_has_the_pid_as_soon_as_the_process_serves_and_is_gone_at_the_end(path: Path) -> None:
    with PidFile(path) as file:
        assert is_held(path)
        assert pid_of(path) is None
        file.serving()
        assert pid_of(path) == os.getpid()
    assert not path.exists()
    assert not is_held(path)


def test_a_second_holder_is_refused_with_the_pid_of_the_first(path: Path) -> None:
    with PidFile(path) as file:
        with pytest.raises(RunningError, match="a server runs already: process unknown holds"):
            PidFile(path)
        file.serving()
        with pytest.raises(RunningError, match=f"process {os.getpid()} holds {path}"):
            PidFile(path)
    with PidFile(path):
        pass


def test_the_pid_file_of_a_killed_process_is_not_held_and_is_removed(path: Path) -> None:
    holder = forking.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_held(path) and pid_of(path) == holder.pid
        assert not wait_until_released(path, 0.05)
    finally:
        holder.kill()
        holder.communicate()
    assert path.exists()
    assert wait_until_released(path, 100.0)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"12", b"x\n", b"-5\n", b"\xff\n", b"1\n2\n"])
def test_a_file_without_exactly_one_pid_says_none(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert pid_of(path) is None
