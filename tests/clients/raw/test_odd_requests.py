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
