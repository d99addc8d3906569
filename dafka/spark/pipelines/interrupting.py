"""Ctrl-C and SIGTERM while Spark works.

A handler that raises in the middle of a call into Java breaks the connection to it, and Spark's own handler
makes such a call. So the work is done in a thread of its own, and the main thread waits for it or a signal.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK = 0.2  # seconds between two looks at whether a signal has come


class InterruptedWork(Exception):
    """Signal ``number`` ended the work. ``result`` is what it returned all the same; None if it did not."""

    def __init__(self, number: int, result: object = None) -> None:
        super().__init__("interrupted")
        self.number = number
        self.result = result


def until_signal(work: Callable[[], T], stop: Callable[[], bool], patience: float = 30.0) -> T:
    """Run ``work`` in a thread of its own; return or raise its outcome. To be called by the main thread.

    SIGINT or SIGTERM calls ``stop``, which brings the work to its end within ``patience`` seconds or returns
    False, and raises InterruptedWork. A second signal does not wait for that.
    """
    received = threading.Event()
    numbers: list[int] = []

    def receive(number: int, frame: object) -> None:
        numbers.append(number)
        received.set()

    former = {number: signal.signal(number, receive) for number in _SIGNALS}
    try:
        done = _in_thread(work)
        while not received.is_set():
            if _wait(done, _LOOK):
                if received.is_set() and done.exception() is not None:
                    break  # a signal to the process group has ended Java, and with it the work
                return done.result()
        received.clear()
        stopping = _in_thread(stop)
        for _ in range(round(patience / _LOOK)):
            if _wait(done, _LOOK) or received.is_set() or (stopping.done() and not stopping.result()):
                break
        ended = done.done() and done.exception() is None
        raise InterruptedWork(numbers[0], done.result() if ended else None)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _in_thread(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    # A daemon, so that work which cannot be stopped does not keep the process.
    threading.Thread(target=run, name="dafka-pipeline", daemon=True).start()
    return done


def _wait(done: Future[T], seconds: float) -> bool:
    """Whether it is done within so many seconds."""
    return bool(wait([done], seconds).done)
