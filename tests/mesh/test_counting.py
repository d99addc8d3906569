"""What is discarded is counted by its cause, in a table that does not grow with what strangers send."""

from __future__ import annotations

import pytest

from dafka.mesh import limits
from dafka.mesh.counting import Discards


def test_each_cause_has_its_count():
    counts = Discards()
    counts.add("version")
    counts.add("version", 3)
    counts.add_all({"frame-count": 2, "version": 1})
    assert counts == {"version": 5, "frame-count": 2}


def test_causes_beyond_the_limit_are_counted_together(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CAUSES", 2)
    counts = Discards()
    for cause in ("a", "b", "c", "d", "a"):
        counts.add(cause)
    assert counts == {"a": 2, "b": 1, "other": 2}
