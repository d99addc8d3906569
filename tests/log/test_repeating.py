"""Of log lines that repeat the first ones are written, and how many there were more."""

from __future__ import annotations

import logging

import pytest

from dafka.log import repeating
from dafka.log.repeating import LINES, SECONDS, Repeats, bounded_logger


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logger(clock: Clock) -> logging.Logger:
    found = logging.getLogger("dafka.log.test_repeating")
    found.filters[:] = [Repeats(clock)]
    return found


def test_the_first_lines_of_a_kind_are_written_and_the_last_of_them_says_so(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        logger.error("batch %d was not stored", number)
    assert len(caplog.messages) == LINES
    assert caplog.messages[0] == "batch 0 was not stored"
    assert caplog.messages[-1].startswith(f"batch {LINES - 1} was not stored (further lines of this kind")


def test_after_a_minute_a_line_says_how_many_were_left_out(
    logger: logging.Logger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        logger.error("batch %d was not stored", number)
    clock.now += SECONDS - 1
    logger.error("batch %d was not stored", 1000)
    assert len(caplog.messages) == LINES
    clock.now += 1
    for _ in range(2):
        logger.error("batch %d was not stored", 1001)
    left_out = 1001 - LINES
    assert caplog.messages[LINES:] == [
        f"batch 1001 was not stored ({left_out} lines of this kind were left out before)",
        "batch 1001 was not stored",
    ]


def test_other_lines_are_written_meanwhile(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1000):
        logger.error("batch %d was not stored", number)
    logger.warning("batch %d was not stored", 5)
    logger.error("something else: 100%")
    assert [record.levelname for record in caplog.records[LINES:]] == ["WARNING", "ERROR"]
    assert caplog.messages[-1] == "something else: 100%"


def test_a_module_has_one_filter_however_often_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "dafka.log.test_repeating.asked"
    monkeypatch.setattr(repeating, "_kinds", {})
    assert bounded_logger(name) is bounded_logger(name)
    assert len(logging.getLogger(name).filters) == 1
