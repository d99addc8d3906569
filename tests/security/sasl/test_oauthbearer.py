"""OAUTHBEARER's messages (RFC 7628)."""

from __future__ import annotations

import pytest

from dafka.security.sasl.oauthbearer import OAuthExchange
from dafka.security.sasl.steps import AuthenticationError, Identity, Step

ALICE = Identity("alice", 1e10)


def exchange() -> OAuthExchange:
    return OAuthExchange(lambda token: ALICE if token == "good" else None)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,a=alice,\x01auth=bearer good\x01traceId=1\x01\x01",
    ],
)
def test_a_valid_token_tells_who_it_is(message):
    assert exchange().respond(message) == Step(b"", ALICE)


@pytest.mark.parametrize(
    "message", [b"n,,\x01auth=Bearer bad\x01\x01", b"n,a=bob,\x01auth=Bearer good\x01\x01"]
)
def test_an_invalid_one_is_told_first_and_fails_with_the_next_message(message):
    one = exchange()
    assert one.respond(message) == Step(b'{"status":"invalid_token"}')
    with pytest.raises(AuthenticationError, match="invalid_token"):
        one.respond(b"\x01")


@pytest.mark.parametrize(
    "message", [b"", b"\xff", b"n,,", b"n,,\x01\x01", b"y,,\x01auth=Bearer good\x01\x01"]
)
def test_malformed_messages_fail(message):
    with pytest.raises(AuthenticationError):
        exchange().respond(message)
