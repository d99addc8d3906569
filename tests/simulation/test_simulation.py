"""Some simulated meshes. `python -m tests.simulation --seeds 10000` runs as many as wanted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import forking
import pytest
from simulation.scenario import build, simulate

SEEDS = range(50)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", SEEDS)
def test_promises_of_the_mesh_hold_throughout_and_every_node_reaches_every_head(seed):
    try:
        simulate(seed)
    except AssertionError as error:
        pytest.fail(f"{error}\nagain: python -m tests.simulation --seed {seed} --trace", pytrace=False)


@pytest.mark.parametrize("seed", [1, 7])
def test_a_seed_replays_exactly(seed):
    digest = simulate(seed, build(seed)).digest
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed)]
    # Another process, in which hashes of octets are others.
    environment = {**os.environ, "PYTHONHASHSEED": str(seed + 1)}
    done = forking.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"digest {digest:08x}" in done.stdout


def test_seeds_differ():
    assert len({simulate(seed).digest for seed in range(5)}) == 5
