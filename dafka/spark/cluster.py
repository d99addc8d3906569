"""The brokers for Spark's processes: calls of the broker interface, with retries.

Planning on the driver and reading and writing on executors all go through here. A process keeps its
connections for as long as it lives, because Spark's Python workers serve one task after the other; which
addresses it may know is bounded. A call that fails because a broker is away is made again with a new
connection until ``patience`` is over, so a broker may be restarted while a query runs.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from dafka.broker import Connection, connect
from dafka.broker.interface.broker import Fetched, FetchFrom, ListedOffset, Metadata, Produced
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.security import TlsError
from dafka.spark.errors import OffsetError, UnknownTopicError, UnreachableError
from dafka.spark.option_values import TopicPartition
from dafka.spark.options import Access, Subscription

log = logging.getLogger(__name__)

T = TypeVar("T")

CLUSTERS_LIMIT = 16  # addresses that one process keeps connections for
_INTERNAL = ("__consumer_offsets", "__transaction_state")  # Kafka's own: patterns do not match them
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0

_clusters: dict[Access, Cluster] = {}


def cluster(access: Access) -> Cluster:
    """The cluster at these addresses; one object for the whole process."""
    known = _clusters.get(access)
    if known is None:
        while len(_clusters) >= CLUSTERS_LIMIT:
            _clusters.pop(next(iter(_clusters)))
        known = _clusters[access] = Cluster(access)
    return known


def find_broker(access: Access) -> None:
    """Wait until a broker answers at these addresses, at most ``access.connect_timeout`` seconds.

    Raises UnreachableError.
    """
    try:
        connect(access.servers, access.connect_timeout, **access.security.arguments).close()
    except (KafkaError, TlsError, OSError) as error:
        raise _unreachable(access, error) from error


class Cluster:
    """Brokers at ``access.servers``. Methods may be called from any thread and wait."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._connection: Connection | None = None

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        """The partitions there are now of what is subscribed to, in order.

        Raises UnknownTopicError for a topic or partition that is named and does not exist. A pattern may
        match nothing.
        """
        named = subscription.topics or tuple(dict.fromkeys(topic for topic, _ in subscription.partitions))
        found: list[TopicPartition] = []
        for topic, there in self.metadata(named or None).topics.items():
            if subscription.pattern is not None:
                if topic in _INTERNAL or not re.fullmatch(subscription.pattern, topic):
                    continue
            elif there.error is not None:
                raise UnknownTopicError(f"topic {topic!r} at {self.access.servers}: {reason(there.error)}")
            found += ((topic, partition.number) for partition in there.partitions)
        if subscription.partitions:
            if missing := set(subscription.partitions).difference(found):
                topic, number = min(missing)
                raise UnknownTopicError(f"topic {topic!r} at {self.access.servers} has no partition {number}")
            found = list(subscription.partitions)
        return sorted(found)

    def metadata(self, topics: Iterable[str] | None, create: bool = False) -> Metadata:
        """Topics by their names, None for all; see the broker interface."""
        names = None if topics is None else list(topics)

        def ask() -> Metadata:
            answer: Metadata = self._call("metadata", names, create)
            # Errors that pass: a topic that is being created, or any topic while the broker restarts.
            _raise_retriable(topic.error for topic in answer.topics.values())
            return answer

        return self._patiently(ask)

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], read_committed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by timestamp (ms) or EARLIEST or LATEST; a partition not there keeps its error."""
        keywords = {"read_committed": True} if read_committed else {}

        def ask() -> dict[TopicPartition, ListedOffset]:
            answer: dict[TopicPartition, ListedOffset] = self._call(
                "list_offsets", dict(timestamps), **keywords
            )
            _raise_retriable(listed.error for listed in answer.values())
            return answer

        return self._patiently(ask) if timestamps else {}

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The same as plain numbers; -1 where no record is that late. Raises for partitions not there."""
        offsets = {}
        for place, listed in self.list_offsets(timestamps, read_committed).items():
            if listed.error is not None:
                raise _error(place, listed.error, self.access.servers)
            offsets[place] = listed.offset
        return offsets

    def fetch(self, place: TopicPartition, offset: int, max_bytes: int, read_committed: bool) -> Fetched:
        """Whole batches from ``offset`` on, or an error that lasts. Waits a moment for records."""
        keywords = {"read_committed": True} if read_committed else {}

        def ask() -> Fetched:
            answer: dict[TopicPartition, Fetched] = self._call(
                "fetch",
                {place: FetchFrom(offset, max_bytes)},
                max_wait=0.5,
                min_bytes=1,
                max_bytes=max_bytes,
                **keywords,
            )
            fetched = answer.get(place) or Fetched(None, -1, -1, [])
            _raise_retriable([fetched.error])
            return fetched

        return self._patiently(ask)

    def fetch_ahead(
        self,
        pool: ThreadPoolExecutor,
        place: TopicPartition,
        offset: int,
        max_bytes: int,
        read_committed: bool,
    ) -> Future[Fetched]:
        """:meth:`fetch` in another thread, while the caller decodes what it has."""
        return pool.submit(self.fetch, place, offset, max_bytes, read_committed)

    def produce(
        self, batches: Mapping[TopicPartition, list[bytes]], acks: int, transactional_id: str | None = None
    ) -> dict[TopicPartition, Produced]:
        """Append batches; returns when all are committed, or those that lastingly failed have their error.

        Batches with a retriable error are sent again with the same bytes, so they should carry a producer id
        and sequences, by which the broker recognises them.
        """
        left = {place: list(some) for place, some in batches.items()}
        outcome: dict[TopicPartition, Produced] = {}
        keywords = {} if transactional_id is None else {"transactional_id": transactional_id}

        def ask() -> dict[TopicPartition, Produced]:
            answer: dict[TopicPartition, Produced] = self._call("produce", left, acks, **keywords)
            for place, produced in answer.items():
                if not _is_retriable(produced.error):
                    left.pop(place)
                    outcome[place] = produced
            _raise_retriable(produced.error for produced in answer.values())
            return outcome

        return self._patiently(ask)

    def call(self, method: str, *args: Any, **keywords: Any) -> Any:
        """Any method of the broker interface, again until a broker answers."""
        return self._patiently(lambda: self._call(method, *args, **keywords))

    def settled(
        self,
        method: str,
        *args: Any,
        errors: Callable[[Any], Iterable[type[KafkaError] | None]],
    ) -> Any:
        """:meth:`call`, again as long as ``errors`` of the answer has one that passes, such as that a
        transaction is still being ended."""

        def ask() -> Any:
            answer = self._call(method, *args)
            _raise_retriable(errors(answer))
            return answer

        return self._patiently(ask)

    # -- connections ----------------------------------------------------------------------------

    def _call(self, method: str, *args: Any, **keywords: Any) -> Any:
        connection = self._connection
        if connection is None:
            try:
                connection = self._connection = connect(
                    self.access.servers, self.access.connect_timeout, **self.access.security.arguments
                )
            except (KafkaError, TlsError, OSError) as error:
                raise _unreachable(self.access, error) from error
        return connection.call(method, *args, **keywords)

    def _patiently(self, ask: Callable[[], T]) -> T:
        pause, deadline = _FIRST_PAUSE, time.monotonic() + self.access.patience
        while True:
            try:
                return ask()
            except UnreachableError:
                raise
            except (KafkaError, OSError) as error:
                if not _is_away(error):
                    raise
                if time.monotonic() + pause > deadline:
                    raise UnreachableError(
                        f"the broker at {self.access.servers} has not answered for "
                        f"{self.access.patience:g} s: "
                        f"{reason(error)}"
                    ) from error
                level = logging.WARNING if pause >= _LONGEST_PAUSE else logging.INFO
                log.log(level, "asking %s again: %s", self.access.servers, reason(error))
                self._connection = None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _unreachable(access: Access, error: BaseException) -> UnreachableError:
    # connect() also says how to start a broker in this process, which does not help a user of Spark.
    words = reason(error) if error.__cause__ is None else error.__cause__.args[0]
    return UnreachableError(f"no broker answers at {access.servers} in {access.connect_timeout:g} s: {words}")


def reason(error: BaseException | type[BaseException]) -> str:
    """The message of an error of Kafka."""
    if isinstance(error, type):
        return str(getattr(error, "description", "") or error.__name__)
    return str(error) or type(error).__name__


def _error(place: TopicPartition, error: type[KafkaError], servers: str) -> Exception:
    topic, number = place
    where = f"partition {number} of topic {topic!r} at {servers}"
    if issubclass(error, UnknownTopicOrPartitionError):
        return UnknownTopicError(f"{where} does not exist")
    return OffsetError(f"{where}: {reason(error)}")


def _is_retriable(error: type[KafkaError] | None) -> bool:
    # The caller decides about a missing topic or partition: it may be gone for good.
    return error is not None and bool(error.retriable) and not issubclass(error, UnknownTopicOrPartitionError)


def _raise_retriable(errors: Iterable[type[KafkaError] | None]) -> None:
    for error in errors:
        if _is_retriable(error):
            assert error is not None
            raise error()


def _is_away(error: BaseException) -> bool:
    return isinstance(error, (OSError, BrokerStoppedError)) or bool(getattr(error, "retriable", False))


def _forget_after_fork() -> None:
    _clusters.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
