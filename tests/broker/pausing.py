"""How often others get their turn while very much is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dafka.hub import limits, turns


def counted_pauses(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """From now on everything that may give others a turn does so; the number of times that it has."""
    pauses = [0]
    in_later_turn = turns.in_later_turn

    def pause(go_on: Any) -> None:
        pauses[0] += 1
        in_later_turn(go_on)

    monkeypatch.setattr(limits, "PACE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "in_later_turn", pause)
    return lambda: pauses[0]
