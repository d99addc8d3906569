"""ApiVersions: the announced APIs and features."""

from __future__ import annotations

import struct

import pytest
from broker.server.client import WireClient, frame, header
from kafka.errors import (
    InvalidRequestError,
    UnsupportedVersionError,
)
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import ApiVersionsRequest

from dafka.broker.embedded.features import SUPPORTED
from dafka.broker.server.table import BY_KEY


@pytest.mark.parametrize("version", range(5))
def test_api_versions_announces_the_table(wire: WireClient, version: int):
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    announced = {
        one.api_key: (one.min_version, one.max_version) for one in wire.ask(request, version).api_keys
    }
    assert announced == {api.key: (api.first, api.last) for api in BY_KEY.values()}
    assert announced[0] == (0, 13)
    assert announced[1] == (4, 18)
    assert (announced[17], announced[36]) == ((0, 1), (0, 2))  # SaslHandshake and SaslAuthenticate
    assert announced[68] == (0, 1)  # ConsumerGroupHeartbeat


@pytest.mark.parametrize("version", [3, 4])
def test_the_version_derived_from_the_features_is_kafka_4(wire: WireClient, version: int):
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    answer = wire.ask(request, version)
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    assert finalized == {name: one.initial for name, one in SUPPORTED.items() if one.initial}
    known = {name: one for name, one in SUPPORTED.items() if one.lowest > 0 or version > 3}
    assert {one.name: (one.min_version, one.max_version) for one in answer.supported_features} == {
        name: (one.lowest, one.highest) for name, one in known.items()
    }
    assert ("group.version" in known) is (version > 3)
    assert finalized["metadata.version"] == 30
    assert answer.finalized_features_epoch >= 0
    announced = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert infer_broker_version_from_api_versions(announced) >= (4, 0)


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_unknown_version_of_api_versions_gets_version_0_with_the_supported_versions(
    wire: WireClient, version: int
):
    wire.socket.sendall(frame(header(18, version) + b"whatever it is"))
    octets = wire.receive_frame()
    assert octets[:6] == struct.pack(">ih", 7, UnsupportedVersionError.errno)
    assert struct.unpack_from(">i", octets, 6)[0] == len(BY_KEY)
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", ["", "a b", "-a", "a.", "a_1", "\u00e9", "a\n"])
def test_a_client_that_does_not_say_what_it_is_is_refused(wire: WireClient, version: int, name: str):
    for request in (
        ApiVersionsRequest(client_software_name=name, client_software_version="1"),
        ApiVersionsRequest(client_software_name="tests", client_software_version=name),
    ):
        answer = wire.ask(request, version)
        assert (answer.error_code, answer.api_keys) == (InvalidRequestError.errno, [])
    assert wire.ask(ApiVersionsRequest(client_software_name=name), 2).error_code == 0
    request = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")
    assert wire.ask(request, version).error_code == 0
