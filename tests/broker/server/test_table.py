"""The APIs: every one is announced, and answered in every version that is announced."""

from __future__ import annotations

import pytest
from broker.clients import Client
from broker.server.client import WireClient, answered
from broker.server.samples import NO_ID, samples
from kafka.errors import (
    UnsupportedVersionError,
)
from kafka.protocol.consumer import (
    FetchRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from dafka.broker.codec.produce_request import API_KEY as PRODUCE
from dafka.broker.codec.produce_request import OLDEST
from dafka.broker.server.table import BY_KEY, Api

EXCEPTIONS = {
    "Produce": (0, 13),
    "InitProducerId": (0, 5),
}

ANSWERED = {PRODUCE: OLDEST}  # the first versions, where older ones are announced only

VERSIONS = [
    pytest.param(
        type(sample),
        range(ANSWERED.get(sample.API_KEY, BY_KEY[sample.API_KEY].first), BY_KEY[sample.API_KEY].last + 1),
        id=type(sample).__name__[:-7],
    )
    for sample in samples("topic", NO_ID)
    if sample.API_KEY in BY_KEY
]


def test_there_is_a_sample_of_every_api():
    assert {sample.API_KEY for sample in samples("topic", NO_ID)} >= BY_KEY.keys()


CLASSES = [api for api in BY_KEY.values() if api.home is not None]


@pytest.mark.parametrize("api", CLASSES, ids=[api.name for api in CLASSES])
def test_versions_match_the_classes_of_kafka_python(api: Api):
    assert (api.request.name, api.response.name) == (f"{api.name}Request", f"{api.name}Response")
    assert api.request.API_KEY == api.response.API_KEY == api.key
    assert (api.first, api.last) == EXCEPTIONS.get(api.name, api.request.valid_versions)
    assert callable(api.answer) or api.name in ("Produce", "Fetch")


@pytest.mark.parametrize(("request_class", "versions"), VERSIONS)
def test_every_version_is_answered_in_its_own_layout(
    client: Client, wire: WireClient, request_class: type, versions: range
):
    for version in versions:
        topic = f"topic-{version}"
        client.create(topic, 2)
        topic_id = client.call("metadata", [topic]).topics[topic].topic_id
        (sample,) = [one for one in samples(topic, topic_id) if type(one) is request_class]
        response = wire.ask(sample, version)
        assert response.version == version
        # The connection is still in step.
        assert wire.ask(ApiVersionsRequest(), 0).error_code == 0, f"after version {version}"


def test_a_request_without_a_version_has_the_newest_one(client: Client):
    client.create("topic")
    topic_id = client.call("metadata", ["topic"]).topics["topic"].topic_id
    (topic,) = answered(
        client, MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id)])
    ).topics
    assert (topic.name, topic.error_code) == ("topic", 0)


def test_an_api_without_objects_is_refused_in_process(client: Client):
    with pytest.raises(UnsupportedVersionError, match="FetchRequest"):
        answered(client, FetchRequest())
