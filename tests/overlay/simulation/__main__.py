"""The simulations by hand: many seeds, or one of them again.

python -m tests.overlay.simulation --seeds 10000             # seeds 0 to 9999, on every core
python -m tests.overlay.simulation --seed 123 --trace        # one seed, with every message that arrives
python -m tests.overlay.simulation --of stores               # of data stores; channels: of channels
python -m tests.overlay.simulation --of readers              # of slow readers
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.overlay.channels import simulation as channels
from tests.overlay.stores import simulation as stores
from tests.seeds import outcome

from . import slow_readers
from .scenario import build, simulate

SIMULATIONS: dict[str, Callable[[int], Any]] = {
    "peers": simulate,
    "readers": slow_readers.simulate,
    "channels": channels.simulate,
    "stores": stores.simulate,
}


def main(arguments: list[str] | None = None) -> int:
    purpose = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.overlay.simulation", description=purpose)
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--processes", type=int, default=None, metavar="N", help="default: one per core")
    parser.add_argument("--of", choices=sorted(SIMULATIONS), default="peers", help="what (default: peers)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="only this one")
    parser.add_argument("--trace", action="store_true", help="with --seed: print everything that arrives")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _one(options.of, options.seed, options.trace)
    seeds = range(options.first, options.first + options.seeds)
    return _many(options.of, seeds, options.processes)


def _one(of: str, seed: int, trace: bool) -> int:
    try:
        if of != "peers":
            print(f"seed {seed}: no violation in {SIMULATIONS[of](seed).messages} messages")
            return 0
        network = build(seed)
        if trace:
            network.trace = print
        simulate(seed, network)
    except AssertionError:
        traceback.print_exc(file=sys.stdout)
        return 1
    print(f"seed {seed}: no violation in {network.now:.0f} s and {network.messages} messages")
    print(f"digest {network.digest:08x}")
    return 0


def _many(of: str, seeds: range, processes: int | None) -> int:
    began = time.monotonic()
    done = messages = violations = 0
    with multiprocessing.Pool(processes) as pool:
        for seed, carried, violation in pool.imap_unordered(
            partial(outcome, SIMULATIONS[of]), seeds, chunksize=5
        ):
            done += 1
            messages += carried
            if violation:
                violations += 1
                print(f"seed {seed}: {violation}")
                command = f"python -m tests.overlay.simulation --of {of} --seed {seed} --trace"
                print(f"    again: {command}", flush=True)
            if done % 500 == 0:
                seconds = time.monotonic() - began
                line = f"{done} of {len(seeds)} seeds, {violations} violations, {seconds:.0f} s"
                print(line, file=sys.stderr, flush=True)
    carried_all = f"{messages:,}".replace(",", " ")
    print(f"{carried_all} messages in {time.monotonic() - began:.0f} s")
    total = f"{len(seeds):,}".replace(",", " ")
    print(f"{total} seeds, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
