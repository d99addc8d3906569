"""After any power cuts readers, producers and groups go on as the model says, for some seeds.

``scripts/power_cuts`` plays many.
"""

from __future__ import annotations

import pytest
from broker.records.power_cut_histories import play


@pytest.mark.parametrize("seed", range(4))
def test_after_any_power_cuts_everybody_goes_on_where_the_log_ends(seed: int) -> None:
    play(seed)
