"""Statuses and errors as programs see them and as libbroker prints them."""

from __future__ import annotations

import uuid

import pytest

from compat.broker import EC, SC, Error, Status
from dafka.overlay.peering import statuses
from dafka.overlay.wire.codes import ErrorCode, StatusCode

SOMEBODY = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")
NOBODY = uuid.UUID(int=0)


def status(code: StatusCode, network: statuses.NetworkInfo | None = None) -> Status:
    return Status._of(statuses.Status(code, statuses.EndpointInfo(SOMEBODY.bytes, network), "it is so"))


@pytest.mark.parametrize("code", [one for one in StatusCode if one != StatusCode.UNSPECIFIED])
def test_a_status_says_what_has_happened_and_to_whom(code: StatusCode):
    news = status(code, statuses.NetworkInfo("127.0.0.1", 1947))
    assert news.code() == SC(int(code))
    assert repr(news) == f'{code.name.lower()}({SOMEBODY}, 127.0.0.1:1947, "it is so")'
    context = news.context()
    assert context is not None
    assert context.node_id() == repr(context) == str(SOMEBODY)
    assert context.network.is_set()
    assert context.network.get().address == "127.0.0.1"
    assert context.network.get().port == 1947
    assert repr(context.network) == "127.0.0.1:1947"


def test_an_address_may_be_unknown():
    news = status(StatusCode.ENDPOINT_DISCOVERED)
    assert repr(news) == f'endpoint_discovered({SOMEBODY}, "it is so")'
    network = news.context().network
    assert not network.is_set()
    assert repr(network) == "nil"
    with pytest.raises(ValueError, match="not known"):
        network.get()


def test_a_status_of_nothing():
    assert Status().code() == SC.Unspecified
    assert Status().context() is None
    assert repr(Status()) == 'unspecified("")'


def test_an_error_says_what_has_failed():
    where = statuses.EndpointInfo(None, statuses.NetworkInfo("127.0.0.1", 1947))
    error = Error._of(statuses.Error(ErrorCode.PEER_UNAVAILABLE, where, 'no "way"'))
    assert error.code() == EC.PeerUnavailable == 4
    assert repr(error) == f'peer_unavailable(endpoint_info({NOBODY}, *127.0.0.1:1947), "no \\"way\\"")'


def test_an_error_about_nobody_or_about_somebody_whose_address_is_unknown():
    assert repr(Error._of(statuses.Error(ErrorCode.STALE_DATA, None, "x"))) == 'stale_data("x")'
    where = statuses.EndpointInfo(SOMEBODY.bytes)
    error = Error._of(statuses.Error(ErrorCode.PEER_INVALID, where, "x"))
    assert repr(error) == f'peer_invalid(endpoint_info({SOMEBODY}, none), "x")'


def test_a_status_without_an_error():
    assert Error().code() == 0
    assert repr(Error()) == "none"
