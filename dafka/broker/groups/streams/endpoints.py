"""Which partitions a process has whose endpoint answers interactive queries."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dafka.broker.groups.streams.tasks import Roles, Share
from dafka.broker.groups.streams.topology import sources_of
from dafka.broker.interface.streams_groups import Endpoint, EndpointPartitions, Topology


def partitions_at(
    endpoint: Endpoint, assigned: Roles, topology: Topology, partitions: Callable[[str], int | None]
) -> EndpointPartitions:
    """The partitions that the tasks of a member read; ``partitions(topic)`` is how many a topic has."""
    topics = {one.name: sources_of(one) for one in topology.subtopologies}

    def of(share: Share) -> list[tuple[str, Collection[int]]]:
        return [
            (topic, sorted(number for number in numbers if number < count))
            for name, numbers in sorted(share.items())
            for topic in topics.get(name, ())
            if (count := partitions(topic)) is not None
        ]

    return EndpointPartitions(endpoint, of(assigned.active), of(assigned.standby))
