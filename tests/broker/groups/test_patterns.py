"""Regular expressions that clients send, as in ListTransactions."""

from __future__ import annotations

import sys

import pytest
from broker.clients import Client
from broker.server.client import answered
from kafka.errors import (
    UnsupportedVersionError,
)
from kafka.protocol.admin import (
    ListTransactionsRequest,
)


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "a" * 1001, "((a{100}){100}){100}"])
def test_an_invalid_or_huge_pattern_is_refused(client: Client, pattern: str):
    response = answered(client, ListTransactionsRequest(transactional_id_pattern=pattern))
    assert (response.error_code, response.transaction_states) == (128, [])


def test_a_pattern_is_refused_if_google_re2_is_missing(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setitem(sys.modules, "re2", None)
    response = answered(client, ListTransactionsRequest(transactional_id_pattern="a"))
    assert response.error_code == UnsupportedVersionError.errno
    assert "pip install 'dafka[re2]'" in caplog.text


def test_a_pattern_with_exponential_backtracking_does_not_stop_the_broker(client: Client):
    client.call("init_producer_id", "a" * 5000, 60.0)
    response = answered(client, ListTransactionsRequest(transactional_id_pattern="(a+)+b"))
    assert (response.error_code, response.transaction_states) == (0, [])
