"""Calls that run to completion, whatever becomes of their caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import gevent.event

from dafka.hub.hub import Hub

P = ParamSpec("P")
T = TypeVar("T")


def run_to_completion(hub: Hub, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns or raises as ``call`` does, which runs in a green thread of its own.

    The caller may be ended meanwhile, by Ctrl-C or a timeout in the thread that waits for it. A call that
    changes the log first and memory afterwards must not stop between the two.
    """
    outcome = gevent.event.AsyncResult()

    def carry_out() -> None:
        try:
            outcome.set(call(*args, **kwargs))
        except BaseException as error:  # or the caller would wait for ever
            outcome.set_exception(error)

    hub.spawn(carry_out)
    return outcome.get()  # type: ignore[no-any-return]
