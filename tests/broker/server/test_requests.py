"""One request: unsupported APIs and versions, and octets after the body."""

from __future__ import annotations

import pytest
from broker.server.client import WireClient, frame, header
from kafka.errors import UnsupportedVersionError
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 6),
    ],
)
def test_unsupported_versions_get_the_error_of_the_protocol(wire: WireClient, request_, version: int):
    assert wire.ask(request_, version).error_code == UnsupportedVersionError.errno
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


def test_octets_after_the_body_are_ignored(wire: WireClient):
    wire.socket.sendall(frame(header(3, 1) + b"\0\0\0\0???"))
    assert wire.receive(MetadataRequest(), 1, 7).topics == []
