"""Where the partitions are that interactive queries ask for."""

from __future__ import annotations

from dafka.broker.groups.streams.endpoints import partitions_at
from dafka.broker.groups.streams.tasks import Roles
from dafka.broker.interface.streams_groups import Endpoint, InternalTopic, Subtopology, Topology


def test_the_tasks_of_a_member_read_the_partitions_that_their_topics_have():
    topology = Topology(
        1, [Subtopology("0", ["a", "b"]), Subtopology("1", repartition_sources=[InternalTopic("r")])]
    )
    assigned = Roles({"0": frozenset({0, 2})}, {"1": frozenset({1})})
    found = partitions_at(Endpoint("h", 1), assigned, topology, {"a": 3, "b": 1, "r": 2}.get)
    assert found == (("h", 1), [("a", [0, 2]), ("b", [0])], [("r", [1])])
