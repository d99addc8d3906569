"""Trouble that lasts: a line in the log when it begins, and one now and then."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from dafka.broker.remote import limits
from dafka.broker.remote.trouble import Trouble

log = logging.getLogger(__name__)


def own(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Of this module's logger: threads left running by other tests log, too."""
    return [record for record in caplog.records if record.name == __name__]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in own(caplog) if record.levelno == logging.WARNING]


def test_trouble_that_repeats_at_once_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(log)
    with caplog.at_level(logging.DEBUG):
        for number in range(5):
            trouble.again("attempt %d", number)
    assert warnings(caplog) == ["attempt 0"]
    assert len(own(caplog)) == 5


def test_trouble_is_a_warning_again_after_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    clock = SimpleNamespace(monotonic=lambda: now)  # of this module alone: other threads have clocks, too
    monkeypatch.setattr("dafka.broker.remote.trouble.time", clock)
    trouble = Trouble(log)
    trouble.again("first")
    now += limits.TROUBLE_LOGGED - 1
    trouble.again("second")
    now += 1
    trouble.again("third")
    monkeypatch.undo()
    assert warnings(caplog) == ["first", "third"]


def test_trouble_that_was_over_is_a_warning_when_it_begins_again(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(log)
    trouble.again("first")
    trouble.over()
    trouble.again("second")
    assert warnings(caplog) == ["first", "second"]
