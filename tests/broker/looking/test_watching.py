"""Rates, lags and delays from looks at a broker that a test moves along, second by second."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from kafka.errors import ClusterAuthorizationFailedError, GroupAuthorizationFailedError, KafkaConnectionError

from dafka.broker.interface.admin import LogDirectory
from dafka.broker.interface.groups import CommittedOffset, GroupType, ListedGroup
from dafka.broker.interface.records import EARLIEST, ListedOffset
from dafka.broker.interface.topics import Metadata, PartitionMetadata, TopicMetadata
from dafka.broker.looking import watching
from dafka.broker.looking.watching import GroupRow, TopicRow, Watch


class Cluster:
    """Topics with the ends of their partitions, groups with their offsets, and a clock."""

    def __init__(self) -> None:
        self.ends: dict[str, list[int]] = {}
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        self.refused: set[str] = set()
        self.sizes: dict[str, int] | None = {}
        self.gone = False
        self.now = 0.0
        self.calls: list[str] = []

    def clock(self) -> float:
        return self.now

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(method)
        if self.gone:
            raise KafkaConnectionError("it is away")
        return getattr(self, f"_{method}")(*args, **kwargs)

    def _metadata(self, names: None) -> Metadata:
        topics = {
            name: TopicMetadata(
                name, UUID(int=1), None, [PartitionMetadata(n, "", True) for n in range(len(ends))]
            )
            for name, ends in self.ends.items()
        }
        return Metadata("it", 0, [(0, "here", 9092)], topics)

    def _list_offsets(self, wanted: dict[tuple[str, int], int]) -> dict[tuple[str, int], ListedOffset]:
        return {
            (topic, number): ListedOffset(None, 0 if place == EARLIEST else self.ends[topic][number])
            for (topic, number), place in wanted.items()
        }

    def _log_directories(self, topics: list[str]) -> list[LogDirectory]:
        if self.sizes is None:
            raise ClusterAuthorizationFailedError("no")
        sizes = {(name, 0): size for name, size in self.sizes.items() if name in topics}
        return [LogDirectory(None, "/disk", sizes)]

    def _list_groups(self) -> list[ListedGroup]:
        return [ListedGroup(name, "consumer", "Stable", GroupType.CLASSIC) for name in self.offsets]

    def _fetch_offsets(self, name: str) -> dict[tuple[str, int], CommittedOffset]:
        if name in self.refused:
            raise GroupAuthorizationFailedError(name)
        return {key: CommittedOffset(offset) for key, offset in self.offsets[name].items()}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def watch(cluster: Cluster) -> Watch:
    return Watch(cluster, clock=cluster.clock)


def test_the_first_look_has_lags_and_no_rates(cluster: Cluster, watch: Watch) -> None:
    cluster.ends["orders"] = [10, 20]
    cluster.offsets["billing"] = {("orders", 0): 4, ("orders", 1): 20}
    look = watch.look()
    assert look.cluster == "it" and look.brokers == 1
    assert look.topics == [TopicRow("orders", 2, 30, None)]
    assert look.groups == [GroupRow("billing", "classic", "Stable", 6, None, None)]


def test_rates_are_what_came_between_two_looks(cluster: Cluster, watch: Watch) -> None:
    cluster.ends["orders"] = [10, 20]
    cluster.offsets["billing"] = {("orders", 0): 0}
    watch.look()
    cluster.now, cluster.ends["orders"], cluster.offsets["billing"] = 2.0, [30, 60], {("orders", 0): 30}
    look = watch.look()
    assert look.topics[0].written == 30.0
    assert look.groups[0].read == 15.0 and look.groups[0].lag == 0


def test_octets_a_second_are_what_a_topic_has_grown_by_on_the_disk(cluster: Cluster, watch: Watch) -> None:
    cluster.ends["orders"], cluster.sizes = [10, 20], {"orders": 1000}
    assert watch.look().topics == [TopicRow("orders", 2, 30, None, 1000, None)]
    for size, growth in ((4000, 1500.0), (4000, 0.0), (500, None), (700, 100.0)):  # retention in between
        cluster.now, cluster.sizes = cluster.now + 2, {"orders": size}
        assert watch.look().topics == [TopicRow("orders", 2, 30, 0.0, size, growth)]
    cluster.now, cluster.sizes = cluster.now + 2, None  # it needs a right for the cluster
    assert watch.look().topics == [TopicRow("orders", 2, 30, 0.0, None, None)]


def test_new_partitions_topics_that_were_made_anew_and_offsets_set_back_have_no_rates_below_zero(
    cluster: Cluster, watch: Watch
) -> None:
    cluster.ends["orders"] = [10]
    cluster.offsets["billing"] = {("orders", 0): 10}
    watch.look()
    cluster.now, cluster.ends["orders"], cluster.offsets["billing"] = 1.0, [2, 5], {("orders", 0): 0}
    look = watch.look()
    assert look.topics[0].written == 0 and look.groups[0].read == 0


def test_a_delay_is_how_long_the_group_took_to_pass_what_was_the_end(cluster: Cluster, watch: Watch) -> None:
    cluster.ends["orders"], cluster.offsets["billing"] = [100], {("orders", 0): 0}
    watch.look()
    cluster.now = 10.0
    assert watch.look().groups[0].delay == 10.0, "it stands still"
    cluster.now, cluster.offsets["billing"] = 20.0, {("orders", 0): 200}
    cluster.ends["orders"] = [200]
    assert watch.look().groups[0].delay == 15.0, "halfway between the two looks it was at 100"
    cluster.now = 30.0
    assert watch.look().groups[0].delay == 0.0


def test_a_topic_that_is_gone_does_not_count(cluster: Cluster, watch: Watch) -> None:
    cluster.offsets["billing"] = {("orders", 0): 3}
    assert watch.look().groups[0].lag == 0
    cluster.offsets["billing"] = {}
    assert watch.look().groups[0].lag is None


def test_patterns_choose_and_internal_topics_are_asked_for(cluster: Cluster) -> None:
    cluster.ends = {"orders": [1], "bills": [1], "__state": [1]}
    cluster.offsets = {"a": {}, "b": {}}
    look = Watch(cluster, "o*", "b", clock=cluster.clock).look()
    assert [one.topic for one in look.topics] == ["orders"] and [one.group for one in look.groups] == ["b"]
    look = Watch(cluster, internal=True, clock=cluster.clock).look()
    assert [one.topic for one in look.topics] == ["__state", "bills", "orders"]


def test_a_group_that_may_not_be_seen_has_a_row_without_numbers(cluster: Cluster, watch: Watch) -> None:
    cluster.offsets["secret"] = {}
    cluster.refused.add("secret")
    assert watch.look().groups == [GroupRow("secret", "classic", "Stable")]


def test_a_broker_that_is_away_is_an_error_and_the_next_look_goes_on_from_the_last_good_one(
    cluster: Cluster, watch: Watch
) -> None:
    cluster.ends["orders"] = [0]
    watch.look()
    cluster.gone = True
    with pytest.raises(KafkaConnectionError):
        watch.look()
    cluster.gone, cluster.now, cluster.ends["orders"] = False, 10.0, [50]
    assert watch.look().topics[0].written == 5.0


def test_deleted_groups_are_forgotten(cluster: Cluster, watch: Watch) -> None:
    cluster.offsets = {"a": {("t", 0): 1}, "b": {("t", 0): 1}}
    watch.look()
    del cluster.offsets["a"]
    assert [one.group for one in watch.look().groups] == ["b"]
    assert watch._positions == 1


def test_many_groups_are_looked_at_in_turns_and_keep_what_was_found(
    cluster: Cluster, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "GROUPS_A_LOOK", 4)
    cluster.ends["t"] = [100]
    cluster.offsets = {f"g{number}": {("t", 0): number} for number in range(10)}
    counts = []
    for _ in range(3):
        cluster.calls.clear()
        look = watch.look()
        counts.append((cluster.calls.count("fetch_offsets"), look.left_out["groups"]))
    assert counts == [(4, 6)] * 3
    assert [one.lag for one in look.groups] == [100 - number for number in range(10)]


def test_remembered_and_requested_positions_are_bounded(
    cluster: Cluster, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PARTITIONS", 3)
    monkeypatch.setattr(watching, "POSITIONS", 2)
    cluster.ends = {"a": [1, 1], "b": [1, 1]}
    cluster.offsets = {"g": {("a", 0): 0, ("a", 1): 0}, "h": {("a", 0): 0}}
    watch.look()
    cluster.now = 1.0
    look = watch.look()
    assert look.left_out == {"partitions": 1, "groups": 0}
    assert [one.read for one in look.groups] == [0.0, None], "its lag is told all the same"
    assert [one.lag for one in look.groups] == [2, 1]


def test_times_of_answers_have_their_middle_and_their_worst(cluster: Cluster, watch: Watch) -> None:
    for milliseconds in range(100, 0, -1):
        watch._took.setdefault("Metadata", watching.deque(maxlen=100)).append(float(milliseconds))
    (answers,) = [watching._answers(*one) for one in watch._took.items()]
    assert answers == ("Metadata", 1.0, 50.0, 99.0)
