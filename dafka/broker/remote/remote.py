"""A broker in another process, or a cluster of Apache Kafka: the broker interface over TCP.

Connections, metadata and coordinators are kept here, for all clients of this process that use the same
addresses. Brokers that have moved, are loading or have no leader for a moment are asked again; what is
returned is what remains. A broker that cannot be reached at all is an error of each thing asked for where
the interface has one (NetworkExceptionError, CoordinatorNotAvailableError), and KafkaConnectionError raised
where it has not; both may be tried again.

**Produce is never repeated here when it might have been carried out.** If a connection ends between a
request and its answer the outcome is NetworkExceptionError or RequestTimedOutError, which are retriable:
the caller knows whether its batches carry an idempotent producer's sequence and may be sent again without
being stored twice. Batches that were refused because another broker leads by now are sent to that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import gevent
from kafka.errors import LeaderNotAvailableError, OffsetOutOfRangeError, for_code
from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.broker import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    NO_EPOCH,
    NO_EPOCHS,
    BrokerInterface,
    EpochEnd,
    Fetched,
    FetchFrom,
    ListedOffset,
    Metadata,
    PartitionMetadata,
    Produced,
    TopicMetadata,
    TopicPartition,
)
from dafka.broker.remote.admin import RemoteAdmin
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.fetching import Fetching
from dafka.broker.remote.groups import RemoteGroups
from dafka.broker.remote.leaders import ask_leaders
from dafka.broker.remote.limits import CONNECT_TIMEOUT, REQUEST_TIMEOUT, RETRIES, RETRY_BACKOFF
from dafka.broker.remote.nodes import Node
from dafka.broker.remote.producing import Producing
from dafka.broker.remote.transactions import RemoteTransactions
from dafka.hub.hub import Hub

_NO_ID = UUID(int=0)


class Remote(RemoteGroups, RemoteAdmin, RemoteTransactions, BrokerInterface):
    """The brokers behind ``addresses``, pairs of host and port that are tried until one answers.

    Nothing is opened before the first call, and calls after :meth:`close` open connections again.
    ``request_timeout``: seconds that an answer may take; ``connect_timeout``: a new connection.
    """

    running = True

    def __init__(
        self,
        hub: Hub,
        addresses: Sequence[tuple[str, int]],
        request_timeout: float = REQUEST_TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        super().__init__()
        self.hub = hub
        self.addresses = tuple(addresses)
        self.cluster = Cluster(self.addresses, request_timeout, min(connect_timeout, request_timeout))
        self._fetching = Fetching(self.cluster)

    def __repr__(self) -> str:
        return "<Remote " + ",".join(f"{host}:{port}" for host, port in self.addresses) + ">"

    @property
    def reached(self) -> bool:
        """Whether a broker has ever answered."""
        return self.cluster.reached

    def send(self, request: Any, node: int | None = None) -> Any:
        """Send one of kafka-python's requests, in the highest version both sides know; its response.

        ``node``: the id of the broker that must answer it; None: any. What the response says is not looked
        into. Raises KafkaConnectionError, RequestTimedOutError, KafkaProtocolError (no answer, or none that
        can be read), BrokerNotAvailableError (no such node) and IncompatibleBrokerVersion.
        """
        lowest = getattr(request, "_min_version", None) or 0
        highest = getattr(request, "_max_version", None)
        if request.API_VERSION is not None:
            lowest = highest = request.API_VERSION
        if highest is None:
            highest = request.max_version
        if node is None:
            return self.cluster.ask_any(request, lowest=lowest, highest=highest)
        return self.cluster.ask(self.cluster.node(node), request, lowest=lowest, highest=highest)

    @property
    def controller_id(self) -> int:
        """The node id of the broker that administrative requests go to."""
        return self.cluster.controller().node_id

    def coordinator_id(self, kind: int, key: str) -> int:
        """The node id of the coordinator of a group (kind 0) or a transactional id (1).

        Raises KafkaError.
        """
        return self.cluster.coordinator(kind, key).node_id

    # -- topics ---------------------------------------------------------------------------------

    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        """See the interface; ``PartitionMetadata.address`` is empty. Raises KafkaConnectionError."""
        names = None if topics is None else list(topics)
        for attempt in range(RETRIES + 1):
            if attempt:
                gevent.sleep(RETRY_BACKOFF)
            response = self.cluster.refresh(names, create)
            if not any(one.error_code == LeaderNotAvailableError.errno for one in response.topics):
                break
        brokers = [(one.node_id, one.host, one.port) for one in response.brokers]
        described = {one.name: _described(one) for one in response.topics}
        return Metadata(response.cluster_id or "", response.controller_id, brokers, described)

    # -- records --------------------------------------------------------------------------------

    def produce(
        self,
        batches: Mapping[TopicPartition, Sequence[bytes]],
        acks: int = -1,
        *,
        transactional_id: str | None = None,
    ) -> dict[TopicPartition, Produced]:
        """See the interface, and the module for what is repeated.

        Several batches for one partition are sent one after the other, up to the first that is refused;
        ``Produced.base_offsets`` says where those that were taken are.
        """
        return Producing(self.cluster, acks, transactional_id).run(batches)

    def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool = False,
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
            response = self.cluster.ask(node, request, lowest=max(lowest, 2 if read_committed else 1))
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

        return ask_leaders(self.cluster, timestamps, ask, ListedOffset)

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
                for topic in self.cluster.ask(node, request, lowest=2).topics
                for one in topic.partitions
            }

        return ask_leaders(self.cluster, epochs, ask, EpochEnd)

    # -- life -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections; what waits for an answer ends with an error."""
        self._fetching.close()
        self.cluster.close()


def _described(topic: Any) -> TopicMetadata:
    error = for_code(topic.error_code) if topic.error_code else None
    partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
    return TopicMetadata(
        topic.name,
        topic.topic_id or _NO_ID,
        error,
        [
            PartitionMetadata(
                one.partition_index, "", True, NO_EPOCH if one.leader_epoch is None else one.leader_epoch
            )
            for one in partitions
            if error is None
        ],
    )
