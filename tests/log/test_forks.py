"""An open log stays with the process that opened it when that process forks."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from pathlib import Path

from log.messages import ADDRESS

from dafka.log import Log, LogClosedError, LogForkedError, forks


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


def test_a_forked_child_cannot_use_the_log_and_does_not_keep_the_lock(folder: Path) -> None:
    log = Log(folder)
    partition = log.partition(b"hello", ADDRESS)
    log.write([(partition, [b"1"])])

    def use() -> str:
        try:
            log.write([(partition, [b"2"])])
        except LogForkedError as error:
            assert isinstance(error, LogClosedError)
            log.close()
            return str(error)
        return "no error"

    assert "opened before this process was forked" in in_a_forked_child(use)
    log.write([(partition, [b"3"])])
    log.close()
    with Log(folder) as log:
        assert log.read(log.partition(b"hello", ADDRESS), 0, count=9, max_bytes=99)[1] == [b"1", b"3"]


def test_a_child_that_is_forked_later_may_open_the_log_itself(folder: Path) -> None:
    Log(folder).close()

    def open_it() -> str:
        with Log(folder) as log:
            return f"{len(log.partitions())} partitions"

    assert in_a_forked_child(open_it) == "0 partitions"


def test_every_open_log_is_left_to_the_parent_and_closed_ones_are_not(tmp_path: Path) -> None:
    class Opened:
        left = 0

        def connections(self) -> list[object]:
            return []

        def leave_to_parent(self) -> object:
            self.left += 1
            return object()

    kept, gone = Opened(), Opened()
    forks.opened(kept)
    forks.opened(gone)
    forks.closed(gone)

    def left() -> tuple[int, int, int]:
        return kept.left, gone.left, len(forks._open)

    before = len(forks._of_parent)
    assert in_a_forked_child(left) == "(1, 0, 0)"
    assert (kept.left, len(forks._of_parent)) == (0, before)
    forks.closed(kept)


def test_connections_of_all_threads_stay_open_in_a_forked_child(folder: Path) -> None:
    """Nothing in the child closes what belongs to the parent, whichever of its threads has opened it."""

    def of_databases() -> int:
        gc.collect()
        return sum(isinstance(one, sqlite3.Connection) for one in gc.get_objects())

    written, ends = threading.Event(), threading.Event()
    before = of_databases()
    with Log(folder) as log:

        def write() -> None:
            log.write([(log.partition(b"hello", ADDRESS), [b"1"])])
            written.set()
            ends.wait(60)

        other = threading.Thread(target=write)
        other.start()
        assert written.wait(60)
        assert of_databases() == before + 2
        assert in_a_forked_child(of_databases) == str(before + 2)
        ends.set()
        other.join()
        assert of_databases() == before + 1  # that of a thread ends with it
