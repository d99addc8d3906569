"""Durations of settings."""

from __future__ import annotations

import pytest

from dafka.broker.topics.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT1H", 3600), ("P1DT2M", 86_520), ("pt1.5s", 1.5), ("PT0,5S", 0.5)]
)
def test_a_duration_is_so_many_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "-PT1H", "PT-1H", "P1Y"])
def test_a_duration_that_says_nothing_is_refused(text):
    with pytest.raises(ValueError, match="PnDTnHnMn"):
        seconds_of(text)
