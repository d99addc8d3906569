"""Responses of brokers, decoded by kafka-python's classes and checked for nulls that the protocol forbids."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer import OffsetFetchResponse
from kafka.protocol.metadata import MetadataResponse

from dafka.broker.codec.responses import body_of, read_response

VERSION = 9  # of Metadata: flexible


def metadata(**fields: object) -> MetadataResponse:
    known = {"brokers": [], "cluster_id": "one", "controller_id": 0, "topics": []}
    return MetadataResponse(**{**known, **fields})


def read(response: MetadataResponse) -> MetadataResponse:
    octets = b"\0" + response.encode(version=VERSION)
    return read_response(MetadataResponse, VERSION, True, memoryview(octets))


def test_a_response_is_read_behind_the_tagged_fields_of_its_header():
    assert read(metadata()).cluster_id == "one"
    assert bytes(body_of(memoryview(b"\1\x70\2ab" + b"body"), tagged=True)) == b"body"
    assert bytes(body_of(memoryview(b"\0body"), tagged=False)) == b"\0body"


def test_null_is_accepted_where_the_protocol_allows_it():
    assert read(metadata(cluster_id=None)).cluster_id is None


def test_null_for_an_array_that_may_not_be_null_is_refused():
    with pytest.raises(ValueError, match=r"^MetadataResponse\.topics is null$"):
        read(metadata(topics=None))


def test_null_inside_of_an_array_of_structs_is_refused_with_the_name_of_the_field():
    broker = MetadataResponse.MetadataResponseBroker
    assert read(metadata(brokers=[broker(node_id=0, host="a", port=1, rack=None)])).brokers[0].rack is None
    with pytest.raises(ValueError, match=r"^MetadataResponseBroker\.host is null$"):
        read(metadata(brokers=[broker(node_id=0, host=None, port=1, rack=None)]))


def test_fields_of_other_versions_are_not_checked():
    octets = OffsetFetchResponse(topics=[], error_code=0).encode(version=5)  # groups: from version 8 on
    assert read_response(OffsetFetchResponse, 5, False, memoryview(octets)).topics == []
