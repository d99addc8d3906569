"""What runs in a thread of the pool: its value and its errors go to the caller, and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import gevent.threadpool
import pytest

from dafka.hub.hub import get_hub
from dafka.hub.pool import run_in


@pytest.fixture
def pool() -> Iterator[Any]:
    pool = get_hub().run(gevent.threadpool.ThreadPool, 1)
    yield pool
    get_hub().run(pool.kill)


def test_the_value_comes_back_from_another_thread(pool: Any) -> None:
    def function(first: int, *, second: int) -> tuple[int, int]:
        return first + second, threading.get_ident()

    def call() -> tuple[int, bool]:
        total, thread = run_in(pool, function, 1, second=2)
        return total, thread != threading.get_ident()

    assert get_hub().run(call) == (3, True)


def test_an_error_is_raised_in_the_caller_and_not_printed(pool: Any, capfd: Any) -> None:
    def function() -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        get_hub().run(run_in, pool, function)
    assert get_hub().run(run_in, pool, int, "7") == 7  # the thread goes on
    assert capfd.readouterr() == ("", "")


def test_the_caller_does_the_work_where_no_thread_can_be_started(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*arguments: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    def call() -> bool:
        return run_in(pool, threading.get_ident) == threading.get_ident()

    with monkeypatch.context() as patched:
        patched.setattr(gevent.threadpool, "start_new_thread", start)
        assert get_hub().run(call)
    assert not get_hub().run(call)
