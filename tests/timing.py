"""Waiting for what becomes true, and what has to be quick, on machines that are busy with something else."""

from __future__ import annotations

import functools
import gc
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TypeVar

from dafka.hub.hub import get_hub

T = TypeVar("T")
Test = Callable[..., None]

REST = 10.0  # seconds for the output of a process that has ended
SECONDS = 120.0  # it only ends what never comes: a busy machine may stop a process for many seconds


def until(
    condition: Callable[[], T],
    what: object = "",
    seconds: float = SECONDS,
    *,
    by: subprocess.Popen[Any] | None = None,
) -> T:
    """What ``condition()`` returns once it is true; a failure that says ``what`` if it does not become so.

    A function ``what`` is called for what it then returns.

    ``by`` is the process that is to bring it about: once it has ended, the failure comes at once, with the
    process's output as far as it is in a pipe that nobody else reads.
    """
    deadline = time.monotonic() + seconds
    while True:
        has_ended = by is not None and by.poll() is not None
        outcome = condition()
        if outcome:
            return outcome
        if by is not None and has_ended:
            raise AssertionError(f"{_said(what) or condition}: {ending_of(by)}")
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {_said(what) or condition}"
        time.sleep(0.005)


def _said(what: object) -> object:
    return what() if callable(what) else what


def ending_of(process: subprocess.Popen[Any]) -> str:
    """How a process has ended, and what it has said that was not read."""
    try:
        status = f"the process has ended with status {process.wait(REST)}"
    except subprocess.TimeoutExpired:
        status = "the process goes on"
    said: list[str] = []

    def read() -> None:
        for pipe in (process.stdout, process.stderr):
            with suppress(OSError, ValueError):  # a test has closed it, or another thread reads it
                rest = pipe.read() if pipe is not None else ""
                said.append(rest if isinstance(rest, str) else rest.decode("utf-8", "backslashreplace"))

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(REST)  # it may go on, or processes that it has started keep its pipes open
    return status + ("".join(f"\n{one}" for one in said if one) or ", without a word")


def line_of(process: subprocess.Popen[Any], pipe: IO[T] | None, what: object = "a line") -> T:
    """The next line from a pipe of a process; a failure that says how it has ended if there is none."""
    assert pipe is not None
    line = pipe.readline()
    if not line:
        raise AssertionError(f"{what}: {ending_of(process)}")
    return line


def takes_less(seconds: float, action: Callable[[], object], attempts: int = 8) -> bool:
    """Whether one of some attempts takes less than this; there are more of them in the first minute.

    Code that waits for a time that it should not wait for does so each time; a busy machine holds up a few.
    """
    ends = time.monotonic() + 60.0
    while attempts > 0 or time.monotonic() < ends:
        attempts -= 1
        began = time.monotonic()
        action()
        if time.monotonic() - began < seconds:
            return True
    return False


class LongTurnError(AssertionError):
    """A turn of the hub took longer than it may."""


_slack = 1.0


def no_long_turn(seconds: float, limit: float) -> None:
    """Check the processor time of the longest turn."""
    if seconds > _slack * limit:
        raise LongTurnError(f"a turn took {1000 * seconds:.1f} ms of processor time")


@contextmanager
def short_turns() -> Iterator[None]:
    """Check the turns of what is done in between."""
    hub = get_hub()
    gc.collect()
    gc.disable()  # collections take long in a process of tests
    try:
        hub.run(hub.turns.reset)
        yield
        hub.run(lambda: None)
        longest = hub.turns.longest_cpu
    finally:
        gc.enable()
    no_long_turn(longest, 0.02)


def each_time(test: Test) -> Test:
    """A test of the hub's turns that fails if a turn is long in each of four attempts.

    Code that does much in one turn does so each time, and takes hundreds of milliseconds. Programs beside
    this one slow the processor down, to a third in the worst case: the last attempts allow for that.
    """

    @functools.wraps(test)
    def attempted(*args: Any, **kwargs: Any) -> None:
        global _slack
        try:
            for _slack in (1.0, 1.0, 2.0):
                try:
                    return test(*args, **kwargs)
                except LongTurnError:
                    continue
            _slack = 3.0
            return test(*args, **kwargs)
        finally:
            _slack = 1.0

    return attempted
