"""The one interface of a broker: Kafka's operations as plain methods on plain values.

Everything that speaks Kafka stands on it: the facade in the same process calls it through the hub, the wire
listener decodes requests into the same calls, and a remote broker is the same interface over TCP. There is
no second path to the data.

Every method runs in the hub and may wait as a green thread. Topics are str, partitions are numbers, and
``(topic, partition)`` is a plain pair (a kafka-python ``TopicPartition`` is one, too). A request for several
things is answered for each of them: ``error`` is a class of ``kafka.errors``, or None. What a method raises
itself concerns the broker as a whole: :class:`dafka.broker.interface.errors.BrokerStoppedError`.
"""

from __future__ import annotations

from dafka.broker.interface.admin import AdminInterface
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
from dafka.broker.interface.topics import (
    Metadata,
    PartitionMetadata,
    TopicInterface,
    TopicMetadata,
    TopicSpec,
)
from dafka.broker.interface.transactions import TransactionInterface

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


class BrokerInterface(TopicInterface, RecordInterface, GroupInterface, TransactionInterface, AdminInterface):
    """A broker: everything that one can be asked, each part in a module of its own."""
