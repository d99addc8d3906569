"""What a target of partitions is computed from."""

from __future__ import annotations

from broker.groups.modern.any_group import AnyModern
from broker.groups.modern.known_topics import FakeTopics


def test_a_spec_has_the_members_with_the_ids_of_their_topics():
    topics = FakeTopics(a=3, b=2)
    group = AnyModern(0.0, topics)
    group.enter("m", "a", "none")
    group.enter("n", "a", "b")
    group.install(group.epoch, {"m": {topics.known["a"].topic_id: frozenset({1})}, "n": {}})
    spec = group.spec()
    m, n = spec.members
    assert m.topics == {topics.known["a"].topic_id} and m.target == {topics.known["a"].topic_id: {1}}
    assert n.topics == {one.topic_id for one in topics.known.values()}
    assert group.target_of(group.members["m"]) == m.target and group.target_of(group.members["n"]) == {}
    assert not spec.is_homogeneous and spec.epoch == group.epoch
