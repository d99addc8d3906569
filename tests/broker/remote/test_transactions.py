"""Transactions over TCP."""

from __future__ import annotations

from kafka.errors import (
    TransactionalIdNotFoundError,
)

from dafka.broker.interface.broker import (
    CommittedOffset,
)


def test_a_transaction_is_committed_with_offsets(remote, topic):
    anonymous = remote.init_producer_id(None, 60.0)
    assert anonymous.error is None and anonymous.producer_id >= 0
    me = remote.init_producer_id("tx", 60.0)
    who = "tx", me.producer_id, me.epoch
    assert remote.add_partitions_to_transaction(*who, [(topic, 0)]) == {(topic, 0): None}
    described = remote.describe_transactions(["tx", "none"])
    assert (described["tx"].state, described["tx"].partitions) == ("Ongoing", [(topic, 0)])
    assert described["none"].error is TransactionalIdNotFoundError
    assert [one.transactional_id for one in remote.list_transactions()] == ["tx"]
    assert remote.add_offsets_to_transaction(*who, "g") is None
    offsets = {(topic, 1): CommittedOffset(4)}
    assert remote.commit_transaction_offsets(*who, "g", offsets) == {(topic, 1): None}
    assert remote.end_transaction(*who, True) is None
    assert remote.fetch_offsets("g")[topic, 1].offset == 4
