"""One request: unsupported APIs and versions, and octets after the body."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from broker.server.client import WireClient, frame, header
from kafka.errors import UnsupportedVersionError
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from dafka.broker.server import requests, table
from dafka.hub.hub import get_hub, is_hub_here


def test_an_unsupported_version_ends_the_connection(wire: WireClient):
    with pytest.raises(EOFError):
        wire.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 6)


def test_an_unsupported_version_of_api_versions_is_answered_with_those_that_there_are(wire: WireClient):
    wire.socket.sendall(frame(header(18, 99)))
    answer = wire.receive(ApiVersionsRequest(), 0, 7)
    assert answer.error_code == UnsupportedVersionError.errno and answer.api_keys


def test_answers_of_an_api_are_imported_beside_the_hub(wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    api = table.Api(3, "Metadata", 0, 13, "metadata.metadata", "metadata.metadata")
    monkeypatch.setitem(table.BY_KEY, 3, api)
    loaded_in: list[int] = []
    load = table.Api.load

    def loading(one: table.Api) -> None:
        loaded_in.append(threading.get_ident())
        load(one)

    monkeypatch.setattr(table.Api, "load", loading)
    for _ in range(2):
        assert wire.ask(MetadataRequest(topics=[]), 1).topics == []
    assert len(loaded_in) == 1 and loaded_in[0] != get_hub().run(threading.get_ident)


def test_octets_after_the_body_are_ignored(wire: WireClient):
    wire.socket.sendall(frame(header(3, 1) + b"\0\0\0\0???"))
    assert wire.receive(MetadataRequest(), 1, 7).topics == []


def test_a_wide_response_is_freed_in_the_thread_that_encodes_it(
    wire: WireClient, monkeypatch: pytest.MonkeyPatch
):
    """Its objects may be very many, and to free them in the hub would be a long turn."""
    freed: list[bool] = []

    class Freed(str):
        def __del__(self) -> None:
            freed.append(is_hub_here())

    def is_wide(response: Any) -> bool:
        response.cluster_id = Freed("x")
        return True

    monkeypatch.setattr(requests, "is_wide", is_wide)
    wire.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), 9)
    assert freed == [False]
