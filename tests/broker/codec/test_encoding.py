"""Responses in bytes: the same from both of kafka-python's encoders."""

from __future__ import annotations

from typing import Any

import pytest
from broker.clients import Client
from broker.server.samples import NO_ID, samples
from kafka.protocol.metadata import MetadataResponse

from dafka.broker.codec import encoding
from dafka.broker.codec.encoding import encoded, is_wide
from dafka.broker.codec.limits import INLINE_ITEMS
from dafka.broker.codec.messages.consumer_group import ConsumerGroupHeartbeatResponse
from dafka.broker.server import answer
from dafka.broker.server.table import BY_KEY

ANSWERED = [
    sample
    for sample in samples("topic", NO_ID)
    if sample.API_KEY in BY_KEY and BY_KEY[sample.API_KEY].answer is not None
]


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch) -> dict[Any, float]:
    """The state of a process that has not answered yet."""
    fresh: dict[Any, float] = {}
    monkeypatch.setattr(encoding, "_followed", fresh)
    return fresh


@pytest.mark.parametrize("sample", ANSWERED, ids=[type(one).__name__[:-7] for one in ANSWERED])
def test_both_encoders_produce_the_same_bytes(client: Client, followed: dict[Any, float], sample: Any):
    client.create("topic", 2)
    api = BY_KEY[sample.API_KEY]
    for version in range(api.first, api.last + 1):
        sample.API_VERSION = version
        response = client.connection.hub.run(answer, client.core, sample)
        assert encoded(response, version) == response.encode(version=version)
    assert len(followed) == api.last + 1 - api.first


def test_a_frequent_layout_is_compiled(monkeypatch: pytest.MonkeyPatch, followed: dict[Any, float]):
    response = MetadataResponse(brokers=[], cluster_id="one", controller_id=0, topics=[])
    octets = encoded(response, 13)
    assert 0 < followed[MetadataResponse, 13] < 1
    followed[MetadataResponse, 13] = encoding.COMPILE_SECONDS
    monkeypatch.setattr(type(MetadataResponse._struct), "encode", None)
    assert encoded(response, 13) == octets


@pytest.mark.parametrize("topics", [1, 10])
def test_items_count_at_any_depth(topics: int):
    kind = ConsumerGroupHeartbeatResponse.Assignment

    def response(items: int) -> Any:
        numbers = list(range(items // topics - 1))
        some = [kind.TopicPartitions(topic_id=NO_ID, partitions=numbers) for _ in range(topics)]
        return ConsumerGroupHeartbeatResponse(assignment=kind(topic_partitions=some))

    assert not is_wide(response(INLINE_ITEMS))
    assert is_wide(response(INLINE_ITEMS + topics))
    assert not is_wide(ConsumerGroupHeartbeatResponse(assignment=None))
