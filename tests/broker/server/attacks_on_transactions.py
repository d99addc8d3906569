"""Requests of transactions with very many partitions and offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.server.attack_scene import (
    Scene,
    sending,
)
from broker.server.attacks_on_groups import commit
from broker.server.client import encoded
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)


def begun_transaction(scene: Scene, name: str) -> dict[str, Any]:
    """The producer of its requests."""
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=600_000, producer_id=-1, producer_epoch=-1
    )
    identity = scene.ask(request, 1)
    assert not identity.error_code
    return {
        "transactional_id": name,
        "producer_id": identity.producer_id,
        "producer_epoch": identity.producer_epoch,
    }


def add_partitions_to_txn(scene: Scene) -> Callable[[], None]:
    return sending(scene, added_partitions(scene, begun_transaction(scene, "added")))


def added_partitions(scene: Scene, who: dict[str, Any]) -> bytes:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=who["transactional_id"],
        v3_and_below_producer_id=who["producer_id"],
        v3_and_below_producer_epoch=who["producer_epoch"],
        v3_and_below_topics=[topic(name=scene.topic, partitions=list(range(scene.partitions)))],
    )
    return encoded(request, 3)


def end_txn(scene: Scene) -> Callable[[], None]:
    """One that has added all partitions."""
    who = begun_transaction(scene, "ended")
    sending(scene, added_partitions(scene, who))()
    return sending(scene, encoded(EndTxnRequest(**who, committed=True), 3))


def txn_offset_commit(scene: Scene) -> Callable[[], None]:
    who = begun_transaction(scene, "offsets")
    assert not scene.ask(AddOffsetsToTxnRequest(**who, group_id="group"), 1).error_code
    return sending(scene, committed_in_txn(scene, who))


def committed_in_txn(scene: Scene, who: dict[str, Any]) -> bytes:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    one = topic.TxnOffsetCommitRequestPartition
    partitions = [
        one(partition_index=number, committed_offset=0, committed_leader_epoch=-1, committed_metadata="")
        for number in range(scene.partitions)
    ]
    request = TxnOffsetCommitRequest(
        **who,
        group_id="group",
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[topic(name=scene.topic, partitions=partitions)],
    )
    return encoded(request, 3)


def fetch_unstable_offsets(scene: Scene) -> Callable[[], None]:
    """All of a group, each of which an open transaction replaces."""
    sending(scene, commit(scene.topic, "group", scene.partitions))()
    txn_offset_commit(scene)()
    request = OffsetFetchRequest(group_id="group", topics=None, require_stable=True)
    return sending(scene, encoded(request, 7))


def end_txn_with_offsets(scene: Scene) -> Callable[[], None]:
    who = begun_transaction(scene, "ended-offsets")
    assert not scene.ask(AddOffsetsToTxnRequest(**who, group_id="group"), 1).error_code
    sending(scene, committed_in_txn(scene, who))()
    return sending(scene, encoded(EndTxnRequest(**who, committed=True), 3))
