"""The records of a remote broker: each request goes to the brokers that lead the partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.errors import OffsetOutOfRangeError
from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.groups import TopicPartition
from dafka.broker.interface.records import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    MOST_IN_FLIGHT,
    NO_EPOCH,
    NO_EPOCHS,
    EpochEnd,
    Fetched,
    FetchFrom,
    ListedOffset,
    Produced,
    RecordInterface,
)
from dafka.broker.interface.transactions import Writes
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.fetching import Fetching
from dafka.broker.remote.leaders import ask_leaders
from dafka.broker.remote.nodes import Node
from dafka.broker.remote.producing import Producing
from dafka.protocol.batch import FIRST_OFFSET, with_offset


class RemoteRecords(RecordInterface):
    """Records of a cluster's partitions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fetching = Fetching(cluster)

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
        writes: Writes = Writes.ANNOUNCED,
        in_flight: int = MOST_IN_FLIGHT,
        trusted: bool = False,
        from_0: bool = False,
    ) -> dict[TopicPartition, Produced]:
        """See the interface, and :mod:`dafka.broker.remote.remote` for what is repeated.

        Several batches for one partition are sent one after the other, up to the first that is refused;
        ``Produced.base_offsets`` says where those that were taken are.
        """
        if not from_0:
            batches = {key: [_numbered_anew(batch) for batch in some] for key, some in batches.items()}
        return Producing(self._cluster, acks, transactional_id, writes, in_flight).run(batches)

    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
        stored: bool = False,
        counted: bool = True,
    ) -> dict[TopicPartition, Fetched]:
        """See the interface; ``max_bytes`` counts for each of the brokers that are asked."""
        found = self._fetching.fetch(partitions, max_wait, min_bytes, max_bytes, read_committed)
        return self._with_limits(found)

    def _with_limits(self, found: dict[TopicPartition, Fetched]) -> dict[TopicPartition, Fetched]:
        """Both limits added where an offset is out of range: Apache Kafka does not say them."""
        unknown = [
            key
            for key, one in found.items()
            if one.error is OffsetOutOfRangeError and min(one.log_start_offset, one.high_watermark) < 0
        ]
        if not unknown:
            return found
        starts = self.list_offsets(dict.fromkeys(unknown, EARLIEST))
        ends = self.list_offsets(dict.fromkeys(unknown, LATEST))
        limits = {}
        for key in unknown:
            error = starts[key].error or ends[key].error or OffsetOutOfRangeError
            limits[key] = Fetched(error, ends[key].offset, starts[key].offset, [])
        return {**found, **limits}

    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, ListedOffset]:
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        lowest = 1 if MAX_TIMESTAMP not in timestamps.values() else 7

        def ask(node: Node, partitions: list[TopicPartition]) -> dict[TopicPartition, ListedOffset]:
            topics: dict[str, Any] = {}
            for key in partitions:
                one = topic_class.ListOffsetsPartition(
                    partition_index=key[1],
                    current_leader_epoch=leader_epochs.get(key, NO_EPOCH),
                    timestamp=timestamps[key],
                )
                topics.setdefault(key[0], topic_class(name=key[0], partitions=[])).partitions.append(one)
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=int(read_committed), topics=list(topics.values())
            )
            response = self._cluster.ask(node, request, lowest=max(lowest, 2 if read_committed else 1))
            return {
                (topic.name, one.partition_index): ListedOffset(
                    error_of(one.error_code),
                    one.offset,
                    one.timestamp,
                    NO_EPOCH if one.leader_epoch is None else one.leader_epoch,
                )
                for topic in response.topics
                for one in topic.partitions
            }

        return ask_leaders(self._cluster, timestamps, ask, ListedOffset)

    def epoch_ends(
        self,
        epochs: Mapping[TopicPartition, int],
        *,
        leader_epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> dict[TopicPartition, EpochEnd]:
        topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

        def ask(node: Node, partitions: list[TopicPartition]) -> dict[TopicPartition, EpochEnd]:
            topics: dict[str, Any] = {}
            for key in partitions:
                one = topic_class.OffsetForLeaderPartition(
                    partition=key[1],
                    current_leader_epoch=leader_epochs.get(key, NO_EPOCH),
                    leader_epoch=epochs[key],
                )
                topics.setdefault(key[0], topic_class(topic=key[0], partitions=[])).partitions.append(one)
            request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))
            return {
                (topic.topic, one.partition): EpochEnd(
                    error_of(one.error_code), one.leader_epoch, one.end_offset
                )
                for topic in self._cluster.ask(node, request, lowest=2).topics
                for one in topic.partitions
            }

        return ask_leaders(self._cluster, epochs, ask, EpochEnd)

    def close(self) -> None:
        """Give up the fetches that are under way."""
        self._fetching.close()


def _numbered_anew(batch: bytes) -> bytes:
    """A batch from the base offset 0 on: brokers refuse another one, as copies from elsewhere have."""
    return batch if batch[:8] == FIRST_OFFSET else with_offset(batch, 0, NO_EPOCH)
