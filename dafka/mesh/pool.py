"""Running what blocks in a thread of gevent's pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import gevent.threadpool

P = ParamSpec("P")
T = TypeVar("T")


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
