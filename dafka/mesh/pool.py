"""Running what blocks, or takes long, in a thread beside the hub's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import gevent
import gevent.threadpool

P = ParamSpec("P")
T = TypeVar("T")

ASIDE_THREADS = 2
"""Threads that compute for the hub. What they compute is Python: with more of them the hub would wait longer
each time for the interpreter's lock, and nothing would be done sooner."""

_aside: WeakKeyDictionary[Any, gevent.threadpool.ThreadPool] = WeakKeyDictionary()  # by gevent's hub


def run_aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What ``function`` returns or raises, computed in a thread; waits as a green thread for its turn."""
    hub = gevent.get_hub()
    pool = _aside.get(hub)
    if pool is None:
        pool = _aside[hub] = gevent.threadpool.ThreadPool(ASIDE_THREADS, hub)
    return run_in(pool, function, *args, **kwargs)


def run_in(
    pool: gevent.threadpool.ThreadPool, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """``pool.apply``, but an error passes to the caller alone: gevent would print it to stderr as well."""
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
