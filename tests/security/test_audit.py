"""A name from outside does not write a second line of the audit log."""

from __future__ import annotations

import logging

import pytest

from dafka.security.audit import audit


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("User:alice", "User:alice"),
        ("User:Zoë 日本", "User:Zoë 日本"),
        ("User:a\nUser:admin logged in", r"User:a\nUser:admin logged in"),
        ("User:a\r\x1b[2K\u2028b", r"User:a\r\x1b[2K\u2028b"),
    ],
)
def test_characters_that_begin_another_line_are_escaped(name, written, caplog):
    with caplog.at_level(logging.INFO, "dafka.audit"):
        audit.info("%s is refused %d", name, 7)
    assert [one.getMessage() for one in caplog.records if one.name == "dafka.audit"] == [
        f"{written} is refused 7"
    ]
