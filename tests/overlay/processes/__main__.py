"""A ring with chords of processes, which are killed and restarted while all of them publish."""

from __future__ import annotations

import argparse
import time

from .network import missing
from .ring import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/overlay_ring", description=__doc__)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=20, help="of killing and restarting (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loss", type=float, default=0.0, help="of the packets between them, 0 to 1 (0)")
    options = parser.parse_args()
    if options.loss and missing():
        parser.error(f"no network that loses packets: {missing()}")
    began = time.monotonic()
    run(options.nodes, options.rounds, options.seed, options.loss)
    print(f"{options.nodes} nodes, {options.rounds} rounds: {time.monotonic() - began:.0f} s, nothing twice")


if __name__ == "__main__":
    main()
