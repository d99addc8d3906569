"""One process at a time, and everybody else is told who has the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import forking
import pytest
from log.messages import ADDRESS

from dafka.log import Log, LogLockedError

ROOT = Path(__file__).parents[2]


@contextmanager
def owner(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has the log open until its standard input ends."""
    program = f"import sys; from dafka.log import Log; log = Log({str(folder)!r}); print('open', flush=True)"
    child = forking.Popen(
        [sys.executable, "-c", program + "; sys.stdin.read(); log.close()"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def in_a_forked_child(run: object) -> str:
    """What ``run()`` returns in a forked child, as text."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = run()  # type: ignore[operator]
        except BaseException as error:
            answer = f"unexpected {error!r}"
        os.write(send, str(answer).encode())
        os._exit(0)
    os.close(send)
    with open(receive, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(pid, 0)
    return answer


def test_a_second_process_is_told_which_one_has_the_log(folder: Path) -> None:
    with owner(folder) as child:
        with pytest.raises(LogLockedError, match=f"process {child.pid}") as caught:
            Log(folder)
        assert caught.value.pid == child.pid
        assert caught.value.path == str(folder)


def test_a_second_opener_in_the_same_process_is_told_so(folder: Path) -> None:
    with Log(folder) as log:
        with pytest.raises(LogLockedError, match="this process") as caught:
            Log(folder)
        assert caught.value.pid == os.getpid()
        log.write([(log.partition(b"hello", ADDRESS), [b"the first one goes on"])])


def test_the_lock_is_told_by_the_folder_whatever_its_name(folder: Path) -> None:
    with Log(folder):
        alias = folder.parent / "alias"
        alias.symlink_to(folder)
        with pytest.raises(LogLockedError):
            Log(alias)


def test_closing_and_dying_both_give_the_lock_back(folder: Path) -> None:
    Log(folder).close()
    with owner(folder) as child:
        child.kill()
        child.wait()
        Log(folder).close()


def test_a_refused_opener_leaves_the_name_of_the_owner(folder: Path) -> None:
    with Log(folder):
        for _ in range(2):
            with pytest.raises(LogLockedError, match=f"pid {os.getpid()}"):
                Log(folder)


def test_an_owner_that_could_not_write_its_name_is_an_unknown_process(folder: Path) -> None:
    with Log(folder):
        (folder / "dafka.lock").write_bytes(b"")
        with pytest.raises(LogLockedError, match="another process") as caught:
            Log(folder)
        assert caught.value.pid is None


def test_the_lock_is_free_for_others_while_a_forked_child_of_the_owner_lives_on(folder: Path) -> None:
    log = Log(folder)
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(send)
        os.read(receive, 1)  # until the parent is through
        os._exit(0)
    os.close(receive)
    try:
        log.close()
        Log(folder).close()
    finally:
        os.close(send)
        os.waitpid(pid, 0)
