"""A master with a disk backend that is killed (SIGKILL) in the middle of writing, again and again.

A child process attaches the store and increments counters, puts and erases keys and expects expiries; after
each ``await_idle`` it says how far it is. It is killed at a random moment. Acknowledged changes have to be
there, nothing may be there that was never written, and counters have to agree with the keys of the same step.

    python tests/overlay.node.stores.crashes.py --kills 100 --seed 1

takes some two minutes and prints a line at the end.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[4]
sys.path.append(str(ROOT / "tests"))  # for a run as a program

import forking  # noqa: E402 - needs the path

STARTS_WITHIN = 60.0


class Crashes:
    """The store is in ``folder``. One seed decides when the children are killed."""

    def __init__(self, folder: str | os.PathLike[str], seed: int) -> None:
        self.folder = Path(folder) / "store"
        self.kills = 0
        self.acknowledged = 0
        """Steps that were said to be safe."""
        self._random = random.Random(seed)

    def crash(self) -> None:
        """Start a child, kill it, and see what is there."""
        child = forking.Popen(
            [sys.executable, __file__, "--child", str(self.folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert child.stdout is not None
        watchdog = threading.Timer(STARTS_WITHIN, child.kill)
        watchdog.start()
        steps: list[int] = []
        try:
            first = child.stdout.readline().split()
            assert first[:1] == ["at"], f"the child said {first}"
            found = int(first[1])
            assert found >= self.acknowledged, f"step {self.acknowledged} was safe, the store is at {found}"
            moment = self._random.choice([0.0, 0.02, 0.1, 0.3])
            killer = threading.Timer(moment * self._random.random(), os.kill, (child.pid, signal.SIGKILL))
            killer.start()
            steps = [int(line.split()[1]) for line in child.stdout if line.endswith("\n")]
            killer.join()
        finally:
            watchdog.cancel()
            child.kill()
            child.wait()
            child.stdout.close()
        self.kills += 1
        self.acknowledged = max([self.acknowledged, *steps])

    def check(self) -> None:
        """Open the store a last time."""
        found = check(self.folder)
        assert found >= self.acknowledged, f"step {self.acknowledged} was safe, the store is at {found}"


def check(folder: Path) -> int:
    """How many steps the store has; that what they wrote agrees. Each step is as many writes in order."""
    from dafka.overlay import Disk, Endpoint

    with Endpoint() as endpoint, endpoint.attach_master("st", Disk(folder)) as store:
        return verify(store)


def verify(store) -> int:  # type: ignore[no-untyped-def]
    done = store.get("done", 0)  # the last write of a step
    begun = store.get("begun", 0)  # the first one
    assert done <= begun <= done + 1, f"step {begun} has begun, {done} is done"
    counted = store.get("count", 0) - store.get("again", 0)
    assert done <= counted <= begun, f"{counted} steps are counted, {done} are done and {begun} have begun"
    for step in range(max(1, done - 50), done + 1):
        assert store.get(("key", step)) == step, f"step {step} is done, its key is not there"
        assert not store.exists(("erased", step)), f"step {step} is done, its erased key is there"
    return int(done)


def run(folder: str) -> None:
    """The child: say where the store is, then write until the end comes."""
    from dafka.overlay import Disk, Endpoint

    with Endpoint() as endpoint:
        store = endpoint.attach_master("st", Disk(folder))
        step = verify(store)
        store.put(
            "again", store.get("count", 0) - step
        )  # a step that was counted, and not done, is done again
        print("at", step, flush=True)
        while True:
            for _ in range(random.choice([1, 5, 40])):
                step += 1
                store.put("begun", step)
                store.put(("erased", step), "x" * 500)
                store.put(("key", step), step)
                store.increment("count", 1)
                store.erase(("erased", step))
                store.erase(("key", step - 100))
                store.put("done", step)
            if not store.await_idle(60):
                return
            print("safe", step, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.child:
        run(options.child)
        return
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        crashes = Crashes(folder, options.seed)
        for _ in range(options.kills):
            crashes.crash()
        crashes.check()
        seconds = time.monotonic() - began
        print(f"{crashes.kills} kills, {crashes.acknowledged} steps, {seconds:.0f} s: nothing was lost")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
