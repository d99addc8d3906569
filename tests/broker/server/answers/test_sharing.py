from broker.clients import Client
from kafka.protocol.admin import DescribeConfigsRequest

from dafka.broker.interface.topics import TopicSpec
from dafka.broker.server import answer
from dafka.broker.server.answers.sharing import once


def test_a_part_is_made_once_for_each_object():
    seen: list[list[int]] = []

    def make(source: list[int]) -> int:
        seen.append(source)
        return len(seen)

    found = once(make)
    first, equal = [1], [1]
    assert [found(one) for one in (first, equal, first)] == [1, 2, 1]
    assert seen == [first, equal]


def test_topics_share_what_they_do_not_set(client: Client):
    client.create("plain", 1)
    client.create("other", 1)
    assert client.change("create_topics", {"own": TopicSpec(1, {"retention.ms": "77"})}) == {"own": None}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            resource(resource_type=2, resource_name=name, configuration_keys=None)
            for name in ("plain", "other", "own")
        ],
        include_synonyms=True,
        include_documentation=False,
    )
    response = client.connection.hub.run(answer, client.core, request)
    plain, other, own = ({entry.name: entry for entry in one.configs} for one in response.results)
    assert all(other[name] is entry for name, entry in plain.items())
    assert {name for name, entry in own.items() if entry is not plain[name]} == {"retention.ms"}
    assert next(one.value for one in own["retention.ms"].synonyms) == own["retention.ms"].value == "77"
    assert plain["retention.ms"].value != "77"
