"""Share groups and committed offsets, which they do not have."""

from __future__ import annotations

from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.share.member import Member

from dafka.broker.interface.groups import CommittedOffset

GROUP = "queue"


@pytest.mark.parametrize("occupied", [True, False])
def test_committed_offsets_are_nothing_that_a_share_group_has(client: Client, occupied: bool):
    call = client.call
    client.create("jobs")
    member = Member(call, GROUP, "jobs")
    assert member.heartbeat().error is None
    if not occupied:
        member.heartbeat(-1)
    key = ("jobs", 0)
    missing = {key: errors.GroupIdNotFoundError}
    offsets = {key: CommittedOffset(1)}
    identity: dict[str, Any]
    for identity in ({}, {"generation": 0}, {"generation": 2, "member_id": member.member_id}):
        assert call("commit_offsets", GROUP, offsets, **identity) == missing
    assert call("delete_offsets", GROUP, [key]) == missing
    producer = call("init_producer_id", "payments", 60.0)
    who = ("payments", producer.producer_id, producer.epoch)
    assert call("add_offsets_to_transaction", *who, GROUP) is None
    for identity in ({}, {"generation": 2, "member_id": member.member_id}):
        assert call("commit_transaction_offsets", *who, GROUP, offsets, **identity) == missing
    assert call("end_transaction", *who, True) is None
    assert call("fetch_offsets", GROUP) == {}


def test_a_group_of_committed_offsets_is_no_share_group(client: Client):
    call = client.call
    client.create("jobs")
    key = ("jobs", 0)
    assert call("commit_offsets", GROUP, {key: CommittedOffset(1)}) == {key: None}
    for deleted in (False, True):
        if deleted:  # the group is forgotten with the next look for expired offsets
            assert call("delete_offsets", GROUP, [key]) == {key: None}
        assert Member(call, GROUP, "jobs").heartbeat().error is errors.GroupIdNotFoundError
        assert call("alter_share_offsets", GROUP, {key: 0}).error is errors.GroupIdNotFoundError
        assert call("delete_share_offsets", GROUP, ["jobs"]).error is errors.GroupIdNotFoundError
        described = call("describe_share_groups", [GROUP])[GROUP]
        assert described.detail == f"Group {GROUP} is not a share group."
        assert [one.type.value for one in call("list_groups")] == ["classic"]
