"""The command line of histories: what a seed stands for, beside a model of what has to come out."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial


def main(script: str, what: str, play: Callable[[int], None], seeds: int) -> None:
    """Play many seeds on every core, or one; ``play(seed)`` raises AssertionError for what did not hold."""
    parser = argparse.ArgumentParser(prog=script, description=what)
    parser.add_argument("--seeds", type=int, default=seeds, metavar="N", help=f"how many (default: {seeds})")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="only this one")
    options = parser.parse_args()
    if options.seed is not None:
        play(options.seed)
        return
    began, failed = time.monotonic(), 0
    played = range(options.first, options.first + options.seeds)
    with multiprocessing.get_context("spawn").Pool() as pool:
        for said in pool.imap_unordered(partial(outcome, play), played):
            if said:
                failed += 1
                print(said, flush=True)
    print(f"{options.seeds} histories, {failed} violations, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


def outcome(play: Callable[[int], None], seed: int) -> str:
    """What did not hold, in words; empty if all did."""
    try:
        play(seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        return f"seed {seed}: {type(error).__name__}: {str(error)[:500]} ({place})"
    return ""
