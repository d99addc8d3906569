"""Interleaved transactions leave what the model says, for some seeds; ``scripts/transactions`` plays many."""

from __future__ import annotations

import pytest
from broker.transactions.transaction_histories import play


@pytest.mark.parametrize("seed", range(2))
def test_interleaved_transactions_match_the_model(seed: int) -> None:
    play(seed)
