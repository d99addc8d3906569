"""Running what blocks, or takes long, in a thread beside the hub's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import gevent
import gevent.threadpool

from dafka.hub.hub import is_hub_here

P = ParamSpec("P")
T = TypeVar("T")


class Aside:
    """Threads that compute for the hub what would make a long turn of it.

    They run Python code: with many of them the hub would wait longer each time for the interpreter's lock,
    and nothing would be done sooner.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pools: WeakKeyDictionary[Any, gevent.threadpool.ThreadPool] = WeakKeyDictionary()  # by loop

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns or raises as ``function`` does; waits as a green thread. Elsewhere it is a plain call."""
        if not is_hub_here():
            return function(*args, **kwargs)
        hub = gevent.get_hub()
        pool = self._pools.get(hub)
        if pool is None:
            pool = self._pools[hub] = gevent.threadpool.ThreadPool(self._threads, hub)
        return run_in(pool, function, *args, **kwargs)


BATCHES = Aside(2)
"""For record batches that are walked through, compressed or decompressed."""


def run_in(
    pool: gevent.threadpool.ThreadPool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """``pool.apply``, but an error passes to the caller alone: gevent would print it to stderr as well.

    Where the pool needs a thread more and none can be started, the caller's does the work: at the exit of a
    program Python 3.12.0 to 3.12.2 start none.
    """
    if pool.size < pool.maxsize and pool.task_queue.unfinished_tasks >= pool.size:
        try:
            pool.size += 1
        except RuntimeError:
            return function(*args, **kwargs)
    value, error = pool.apply(_outcome, (function, args, kwargs))
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _outcome(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **kwargs), None
    except BaseException as error:
        return None, error
