"""The simulation by hand: many seeds, or one of them again.

python -m tests.simulation --seeds 10000             # seeds 0 to 9999, on every core
python -m tests.simulation --seed 123 --trace        # one seed, with every message that arrives
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from functools import partial

from tests.seeds import outcome

from .scenario import build, simulate


def main(arguments: list[str] | None = None) -> int:
    purpose = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=purpose)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--processes", type=int, default=None, metavar="N", help="default: one per core")
    parser.add_argument("--seed", type=int, metavar="SEED", help="only this one")
    parser.add_argument("--trace", action="store_true", help="with --seed: print everything that arrives")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _one(options.seed, options.trace)
    return _many(range(options.first, options.first + options.seeds), options.processes)


def _one(seed: int, trace: bool) -> int:
    network = build(seed)
    if trace:
        network.trace = print
    try:
        simulate(seed, network)
    except AssertionError:
        traceback.print_exc(file=sys.stdout)
    else:
        print(f"seed {seed}: no violation in {network.now:.0f} s and {network.messages} messages")
        print(f"digest {network.digest:08x}")
        return 0
    return 1


def _many(seeds: range, processes: int | None) -> int:
    began = time.monotonic()
    done = messages = violations = 0
    shown = sys.stderr.isatty()
    with multiprocessing.Pool(processes) as pool:
        for seed, carried, violation in pool.imap_unordered(partial(outcome, simulate), seeds, chunksize=5):
            done += 1
            messages += carried
            if violation:
                violations += 1
                print(f"seed {seed}: {violation}")
                print(f"    again: python -m tests.simulation --seed {seed} --trace", flush=True)
            if done % (50 if shown else 1000) == 0:
                line = f"{done} of {len(seeds)} seeds, {violations} violations"
                seconds = time.monotonic() - began
                before, after = ("\r", "") if shown else ("", "\n")
                print(f"{before}{line}, {seconds:.0f} s", end=after, file=sys.stderr, flush=True)
    if shown:
        print(file=sys.stderr)
    carried_all = f"{messages:,}".replace(",", " ")
    print(f"{carried_all} messages in {time.monotonic() - began:.0f} s")
    total = f"{len(seeds):,}".replace(",", " ")
    print(f"{total} seeds, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
