"""Some simulated overlays. `scripts/simulate_overlay --seeds 10000` runs as many as wanted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import forking
import pytest
from overlay.simulation.scenario import build, simulate

SEEDS = range(20)
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_gets_a_message_twice_or_misses_one_and_tables_agree_with_the_graph(seed):
    try:
        simulate(seed)
    except AssertionError as error:
        pytest.fail(
            f"{error}\nagain: python -m tests.overlay.simulation --seed {seed} --trace", pytrace=False
        )


@pytest.mark.parametrize("seed", [1, 7])
def test_a_seed_replays_exactly(seed):
    digest = simulate(seed, build(seed)).digest
    command = [sys.executable, "-m", "tests.overlay.simulation", "--seed", str(seed)]
    # Another process, in which hashes of octets are others.
    environment = {**os.environ, "PYTHONHASHSEED": str(seed + 1)}
    done = forking.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"digest {digest:08x}" in done.stdout


def test_seeds_differ():
    assert len({simulate(seed).digest for seed in range(4)}) == 4
