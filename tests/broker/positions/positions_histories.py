"""Histories of a partition with positions beside a model (:mod:`broker.positions.positions_model`), by seeds.

scripts/positions --seeds 5000            # seeds 0 to 4999, on every core
scripts/positions --seed 123              # one of them again
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from broker.positions.positions_model import History  # noqa: E402 - needs the path
from histories import main  # noqa: E402

from dafka.broker.positions import checkpoints, lookup, measuring, partition, reading  # noqa: E402
from dafka.commit.retention import Cleaner  # noqa: E402
from dafka.log.verify import verify  # noqa: E402

STEPS = 100


def play(seed: int) -> None:
    """Play the history of a seed; AssertionError says what did not hold."""
    folder = tempfile.mkdtemp(prefix="dafka-test-")
    chance = random.Random(seed)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder)
        undo.enter_context(patch.object(Cleaner, "_run", lambda *_: None))  # its steps are taken here
        # Small bounds, so that a short history goes beyond each of them; in some seeds those in use.
        if chance.random() < 0.8:
            bounds = [
                (checkpoints, "CHECKPOINT_BLOCK", chance.choice((2, 3, 7))),
                (checkpoints, "CHECKPOINT_OCTETS", chance.choice((1, 100, 700, 5000))),
                (checkpoints, "CHECKPOINT_BYTES", chance.choice((300, 5000))),
                (reading, "POSITIONS_READ", chance.choice((1, 1000, 20_000))),
                (lookup, "POSITIONS_READ", chance.choice((1, 1000, 20_000))),
                (measuring, "_JOINED_OCTETS", chance.choice((0, 100, 2000))),
                (reading, "_INLINE_BYTES", chance.choice((0, 1000))),
                (partition, "_BOUNDARIES", chance.choice((1, 50))),
            ]
            for module, name, bound in bounds:
                undo.enter_context(patch.object(module, name, bound))
        history = History(seed, folder)
        undo.callback(lambda: history.close())
        for _ in range(STEPS):
            history.step()
        history.finish()
        history.close()
        *_, seen = verify(history.path)
        assert seen.damages == []


if __name__ == "__main__":
    main("scripts/positions", (__doc__ or "").partition("\n")[0], play, 2000)
