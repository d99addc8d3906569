"""Options of accounts: errors name invalid ones."""

from __future__ import annotations

from math import nan

import pytest

from dafka.security import ClientSasl, OAuthTokens, SaslError, ServerSasl


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ServerSasl(mechanisms=("GSSAPI",)), "'GSSAPI' is not one of PLAIN"),
        (lambda: ServerSasl(mechanisms=()), "mechanisms is empty"),
        (lambda: ServerSasl(mechanisms=("OAUTHBEARER",)), "need each other"),
        (lambda: ServerSasl(tokens=OAuthTokens(jwks="a")), "need each other"),
        (lambda: ServerSasl(max_session=-1), "max_session"),
        (lambda: ServerSasl(failure_delay=60), "failure_delay"),
        (lambda: ServerSasl(max_session=nan), "max_session"),
        (lambda: ServerSasl(failure_delay=nan), "failure_delay"),
        (lambda: OAuthTokens(jwks="http://example"), "https"),
        (lambda: OAuthTokens(jwks="a", clock_skew=nan), "clock_skew is a number of seconds from 0 to 86400"),
        (lambda: OAuthTokens(jwks="a", clock_skew=-1), "clock_skew is a number of seconds"),
        (lambda: ClientSasl(mechanism=None), "sasl_mechanism"),  # type: ignore[arg-type]
    ],
)
def test_an_error_names_the_invalid_option(make, words):
    with pytest.raises(SaslError, match=words):
        make()


def test_no_password_is_shown():
    shown = repr(ClientSasl(mechanism="PLAIN", options={"sasl_plain_password": "secret"}))
    assert "secret" not in shown and "PLAIN" in shown
