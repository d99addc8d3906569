"""Tokens of WebSocket clients: accepted ones, refused ones, and that nothing tells which token is near."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from overlay.websocket.certificates import client_context, server_context
from security.sasl.keys import Signer
from timing import SECONDS, until
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint
from dafka.overlay.websocket import Client
from dafka.overlay.websocket.errors import WebSocketError
from dafka.overlay.websocket.server_connection import PATH
from dafka.overlay.websocket.tokens import bearer, check_of, checked
from dafka.security import OAuthTokens

TOKEN, OTHER = "a-token-of-alice-1234", "a-token-of-bob-123456"


def url(endpoint, scheme="ws"):
    return f"{scheme}://{endpoint.websocket_address}{PATH}"


@pytest.fixture
def endpoint():
    with Endpoint() as one:
        one.listen_websocket("127.0.0.1:0", tokens=[TOKEN, OTHER])
        yield one


def comes_in(endpoint, token) -> bool:
    try:
        Client(url(endpoint), token=token, timeout=SECONDS, reconnect=False).close()
    except WebSocketError as error:
        assert "401" in str(error) and (token or "Bearer") not in str(error).replace("Bearer", "")
        return False
    return True


# -- what is checked -----------------------------------------------------------------------------------


def test_the_whole_token_counts_and_nothing_else():
    check = check_of([TOKEN, OTHER])
    assert check(TOKEN) and check(OTHER)
    for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), f"{TOKEN},{OTHER}", "\udc80"):
        assert not check(wrong)
    assert not check_of([])("")


def test_a_file_is_read_again_when_it_changes_and_allows_nobody_when_it_is_gone(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# of the dashboard\n\n  {TOKEN}  \n")
    check = check_of(path)
    assert check(TOKEN) and not check(OTHER) and not check("# of the dashboard")
    path.write_text(f"{OTHER}\n{OTHER}-2\n")
    assert check(OTHER) and not check(TOKEN)
    path.write_text("short\n")
    assert not check(OTHER) and not check("short")
    path.unlink()
    assert not check(OTHER)
    path.write_text(TOKEN)
    assert check(TOKEN)


def test_tokens_that_somebody_signs(tmp_path):
    signer = Signer(tmp_path)
    check = check_of(OAuthTokens(jwks=signer.jwks, audience=("overlay",)))
    assert check(signer.token(aud="overlay"))
    assert not check(signer.token(aud="kafka"))
    assert not check(signer.token(seconds=-3600, aud="overlay"))
    assert not check("") and not check("no.token.at-all")


def test_anything_but_a_token_is_refused_without_showing_it():
    for wrong in ("short", "with a blank in it and long", "é" * 20, "line\nfeed-1234567890"):
        with pytest.raises(ValueError, match="at least 16") as refused:
            checked(wrong)
        assert wrong not in str(refused.value)
    with pytest.raises(TypeError):
        check_of(TOKEN)
    with pytest.raises(OSError, match="nowhere"):
        check_of(Path("nowhere"))


def test_the_header_is_read_as_rfc_6750_has_it():
    assert bearer(f"Bearer {TOKEN}") == bearer(f"bearer  {TOKEN} ") == TOKEN
    assert bearer(None) == bearer("") == bearer("Basic YTpi") == bearer(TOKEN) == ""


# -- on the wire ---------------------------------------------------------------------------------------


def test_clients_with_a_token_come_in_and_others_do_not(endpoint, caplog):
    with caplog.at_level(logging.INFO, "dafka"):
        assert comes_in(endpoint, TOKEN) and comes_in(endpoint, OTHER)
        assert not comes_in(endpoint, TOKEN + "x") and not comes_in(endpoint, None)
    assert TOKEN not in caplog.text
    said = [one.getMessage() for one in caplog.records if one.name == "dafka.audit"]
    assert "its token is not valid" in said[0] and "it has no token" in said[1]
    (server,) = endpoint._websockets
    until(lambda: get_hub().run(server.metrics).get("closed_token") == 2)


def test_a_foreign_client_is_told_what_is_missing(endpoint):
    with connect(url(endpoint), additional_headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        client.send("[]")
        assert json.loads(client.recv(SECONDS))["type"] == "ack"
    with pytest.raises(InvalidStatus) as refused:
        connect(url(endpoint))
    assert refused.value.response.status_code == 401
    assert refused.value.response.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_that_is_taken_away_counts_for_no_new_connection(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(TOKEN)
    with Endpoint() as endpoint:
        endpoint.listen_websocket("127.0.0.1:0", tokens=path)
        assert comes_in(endpoint, TOKEN)
        path.write_text(OTHER)
        assert not comes_in(endpoint, TOKEN)


def test_wss_with_signed_tokens_and_messages_both_ways(tmp_path):
    signer = Signer(tmp_path)
    with Endpoint() as endpoint, endpoint.subscribe("/t") as subscriber:
        tokens = OAuthTokens(jwks=signer.jwks)
        endpoint.listen_websocket("127.0.0.1:0", ssl_context=server_context(), tokens=tokens)
        where = url(endpoint, "wss")
        with Client(where, "/t", ssl_context=client_context(), token=signer.token()) as client:
            client.publish("/t", "there")
            assert subscriber.get(SECONDS).value == "there"
            endpoint.publish("/t", "back")
            assert client.get(SECONDS).value == "back"
        with pytest.raises(WebSocketError, match="401"):
            Client(where, ssl_context=client_context(), token=signer.token(seconds=-3600), timeout=SECONDS)
