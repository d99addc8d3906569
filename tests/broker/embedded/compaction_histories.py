"""Histories of a compacted topic beside a model of it (:mod:`broker.embedded.compaction_model`), by seeds.

scripts/compaction --seeds 5000            # seeds 0 to 4999, on every core
scripts/compaction --seed 123              # one of them again
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from broker.embedded.compaction_model import History  # noqa: E402 - needs the path
from histories import main  # noqa: E402

from dafka import Broker  # noqa: E402
from dafka.broker.records.leader import Leaders  # noqa: E402
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
        make = Leaders.__init__

        def make_with_clock(leaders: Leaders, *arguments: Any) -> None:
            make(leaders, *arguments)
            leaders._clock = lambda: (history.now + 0.5) / 1000  # never 1 ms less

        undo.enter_context(patch.object(Leaders, "__init__", make_with_clock))  # at each start of the broker
        broker = Broker(os.path.join(folder, "data")).start()
        undo.callback(broker.stop)
        history = History(seed, broker)
        for _ in range(STEPS):
            history.step()
            history.check()
        history.finish()
        broker.stop()
        *_, seen = verify(os.path.join(folder, "data"))
        assert seen.damages == []


if __name__ == "__main__":
    main("scripts/compaction", (__doc__ or "").partition("\n")[0], play, 2000)
