"""What is tidied up between rounds: a step at a time, in the pool, and after a pause where one has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.event
import gevent.threadpool
import pytest

from dafka.commit import tidying
from dafka.commit.tidying import Tidying
from dafka.hub.hub import get_hub
from dafka.log import LogWriteError
from dafka.log.limits import FREE_BYTES, WAL_BYTES


class Space:
    """The space of a log, as far as tidying asks for it; ``done`` is what was done."""

    def __init__(self) -> None:
        self.checkpoint_due = False
        self.wal_bytes = self.wal_file_bytes = 0
        self.removable_bytes = self.garbage_bytes = self.spare_bytes = 0
        self.done: list[str] = []
        self.fails: Exception | None = None
        self.left_to_sweep = 0

    @property
    def sweeps(self) -> bool:
        return self.left_to_sweep > 0

    def sweep(self) -> None:
        self._do("sweep")
        self.left_to_sweep -= 1

    def checkpoint(self, truncate: bool = False) -> None:
        self._do("truncate" if truncate else "checkpoint")

    def vacuum(self) -> None:
        self._do("vacuum")
        self.spare_bytes = max(0, self.spare_bytes - 1)

    def _do(self, what: str) -> None:
        self.done.append(what)
        if self.fails is not None:
            raise self.fails


class Round:
    def __init__(self, space: Space) -> None:
        self.space = space

    def commit(self) -> None:
        self.space._do("collect")
        self.space.garbage_bytes = max(0, self.space.garbage_bytes - 1)

    def finish(self) -> None:
        self.space.done.append("finish")


class Log:
    path = "db"

    def __init__(self) -> None:
        self.space = Space()

    def begin(self, appends: list[Any], collect_bytes: int) -> Round:
        return Round(self.space)


class Bench:
    """Tidying of such a log; runs in a green thread of the hub."""

    def __init__(self) -> None:
        self.log = Log()
        self.space = self.log.space
        self.pool = gevent.threadpool.ThreadPool(1)
        self.woken = gevent.event.Event()
        self.tidying = Tidying(self.log, self.pool, self.woken.set)  # type: ignore[arg-type]

    def steps(self) -> list[str]:
        """All there are to do now."""
        while self.tidying.step():
            pass
        done, self.space.done = self.space.done, []
        return done


@pytest.fixture
def in_hub() -> Iterator[Callable[[Callable[[Bench], object]], None]]:
    bench = get_hub().run(Bench)
    yield lambda function: get_hub().run(function, bench)
    get_hub().run(bench.pool.kill)


def test_tidying_without_work_does_nothing(in_hub):
    def check(bench: Bench) -> None:
        assert bench.steps() == []
        assert bench.tidying.retry_after is None

    in_hub(check)


def test_deleted_values_are_collected_first_and_free_space_is_given_back_then(in_hub):
    def check(bench: Bench) -> None:
        bench.space.garbage_bytes, bench.space.spare_bytes = 2, 2
        assert bench.steps() == ["collect", "finish", "collect", "finish", "vacuum", "vacuum"]
        bench.space.spare_bytes = 1
        assert bench.steps() == []  # nothing has been freed since
        bench.tidying.freed()
        assert bench.steps() == ["vacuum"]

    in_hub(check)


def test_files_of_a_killed_process_are_looked_for_last_and_with_rests(in_hub, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(tidying.time, "monotonic", lambda: now[0])

    def check(bench: Bench) -> None:
        bench.space.spare_bytes = 1
        bench.space.left_to_sweep = 2
        assert bench.steps() == ["vacuum", "sweep"]
        assert bench.steps() == []
        assert bench.tidying.retry_after == tidying.SWEEP_REST
        now[0] += tidying.SWEEP_REST
        assert bench.steps() == ["sweep"]
        assert bench.tidying.retry_after is None
        now[0] += tidying.SWEEP_REST
        assert bench.steps() == []

    in_hub(check)


def test_the_wal_is_copied_beside_the_rounds_and_once_more_when_that_has_ended(in_hub):
    def check(bench: Bench) -> None:
        bench.space.checkpoint_due = True
        bench.space.garbage_bytes = 1
        assert not bench.tidying.step()
        assert bench.tidying.copying
        assert not bench.tidying.step()  # writes of now would be copied with the rounds waiting
        bench.space.checkpoint_due = False
        assert bench.woken.wait(100)
        gevent.sleep(0)
        assert bench.steps() == ["checkpoint", "checkpoint", "collect", "finish"]
        assert not bench.tidying.copying

    in_hub(check)


def test_rounds_wait_for_a_copy_that_does_not_keep_up(in_hub):
    def check(bench: Bench) -> None:
        bench.space.checkpoint_due = True
        bench.tidying.step()
        bench.space.checkpoint_due, bench.space.wal_bytes = False, WAL_BYTES + 1
        bench.tidying.step()
        assert bench.space.done == ["checkpoint", "checkpoint"]
        assert not bench.tidying.copying

    in_hub(check)


def test_files_of_deleted_values_go_with_a_checkpoint_when_it_has_been_quiet(in_hub, monkeypatch):
    def check(bench: Bench) -> None:
        bench.space.removable_bytes = 1
        bench.tidying.freed()
        assert bench.steps() == []
        assert bench.tidying.retry_after == tidying.FILES_STAY
        monkeypatch.setattr(tidying, "FILES_STAY", 0.0)
        bench.tidying.step()
        assert bench.tidying.copying
        assert bench.tidying.retry_after is None
        bench.space.removable_bytes = 0
        assert bench.woken.wait(100)

    in_hub(check)


@pytest.mark.parametrize("error", [LogWriteError("db", "disk full"), ValueError("unexpected")])
def test_after_a_step_that_failed_it_rests_and_tries_again(in_hub, monkeypatch, caplog, error):
    def check(bench: Bench) -> None:
        bench.space.garbage_bytes, bench.space.fails = 1, error
        assert bench.steps() == ["collect", "finish"]
        assert bench.steps() == []
        assert bench.tidying.retry_after == tidying.REST
        monkeypatch.setattr(tidying.time, "monotonic", lambda: 1e12)
        bench.space.fails = None
        assert bench.steps() == ["collect", "finish"]

    in_hub(check)
    assert "tidying up the log db failed" in caplog.text


def test_a_copy_that_failed_wakes_the_writer_and_is_logged(in_hub, caplog):
    def check(bench: Bench) -> None:
        bench.space.checkpoint_due, bench.space.fails = True, LogWriteError("db", "disk full")
        bench.tidying.step()
        assert bench.woken.wait(100)

    in_hub(check)
    assert "a checkpoint of the log db failed: disk full" in caplog.text


@pytest.mark.parametrize(
    ("wal", "removable", "done"), [(0, 0, []), (FREE_BYTES + 1, 0, ["truncate"]), (0, 1, ["truncate"])]
)
def test_a_small_folder_is_left_behind(in_hub, wal, removable, done):
    def check(bench: Bench) -> None:
        bench.space.wal_file_bytes, bench.space.removable_bytes = wal, removable
        bench.tidying.finish()
        assert bench.space.done == done

    in_hub(check)


def test_the_end_waits_for_a_copy_that_is_under_way(in_hub):
    def check(bench: Bench) -> None:
        bench.space.checkpoint_due = True
        bench.tidying.step()
        bench.tidying.finish()
        assert bench.space.done == ["checkpoint"]

    in_hub(check)
