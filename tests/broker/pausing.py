"""How often others get their turn while very much is done, and what may happen meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import gevent
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


def at_pause(
    monkeypatch: pytest.MonkeyPatch, function: str, happen: Callable[[], object]
) -> Callable[[], int]:
    """From now on everything that may give others a turn does so. In the first one that ``function`` gives
    them, or what it calls, ``happen()`` is carried out as a green thread, before it goes on.

    How often that was so: once, or never yet.
    """
    happened = [0]
    in_later_turn = turns.in_later_turn

    def carry_out(go_on: Any) -> None:
        try:
            happen()
        finally:
            in_later_turn(go_on)

    def pause(go_on: Any) -> None:
        if happened[0] or not _is_in(function):
            in_later_turn(go_on)
        else:
            happened[0] += 1
            gevent.spawn(carry_out, go_on)

    monkeypatch.setattr(limits, "PACE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "in_later_turn", pause)
    return lambda: happened[0]


def _is_in(function: str) -> bool:
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
