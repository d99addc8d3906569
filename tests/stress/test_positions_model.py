"""Positions beside writes, transactions, deletions, restarts and kills are what the model says, for some
seeds.

``scripts/positions`` plays thousands of them.
"""

from __future__ import annotations

import pytest
from broker.positions.positions_histories import play


@pytest.mark.parametrize("seed", range(3))
def test_positions_are_what_the_model_says(seed: int) -> None:
    play(seed)
