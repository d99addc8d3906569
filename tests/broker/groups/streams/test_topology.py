"""Topologies that are refused by themselves."""

from __future__ import annotations

import pytest
from kafka.errors import InvalidRequestError

from dafka.broker.groups.streams.topology import check_topology, normal, readers, required_topics
from dafka.broker.interface.streams_groups import (
    InternalTopic,
    StreamsInvalidTopologyError,
    Subtopology,
    Topology,
)

ONE = Subtopology("0", ["a"], [], [InternalTopic("c")], ["s"], [InternalTopic("r")])


def test_the_topics_of_a_topology():
    check_topology(Topology(1, [ONE]))
    assert readers(Topology(1, [ONE])) == dict.fromkeys(("a", "r"), ONE.name)
    assert required_topics(Topology(1, [ONE])) == {"a", "r", "c"}


def test_the_order_makes_no_difference():
    other = Subtopology("1", ["b", "a"])
    assert normal(Topology(1, [other, ONE])) == normal(Topology(1, [ONE, other._replace(sources=["a", "b"])]))


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"regexes": ["a.*"]}, InvalidRequestError, "Regular expressions"),
        ({"changelogs": [InternalTopic("c", 2)]}, StreamsInvalidTopologyError, "undefined partition count"),
        ({"sources": ["a/b"]}, StreamsInvalidTopologyError, "not valid topic names"),
        ({"sources": ["__consumer_offsets"]}, StreamsInvalidTopologyError, "is prohibited"),
        ({"sources": [], "repartition_sources": []}, StreamsInvalidTopologyError, "No source topics"),
        ({"repartition_sources": [InternalTopic("r", -1)]}, InvalidRequestError, "cannot be made"),
        ({"name": "x" * 2000}, InvalidRequestError, "characters at most"),
        ({"sources": [f"t{number}" for number in range(6000)]}, InvalidRequestError, "are the most"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_a_topology_is_refused(changed, error, words):
    with pytest.raises(error, match=words):
        check_topology(Topology(1, [ONE._replace(**changed)]))


def test_an_epoch_below_0_is_refused():
    with pytest.raises(InvalidRequestError, match="0 or more"):
        check_topology(Topology(-1, [ONE]))


def test_subtopologies_have_ids_of_their_own():
    with pytest.raises(StreamsInvalidTopologyError, match="same id"):
        check_topology(Topology(1, [ONE, ONE]))
