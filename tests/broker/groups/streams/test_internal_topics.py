"""What a topology comes to with the topics that there are."""

from __future__ import annotations

from typing import Any

import pytest
from timing import takes_less

from dafka.broker.groups.streams.internal_topics import configure, summarized
from dafka.broker.groups.streams.topology import normal
from dafka.broker.interface.streams_groups import (
    InternalTopic,
    StatusCode,
    StreamsInvalidTopologyError,
    Subtopology,
    Topology,
)
from dafka.broker.limits import GROUP_TASKS


def configured(*subtopologies: Subtopology, **partitions: int) -> Any:
    return configure(Topology(1, subtopologies), partitions.get)


def test_internal_topics_have_as_many_partitions_as_what_is_read():
    found = configured(
        Subtopology("0", ["a", "b"], repartition_sinks=["r"]),
        Subtopology("1", changelogs=[InternalTopic("c")], repartition_sources=[InternalTopic("r")]),
        a=3,
        b=5,
    )
    assert found.tasks == {"0": 5, "1": 5} and not found.is_ready
    assert {name: topic.partitions for name, topic in found.missing.items()} == {"r": 5, "c": 5}
    assert found.problem == (StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c, r")


def test_it_is_ready_when_all_topics_are_there():
    source = Subtopology("0", ["a"], changelogs=[InternalTopic("c")])
    assert configured(source, a=2, c=2).is_ready


def test_source_topics_that_are_missing_are_named():
    problem = configured(Subtopology("0", ["d", "c", "b", "a"])).problem
    assert problem == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics a, b, c and 1 additional topics are missing.",
    )


def test_a_topic_with_other_partitions_does_not_fit():
    problem = configured(Subtopology("0", ["a"], changelogs=[InternalTopic("c")]), a=2, c=3).problem
    assert problem.code == StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "Existing topic c has different number of partitions: expected 2, found 3" in problem.detail


def test_a_source_that_is_a_changelog_as_well_has_a_partition_for_each_task():
    both = Subtopology("0", ["a", "b"], changelogs=[InternalTopic("a")])
    assert configured(both, a=3, b=3).is_ready
    assert "expected 5, found 3" in configured(both, a=3, b=5).problem.detail


def test_a_repartition_topic_of_its_own_size_is_no_measure_for_others():
    pair = [InternalTopic("r"), InternalTopic("s")]
    writes = Subtopology("0", ["a"], repartition_sinks=["r", "s", "u", "v"])
    reads = Subtopology("1", repartition_sources=pair, copartitioned=[frozenset({"r", "s"})])
    fixed = (
        Subtopology(name, repartition_sources=[InternalTopic(topic, count)])
        for name, topic, count in (("2", "u", 7), ("3", "v", 6))
    )
    assert configured(writes, reads, *fixed, a=4).tasks == {"0": 4, "1": 4, "2": 7, "3": 6}


def test_copartitioned_sources_have_to_be_alike_and_repartition_topics_follow_them():
    copartitioned = [frozenset({"a", "r"})]
    writes = Subtopology("0", ["b"], repartition_sinks=["r"])
    reads = Subtopology("1", ["a"], repartition_sources=[InternalTopic("r")], copartitioned=copartitioned)
    assert configured(writes, reads, a=4, b=2).missing["r"].partitions == 4
    fixed = reads._replace(repartition_sources=[InternalTopic("r", 3)])
    assert (
        "Number of partitions [3] of repartition topic [r]" in configured(writes, fixed, a=4, b=2).problem[1]
    )
    found = configured(writes, fixed._replace(sources=[], copartitioned=[frozenset({"r"})]), b=2, r=2)
    assert "Existing topic r has different number of partitions: expected 3, found 2" in found.problem.detail
    two = Subtopology("0", ["a", "b"], copartitioned=[frozenset({"a", "b"})])
    assert "[{a=4, b=2}]" in configured(two, a=4, b=2).problem.detail


def test_a_topology_without_a_way_to_the_number_of_partitions_is_refused():
    loop = [InternalTopic("r")]
    with pytest.raises(StreamsInvalidTopologyError, match="loops"):
        configured(Subtopology("0", repartition_sinks=["r"], repartition_sources=loop))
    with pytest.raises(StreamsInvalidTopologyError, match="never used as a sink"):
        configured(Subtopology("0", ["a"], repartition_sources=loop), a=1)


def test_a_group_has_a_bound_of_tasks():
    assert "are the most" in configured(Subtopology("0", ["a"]), a=GROUP_TASKS + 1).problem.detail


def test_nothing_is_summarized_as_nothing():
    assert summarized([]) == "<none>"


def test_a_long_chain_in_the_wrong_order_takes_no_round_for_each_link():
    length = 1500
    chain = [
        Subtopology(
            f"{length - link:04d}",
            [] if link else ["a"],
            repartition_sinks=[f"r{link + 1}"] if link < length - 1 else [],
            repartition_sources=[InternalTopic(f"r{link}")] if link else [],
        )
        for link in range(length)
    ]
    topology = normal(Topology(1, chain))

    def attempt() -> None:
        found = configure(topology, {"a": 4}.get)
        assert set(found.tasks.values()) == {4} and len(found.missing) == length - 1

    assert takes_less(0.5, attempt)  # 5 s, if each round looks at all of them
