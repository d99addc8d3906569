"""Waiting in tests: for conditions, and for records and groups of a TestBroker."""

from __future__ import annotations

import pytest

from dafka.testing import wait_until


def test_an_error_of_the_condition_is_raised():
    with pytest.raises(KeyError):
        wait_until(lambda: {}["x"], 5)
    assert wait_until(lambda: "found", 0) == "found"
