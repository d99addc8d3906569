"""Programs with well-known mistakes are found within a hundred seeds, and pass when they are mended."""

from __future__ import annotations

import pytest
from testing.torture.programs import CHECKS

SEEDS = 100
MENDED_SEEDS = range(200, 205)  # more of them: scripts/torture


@pytest.mark.parametrize("mistake", CHECKS)
def test_the_mistake_is_found(mistake):
    for seed in range(SEEDS):
        try:
            CHECKS[mistake](seed, False)
        except AssertionError as failure:
            assert "was not processed" in str(failure) or "one too many" in str(failure), failure
            assert "bills-0 #" in str(failure)  # the table
            return
    pytest.fail(f"not within {SEEDS} seeds")


@pytest.mark.parametrize("mistake", CHECKS)
def test_the_mended_program_passes(mistake):
    for seed in MENDED_SEEDS:
        CHECKS[mistake](seed, True)
