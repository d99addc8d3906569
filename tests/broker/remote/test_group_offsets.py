"""Committed offsets over TCP."""

from __future__ import annotations

from dafka.broker.interface.broker import (
    CommittedOffset,
)


def test_a_group_without_members_takes_offsets(remote, topic):
    assert remote.commit_offsets("free", {(topic, 0): CommittedOffset(3)}) == {(topic, 0): None}
    assert remote.fetch_offsets("free", require_stable=True)[topic, 0].offset == 3
