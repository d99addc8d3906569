"""Reading many partitions of a broker from positions that somebody else keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import gevent
from kafka.errors import KafkaError, OffsetOutOfRangeError, UnknownTopicOrPartitionError

from dafka.broker.interface.broker import BrokerInterface, FetchFrom, TopicPartition
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.limits import EVENT_OCTETS, FETCH_SECONDS, LONGEST_RETRY

log = bounded_logger(__name__)


class Read(NamedTuple):
    """Batches of a partition, the first of which holds the position asked for, or nothing and a new position.

    ``aborted`` is for :class:`~dafka.protocol.aborted.AbortedTransactions`.
    """

    key: TopicPartition
    batches: tuple[bytes, ...]
    aborted: tuple[tuple[int, int], ...]
    position: int


def topics_of(broker: BrokerInterface, choose: Callable[[Iterable[str]], Iterable[str]]) -> dict[str, int]:
    """The topics that ``choose`` picks, with the number of their partitions. Raises KafkaError."""
    topics = broker.metadata(None).topics
    found = {}
    for name in choose(topics):
        topic = topics[name]
        if topic.error is None:
            found[name] = max((partition.number for partition in topic.partitions), default=-1) + 1
    return found


class Reading:
    """Reads committed records, of each partition in turn. Hub side."""

    def __init__(self, broker: BrokerInterface) -> None:
        self._broker = broker
        self._turn = 0

    def read(self, positions: Mapping[TopicPartition, int], most: int = EVENT_OCTETS) -> Iterator[Read]:
        """The records that are there, for at most FETCH_SECONDS; ``most`` octets of each partition.

        A broker that fails is logged, and asked again after a pause by the next call.
        """
        keys = list(positions)
        if not keys:
            gevent.sleep(FETCH_SECONDS)
            return
        self._turn = (self._turn + 1) % len(keys)
        wanted = {key: FetchFrom(positions[key], most) for key in keys[self._turn :] + keys[: self._turn]}
        try:
            fetched = self._broker.fetch(
                wanted, max_wait=FETCH_SECONDS, min_bytes=1, max_bytes=4 * most, read_committed=True
            )
        except KafkaError as error:
            log.error("reading %d partitions: %s", len(keys), error)
            gevent.sleep(LONGEST_RETRY / 5)
            return
        failed = False
        for key, found in fetched.items():
            position = wanted[key].offset
            if found.error is OffsetOutOfRangeError:
                # Removed by retention, or the topic was deleted and made again.
                log.error("%s-%d has no offset %d: going on at %d", *key, position, found.log_start_offset)
                yield Read(key, (), (), found.log_start_offset)
            elif found.error is not None:
                failed = True
                if found.error is not UnknownTopicOrPartitionError:  # deleted: the next look at topics tells
                    log.error("reading %s-%d: %s", *key, found.error.__name__)
            elif found.batches:
                yield Read(key, tuple(found.batches), tuple(found.aborted), position)
        if failed:
            gevent.sleep(FETCH_SECONDS)
