"""The one interface of a broker: Kafka's operations as plain methods on plain values.

Everything that speaks Kafka stands on it: the facade in the same process calls it through the hub, the wire
listener decodes requests into the same calls, and a remote broker is the same interface over TCP. There is
no second path to the data.

Every method runs in the hub and may wait as a green thread. Topics are str, partitions are numbers, and
``(topic, partition)`` is a plain pair (a kafka-python ``TopicPartition`` is one, too). A request for several
things is answered for each of them: ``error`` is a class of ``kafka.errors``, or None. An exception raised by
a method concerns the broker as a whole: :class:`dafka.broker.interface.errors.BrokerStoppedError`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dafka.broker.interface.access import AccessInterface
from dafka.broker.interface.admin import AdminInterface
from dafka.broker.interface.consumer_groups import ConsumerGroupInterface
from dafka.broker.interface.features import FeatureInterface
from dafka.broker.interface.groups import (
    CommittedOffset,
    Error,
    GroupDescription,
    GroupInterface,
    Joined,
    JoinedMember,
    JoinRequest,
    LeavingMember,
    ListedGroup,
    MemberDescription,
    Synced,
    TopicPartition,
)
from dafka.broker.interface.positions import PositionsInterface
from dafka.broker.interface.quotas import QuotaInterface
from dafka.broker.interface.records import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    NO_EPOCH,
    NO_EPOCHS,
    NO_OFFSET,
    EpochEnd,
    Fetched,
    FetchFrom,
    ListedOffset,
    PartitionWatch,
    Produced,
    RecordError,
    RecordInterface,
)
from dafka.broker.interface.share import ShareInterface
from dafka.broker.interface.streams_groups import StreamsGroupInterface
from dafka.broker.interface.topics import (
    Metadata,
    PartitionMetadata,
    TopicInterface,
    TopicMetadata,
    TopicSpec,
)
from dafka.broker.interface.transactions import TransactionInterface
from dafka.hub.clock import REAL

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "NO_EPOCH",
    "NO_EPOCHS",
    "NO_OFFSET",
    "BrokerInterface",
    "CommittedOffset",
    "EpochEnd",
    "Error",
    "FetchFrom",
    "Fetched",
    "GroupDescription",
    "JoinRequest",
    "Joined",
    "JoinedMember",
    "LeavingMember",
    "ListedGroup",
    "ListedOffset",
    "MemberDescription",
    "Metadata",
    "PartitionMetadata",
    "PartitionWatch",
    "Produced",
    "RecordError",
    "Synced",
    "TopicMetadata",
    "TopicPartition",
    "TopicSpec",
]


class BrokerInterface(
    TopicInterface,
    RecordInterface,
    GroupInterface,
    ConsumerGroupInterface,
    ShareInterface,
    StreamsGroupInterface,
    TransactionInterface,
    AdminInterface,
    AccessInterface,
    QuotaInterface,
    FeatureInterface,
):
    """A broker: everything that one can be asked, each part in a module of its own."""

    is_remote: bool = False
    """Whether the broker is reached over TCP. Only such a one can :meth:`send`, and only a broker of this
    process can :meth:`watch` and has :attr:`positions`."""

    time: Callable[[], float] = REAL.time
    """The time that it goes by, as far as a client of this process can know it: seconds since the epoch."""

    @property
    def positions(self) -> PositionsInterface:
        """The octet positions of its partitions. Only for a broker of this process."""
        raise NotImplementedError("octet positions are looked up in the broker's process, not over TCP")

    @property
    @abstractmethod
    def addresses(self) -> Sequence[tuple[str, int]]:
        """Pairs of host and port at which the broker is found."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether calls are answered. A remote broker's calls open connections again, so it always runs."""

    @property
    @abstractmethod
    def reached(self) -> bool:
        """Whether the broker has ever answered; one of this process has."""

    def for_client(self, client_id: str) -> BrokerInterface:
        """The broker as a client of this process is to call it: one that is around another broker may tell
        its clients apart."""
        return self

    @abstractmethod
    def close(self) -> None:
        """End the waiting calls and give everything back; waits as a green thread.

        A broker of this process commits what it has accepted, and from then on answers every call with
        BrokerStoppedError. A remote broker's connections are closed.
        """

    def send(self, request: Any, node: int | None = None) -> Any:
        """Send one of kafka-python's requests, in the highest version both sides know; its response.

        ``node``: the id of the broker that must answer it; None: any. Errors in the response are not
        examined. Raises KafkaConnectionError, RequestTimedOutError, KafkaProtocolError (a malformed
        answer), BrokerNotAvailableError (no such node) and IncompatibleBrokerVersion. Only for a broker
        that :attr:`is_remote`; requests to one of this process are answered by
        :mod:`dafka.broker.server.answering`.
        """
        raise NotImplementedError("a broker of this process has methods instead of requests")
