"""Odd requests: values that each broker names itself are replaced, and all that is odd can be sent."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

from broker.server.client import encoded
from clients.raw.odd_requests import IDS, PRODUCERS, Step, World, names, sequence

ID = UUID(int=77)


def test_ids_and_nodes_are_those_of_the_broker() -> None:
    world = World([ID], 5)
    assert world.real("topic_id", UUID(int=IDS)) == ID
    assert world.real("topic_id", UUID(int=IDS + 1)) == UUID(int=IDS + 1)
    assert world.real("replicas", 0) == 5 and world.real("partition", 0) == 0
    assert world.real("resource_name", "0") == "5" and world.real("name", "0") == "0"
    assert world.real("producer_id", PRODUCERS) == PRODUCERS
    world.learn(Step("InitProducerId", None, 0), SimpleNamespace(error_code=0, producer_id=4001))
    assert world.real("producer_id", PRODUCERS) == 4001


def test_a_request_stays_as_it_is_for_the_other_broker() -> None:
    world = World([ID] * 3, 5)
    for step in sequence(1, 100):
        before = encoded(step.request, step.version)
        encoded(world.request(step), step.version)
        assert encoded(step.request, step.version) == before


def test_each_seed_has_topics_of_its_own() -> None:
    assert not set(names(1)) & set(names(11))


def test_features_are_never_changed_and_pages_begin_anywhere() -> None:
    steps = [step for seed in range(40) for step in sequence(seed, 30)]
    updates = [step for step in steps if step.name == "UpdateFeatures"]
    assert updates and all(step.version and step.request.validate_only for step in updates)
    pages = [step.request.cursor for step in steps if step.name == "DescribeTopicPartitions"]
    assert len({one and one.topic_name for one in pages}) > 2


def test_groups_of_the_samples_belong_to_the_seed() -> None:
    steps = [step for seed in range(20) for step in sequence(seed, 30) if "Group" in step.name]
    names = {name for step in steps for name in getattr(step.request, "group_ids", None) or ()}
    assert names and not names & {"sharers", "shared", "streams", "consumers"}
