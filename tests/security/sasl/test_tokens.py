"""Which tokens are valid."""

from __future__ import annotations

import base64
import json

import jwt
import pytest
from security.sasl.keys import Signer

from dafka.security.sasl.jwks import KeySet
from dafka.security.sasl.options import OAuthTokens
from dafka.security.sasl.tokens import TokenCheck


@pytest.fixture(scope="module")
def signer(tmp_path_factory) -> Signer:
    return Signer(tmp_path_factory.mktemp("keys"))


def name(signer: Signer, token: str, **options) -> str | None:
    found = TokenCheck(OAuthTokens(jwks=signer.jwks, **options), KeySet(signer.jwks)).identity(token)
    return None if found is None else found.name


def test_a_token_tells_who_it_is_and_until_when(signer):
    check = TokenCheck(OAuthTokens(jwks=signer.jwks), KeySet(signer.jwks))
    found = check.identity(signer.token(exp=4_000_000_000))
    assert found is not None and found == ("alice", 4_000_000_000)


@pytest.mark.parametrize(
    ("claims", "options", "valid"),
    [
        ({"aud": "kafka"}, {"audience": ("kafka", "other")}, True),
        ({"aud": ["x", "kafka"]}, {"audience": ("kafka",)}, True),
        ({"aud": "x"}, {"audience": ("kafka",)}, False),
        ({}, {"audience": ("kafka",)}, False),
        ({"aud": "x"}, {}, True),
        ({"iss": "us"}, {"issuer": "us"}, True),
        ({"iss": "them"}, {"issuer": "us"}, False),
        ({"scope": "a kafka"}, {"scopes": ("kafka",)}, True),
        ({"scope": ["kafka"]}, {"scopes": ("kafka",)}, True),
        ({"scp": "kafka"}, {"scopes": ("kafka",), "scope_claim": "scp"}, True),
        ({"scope": "a"}, {"scopes": ("kafka",)}, False),
        ({"sub": None, "name": "alice"}, {"subject_claim": "name"}, True),
        ({"sub": None}, {}, False),
        ({"sub": 7}, {}, False),
        ({"sub": "  "}, {}, False),
        ({"exp": None}, {}, False),
        ({"iat": None}, {}, False),
        ({"nbf": 4_000_000_000}, {}, False),
    ],
)
def test_claims(signer, claims, options, valid):
    assert name(signer, signer.token(**claims), **options) == ("alice" if valid else None)


def test_a_token_counts_for_the_skew_of_clocks(signer):
    assert name(signer, signer.token(-10)) == "alice"  # the right to connect is another question
    assert name(signer, signer.token(-10), clock_skew=0) is None
    assert name(signer, signer.token(-100)) is None


def test_a_token_that_is_nested_too_deep_is_refused(signer, caplog):
    caplog.set_level("DEBUG", "dafka.security.sasl.tokens")
    deep = json.loads("[" * 500 + "]" * 500)
    assert name(signer, signer.token(deep=deep)) is None
    assert "nested more than 300 deep" in caplog.text
    caplog.clear()
    head, body, signature = signer.token().split(".")
    head = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 100_000).decode().rstrip("=")
    assert name(signer, f"{head}.{body}.{signature}") is None
    assert "nested more than 300 deep" in caplog.text


def test_a_token_that_somebody_else_signed_or_nobody_is_refused(signer, tmp_path):
    assert name(signer, Signer(tmp_path).token()) is None
    assert name(signer, Signer(tmp_path, "two").token()) is None
    claims = {"sub": "alice", "exp": 4_000_000_000}
    assert name(signer, jwt.encode(claims, "", algorithm="none")) is None
    assert name(signer, jwt.encode(claims, "s" * 32, algorithm="HS256", headers={"kid": "one"})) is None
    for text in ("", "a", "a.b.c", "." * 1000, "é"):
        assert name(signer, text) is None
