"""Histories of a compacted topic beside a model of it (:mod:`broker.embedded.compaction_model`), by seeds.

scripts/compaction --seeds 5000            # seeds 0 to 4999, on every core
scripts/compaction --seed 123              # one of them again
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from broker.embedded.compaction_model import History  # noqa: E402 - needs the path

from dafka import Broker  # noqa: E402
from dafka.commit.retention import Cleaner  # noqa: E402
from dafka.log import compaction  # noqa: E402
from dafka.log.verify import verify  # noqa: E402

STEPS = 120


def play(seed: int) -> None:
    """Play the history of a seed; AssertionError says what did not hold."""
    folder = tempfile.mkdtemp(prefix="dafka-test-")
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder)
        undo.enter_context(patch.object(Cleaner, "_run", lambda *_: None))  # its steps are taken here
        gap = random.Random(seed).choice((1, 3, compaction.COMPACTION_GAP))
        undo.enter_context(patch.object(compaction, "COMPACTION_GAP", gap))
        broker = Broker(os.path.join(folder, "data")).start()
        undo.callback(broker.stop)
        history = History(seed, broker)
        clock = SimpleNamespace(time=lambda: (history.now + 0.5) / 1000)  # never 1 ms less
        undo.enter_context(patch("dafka.broker.records.leader.time", clock))
        for _ in range(STEPS):
            history.step()
            history.check()
        history.finish()
        broker.stop()
        *_, seen = verify(os.path.join(folder, "data"))
        assert seen.damages == []


def outcome(seed: int) -> str:
    """What did not hold, in words; empty if all did."""
    try:
        play(seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        return f"seed {seed}: {type(error).__name__}: {error} ({place})"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/compaction", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=2000, metavar="N", help="how many (default: 2000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="only this one")
    options = parser.parse_args()
    if options.seed is not None:
        play(options.seed)
        return
    began, failed = time.monotonic(), 0
    with multiprocessing.get_context("spawn").Pool() as pool:
        for said in pool.imap_unordered(outcome, range(options.first, options.first + options.seeds)):
            if said:
                failed += 1
                print(said, flush=True)
    print(f"{options.seeds} histories, {failed} violations, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
