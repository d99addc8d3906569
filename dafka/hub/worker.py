"""One thread beside the hub whose functions may call the hub, without holding the thread meanwhile.

A function that runs there is a greenlet of that thread. When it asks the hub for something it stays where it
is, and the thread takes the next function. The caller, a green thread of the hub, carries out the call and
has the function go on with its outcome. So a function that waits for a commit keeps no other one waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from dafka.hub.hub import get_hub, is_hub_here
from dafka.hub.pool import Aside
from dafka.hub.running_time import RunningTime, is_measured, running_time

P = ParamSpec("P")
T = TypeVar("T")


class Worker(Aside):
    """The thread; a process has one for each loop of gevent that runs something there."""

    def __init__(self) -> None:
        super().__init__(1)  # greenlets do not move from thread to thread

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns or raises as ``function`` does, which may :func:`ask`; waits as a green thread.

        Elsewhere it is a plain call.
        """
        if not is_hub_here():
            return function(*args, **kwargs)
        whole = partial(function, *args, **kwargs)
        measured = is_measured()
        step = super().run(_begin, whole if measured is None else partial(_measure, whole, measured))
        while type(step) is _Question:
            asking, call = step
            del step  # arguments and outcome are freed where the function ends, not in a turn of the hub
            try:
                outcome = [call()]
            except GreenletExit as end:  # the caller is killed
                super().run(_throw, asking, end)
                raise
            except BaseException as error:
                del call
                step = super().run(_throw, asking, error)
            else:
                del call
                step = super().run(_go_on, asking, outcome)
        return step  # type: ignore[no-any-return]


REQUESTS = Worker()
"""For large requests and responses of clients: all of it is Python."""


def ask(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns or raises as ``call`` does in a green thread of the hub; for functions in a :class:`Worker`.

    In any other thread it is :meth:`dafka.hub.hub.Hub.run`.
    """
    function = getcurrent()
    if not isinstance(function, _Function):
        return get_hub().run(call, *args, **kwargs)
    answer = function.parent.switch(_Question(function, partial(call, *args, **kwargs)))
    return answer  # type: ignore[no-any-return]


class _Function(greenlet):  # type: ignore[misc]
    """A function that runs in a worker."""


class _Question(NamedTuple):
    """A function's question to the hub."""

    function: _Function
    call: Callable[[], Any]


def _measure(function: Callable[[], Any], spent: RunningTime) -> Any:
    """The result of a function; its time counts for its caller, which waits meanwhile."""
    mine = RunningTime()
    try:
        with running_time() as mine:
            return function()
    finally:
        spent.seconds += mine.seconds


def _begin(function: Callable[[], Any]) -> Any:
    """The result of a function, or its first question."""
    return _Function(function).switch()


def _go_on(function: _Function, outcome: list[Any]) -> Any:
    function.parent = getcurrent()
    return function.switch(outcome.pop())


def _throw(function: _Function, error: BaseException) -> Any:
    function.parent = getcurrent()
    return function.throw(error)
