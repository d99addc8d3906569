"""PLAIN: one message, and one answer to whatever is wrong with it."""

from __future__ import annotations

import pytest

from dafka.security.sasl.plain import PlainExchange
from dafka.security.sasl.steps import AuthenticationError, Identity, Step


def is_password(name: str, password: str) -> bool:
    return (name, password) == ("alice", "right")


@pytest.mark.parametrize("message", [b"\0alice\0right", b"alice\0alice\0right"])
def test_name_and_password(message):
    assert PlainExchange(is_password).respond(message) == Step(b"", Identity("alice"))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"alice",
        b"\0alice\0wrong",
        b"\0bob\0right",
        b"bob\0alice\0right",
        b"\0alice\0",
        b"\0\0right",
        b"\0alice\0right\0",
        b"\0alice\0\xff\xfe",
        b"\0" * 1000,
    ],
)
def test_everything_else_gets_the_same_answer(message):
    with pytest.raises(AuthenticationError) as refused:
        PlainExchange(is_password).respond(message)
    assert str(refused.value) == "Authentication failed: Invalid username or password"
