"""Compaction beside appends, transactions, deletions and restarts leaves what the model says, for some seeds.

``scripts/compaction`` plays thousands of them.
"""

from __future__ import annotations

import pytest
from broker.embedded.compaction_histories import play


@pytest.mark.parametrize("seed", range(2))
def test_a_compacted_topic_is_what_the_model_says(seed: int) -> None:
    play(seed)
