"""The topics of a broker as groups see them."""

from __future__ import annotations

from dafka.broker.groups.modern.topics import TableTopics
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.topics.topic import KnownTopic


def test_topics_are_found_as_they_are_created_extended_and_deleted(client):
    core = client.core
    topics = TableTopics(core._topics)
    seen = [topics.version]

    def grown() -> bool:
        seen.append(topics.version)
        return seen[-1] > seen[-2]

    assert topics.find("t") is None
    client.call("create_topics", {"t": TopicSpec(2)})
    assert grown() and topics.names() == ["t"]
    first = topics.find("t")
    assert first == KnownTopic(core._topics.get("t").topic_id, 2)
    assert topics.find("t") is first  # made once: groups look up very many at a time
    client.call("create_partitions", {"t": 3})
    assert grown() and topics.find("t") == KnownTopic(first.topic_id, 3)
    client.call("delete_topics", ["t"])
    assert grown() and topics.find("t") is None and topics.names() == []
    client.call("create_topics", {"t": TopicSpec(2)})
    assert grown() and topics.find("t").topic_id != first.topic_id


def test_topics_that_were_found_ahead_are_not_those_of_another_version(client):
    core = client.core
    topics = TableTopics(core._topics)
    client.call("create_topics", {name: TopicSpec(2) for name in ("t", "u")})
    client.connection.hub.run(topics.look_ahead, ["t", "u", "v"])
    assert topics.find_all(["t", "u"]) == {name: topics.find(name) for name in ("t", "u")}
    assert topics.find_all(["t", "v"]) == {"t": topics.find("t")}
    client.call("create_partitions", {"t": 3})
    assert topics.find_all(["t", "u"])["t"].partitions == 3
