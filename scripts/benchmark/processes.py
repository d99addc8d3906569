"""Measurements run in fresh processes, so that no measurement affects the next one."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

SECONDS = 300  # until a measurement is given up

Figures = tuple[float, ...]


def percentiles(seconds: list[float]) -> Figures:
    """p50 and p99."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


_spawning = multiprocessing.get_context("spawn")


class MeasurementError(Exception):
    """A program of a measurement failed; its traceback is the message."""


class StoodStillError(MeasurementError):
    """Nothing was heard of a measurement for too long."""


def run(*programs: Callable[..., Figures], seconds: float = SECONDS) -> Figures:
    """The figures that the programs return, each run in a process of its own, all at the same time.

    Raises MeasurementError if one fails, or if nothing is heard of them for so many seconds.

    One program is called without arguments. Two programs are called with the two ends of a pipe, over which
    they agree on addresses and on when to begin and to stop.
    """
    links: list[tuple[Connection, ...]] = [()]
    if len(programs) == 2:
        links = [(end,) for end in _spawning.Pipe()]
    results, processes = [], []
    for program, link in zip(programs, links, strict=True):
        ours, theirs = _spawning.Pipe(duplex=False)
        process = _spawning.Process(target=_run, args=(theirs, program, link), daemon=True)
        process.start()
        theirs.close()
        results.append(ours)
        processes.append(process)
    try:
        return _collect(results, seconds)
    finally:
        for process in processes:
            process.kill()  # it has reported its figures, or waits for a process that failed
            process.join()


def _collect(results: list[Connection], seconds: float) -> Figures:
    figures: dict[Connection, Figures] = {}
    while len(figures) < len(results):
        ready = wait([result for result in results if result not in figures], timeout=seconds)
        if not ready:
            raise StoodStillError(f"a measurement took more than {seconds:g} s")
        for result in ready:
            assert isinstance(result, Connection)
            try:
                failure, figures[result] = result.recv()
            except EOFError:
                raise MeasurementError("a measurement's process died") from None
            if failure:
                raise MeasurementError(failure)
    return tuple(figure for result in results for figure in figures[result])


def _run(result: Connection, program: Callable[..., Figures], link: tuple[Any, ...]) -> None:
    try:
        result.send((None, program(*link)))
    except BaseException:
        result.send((traceback.format_exc(), ()))
