"""Transactions over TCP."""

from __future__ import annotations

from broker.clients import batch
from kafka.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import (
    CommittedOffset,
)
from dafka.broker.interface.transactions import Writes
from dafka.protocol.batch import with_producer


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


def test_a_transaction_whose_end_raises_the_epoch(remote, topic):
    me = remote.init_producer_id("tx", 60.0)
    content = with_producer(batch(b"a"), me.producer_id, 0, 0, transactional=True)

    def produce(writes):
        return remote.produce({(topic, 0): [content]}, transactional_id="tx", writes=writes)[topic, 0].error

    who = "tx", me.producer_id, me.epoch
    offsets = {(topic, 1): CommittedOffset(4)}
    assert produce(Writes.ABORTABLE) is TransactionAbortableError
    assert remote.commit_transaction_offsets(*who, "g", offsets, writes=Writes.ABORTABLE) == {
        (topic, 1): TransactionAbortableError
    }
    assert produce(Writes.ADDING) is None
    assert remote.commit_transaction_offsets(*who, "g", offsets, writes=Writes.ADDING) == {(topic, 1): None}
    assert remote.end_transaction_with_epoch(*who, True) == (None, me.producer_id, 1)
    assert remote.end_transaction_with_epoch(*who, False).error is InvalidTxnStateError
    assert remote.fetch_offsets("g")[topic, 1].offset == 4
    assert produce(Writes.ADDING) is InvalidProducerEpochError


def test_markers_are_written_by_hand(remote, topic):
    me = remote.init_producer_id("tx", 60.0)
    content = with_producer(batch(b"a"), me.producer_id, 0, 0, transactional=True)
    remote.produce({(topic, 0): [content]}, transactional_id="tx", writes=Writes.ADDING)
    marked = remote.write_markers(me.producer_id, 0, False, [(topic, 0), (topic, 99)])
    assert marked == {(topic, 0): None, (topic, 99): UnknownTopicOrPartitionError}
    (producer,) = remote.describe_producers([(topic, 0)])[topic, 0].producers
    assert producer.transaction_start == -1
