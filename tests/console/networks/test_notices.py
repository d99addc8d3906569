"""Lines of the log are kept for the console, and are lost nowhere else."""

from __future__ import annotations

import logging

import pytest

from dafka.console import limits
from dafka.console.networks.notices import LogNotices

log = logging.getLogger("dafka.somewhere")


@pytest.fixture
def notices():
    notices = LogNotices()
    notices.open()
    yield notices
    notices.close()


def test_the_newest_lines_are_kept_once_each(notices, monkeypatch):
    monkeypatch.setattr(limits, "NOTICES", 2)
    for number in (1, 2, 3, 2):
        log.error("disk %d failed", number)
    log.info("nothing to speak of")
    assert [(one["text"], one["times"], one["level"]) for one in notices.rows()] == [
        ("disk 2 failed", 2, "error"),
        ("disk 3 failed", 1, "error"),
    ]
    log.warning("x" * 10_000)
    assert len(notices.rows()[0]["text"]) == limits.NOTICE


def test_after_the_end_nothing_is_kept(notices):
    notices.close()
    log.error("unheard")
    assert notices.rows() == []


def test_without_logging_set_up_lines_still_come_to_standard_error(notices, monkeypatch):
    class Last(logging.Handler):
        lines: list[str] = []  # noqa: RUF012

        def emit(self, record):
            self.lines.append(record.getMessage())

    monkeypatch.setattr(logging, "lastResort", Last())
    second = LogNotices()
    second.open()
    try:
        log.warning("heard by others")  # pytest has handlers
        assert Last.lines == []
        monkeypatch.setattr(logging.getLogger("dafka"), "propagate", False)
        log.warning("told once")
        assert Last.lines == ["told once"]
        assert notices.rows()[0]["text"] == second.rows()[0]["text"] == "told once"
    finally:
        second.close()
