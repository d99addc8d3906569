"""Produce: each batch to the broker that leads its partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import gevent
from gevent.event import AsyncResult
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    NetworkExceptionError,
    RequestTimedOutError,
)

from dafka.broker.codec.produce_request import (
    ABORTABLE,
    ADDING,
    API_KEY,
    FLEXIBLE,
    HIGHEST,
    LOWEST,
    encode_produce,
)
from dafka.broker.codec.produce_response import decode_produce
from dafka.broker.codec.responses import body_of
from dafka.broker.interface.broker import Error, Produced, TopicPartition
from dafka.broker.interface.records import MOST_IN_FLIGHT
from dafka.broker.interface.transactions import Writes
from dafka.broker.remote import limits
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.connection import Connection
from dafka.broker.remote.leaders import leader_moved, no_leader, while_leaders_move
from dafka.broker.remote.nodes import PRODUCE, Node
from dafka.protocol.batch import read_header

_VERSIONS = {
    Writes.ANNOUNCED: (LOWEST, ABORTABLE - 1),
    Writes.ABORTABLE: (ABORTABLE, ABORTABLE),
    Writes.ADDING: (ADDING, HIGHEST),
}


class _Posted(NamedTuple):
    """A request whose answer has not come yet."""

    connection: Connection
    version: int
    answer: AsyncResult


class Producing:
    """One produce: ``run`` sends it and answers for each partition.

    Kafka accepts one batch for each partition in a request. Several batches are sent one after the other, in
    their order, up to the first that is refused; ``Produced.base_offsets`` has those that were appended.

    Of an idempotent producer the next ones are sent before the answer has come: behind a batch that is
    refused the broker takes no other one, for the sequence is wrong. That holds as soon as the broker knows
    the producer, so each partition's first batch goes alone. ``in_flight``: the most requests under way.
    """

    def __init__(
        self,
        cluster: Cluster,
        acks: int,
        transactional_id: str | None,
        writes: Writes = Writes.ANNOUNCED,
        in_flight: int = MOST_IN_FLIGHT,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._transactional_id = transactional_id
        self._versions = _VERSIONS[writes]
        self._in_flight = max(1, min(in_flight, limits.IN_FLIGHT))

    def run(self, batches: Mapping[TopicPartition, Sequence[bytes]]) -> dict[TopicPartition, Produced]:
        """Send and wait for the outcome."""
        taken: dict[TopicPartition, list[Produced]] = {partition: [] for partition in batches}
        refused: dict[TopicPartition, Produced] = {}
        left = [partition for partition, some in batches.items() if some]
        idempotent = self._acks == -1 and all(_is_of_one_producer(batches[one]) for one in left)
        ahead = 1  # requests that may be under way
        while left:
            moved: set[TopicPartition] = set()
            rounds = _rounds(batches, {one: len(taken[one]) for one in left}, refused.keys(), moved)
            for outcomes in self._send_all(rounds, ahead):
                for one, outcome in outcomes.items():
                    if one in refused or one in moved:
                        continue  # it was sent behind what was refused, and was refused as well
                    if outcome.error is None:
                        taken[one].append(outcome)
                    elif ahead > 1 and leader_moved(outcome.error):
                        moved.add(one)  # it is sent again, alone
                    else:  # the order would be lost if the next ones were taken
                        refused[one] = outcome
            left = [one for one in left if one not in refused and len(taken[one]) < len(batches[one])]
            ahead = self._in_flight if idempotent and not moved else 1
        return {one: _merged(some, refused.get(one)) for one, some in taken.items()}

    def _send_all(
        self, rounds: Iterator[dict[TopicPartition, bytes]], ahead: int
    ) -> Iterator[dict[TopicPartition, Produced]]:
        """Send requests, up to ``ahead`` of them under way at once if one broker leads all partitions;
        otherwise only the first one."""
        first = next(rounds)
        node = self._only_leader(first) if ahead > 1 else None
        if node is None:
            yield self._send(first)
            return
        posted = deque([(first, self._post(node, first))])
        while posted:
            while len(posted) < ahead and (some := next(rounds, None)):
                posted.append((some, self._post(node, some)))
            oldest, request = posted.popleft()
            yield request if isinstance(request, dict) else self._answer(oldest, request)

    def _only_leader(self, batches: dict[TopicPartition, bytes]) -> Node | None:
        try:
            led, leaderless = self._cluster.by_leader(batches)
        except KafkaConnectionError:
            return None
        return next(iter(led)) if len(led) == 1 and not leaderless else None

    def _send(self, batches: dict[TopicPartition, bytes]) -> dict[TopicPartition, Produced]:
        def attempt(left: list[TopicPartition]) -> dict[TopicPartition, Produced]:
            return self._attempt({one: batches[one] for one in left})

        return while_leaders_move(self._cluster, batches, attempt)

    def _attempt(self, batches: dict[TopicPartition, bytes]) -> dict[TopicPartition, Produced]:
        try:
            led, leaderless = self._cluster.by_leader(batches)
        except KafkaConnectionError as error:
            return dict.fromkeys(batches, Produced(NetworkExceptionError, detail=f"not sent: {error}"))
        outcomes = {one: Produced(no_leader(self._cluster, one)) for one in leaderless}
        shares = [(node, {one: batches[one] for one in some}) for node, some in led.items()]
        if len(shares) == 1:
            outcomes.update(self._to(*shares[0]))
            return outcomes
        greens = [gevent.spawn(self._to, node, share) for node, share in shares]
        try:
            for green in greens:
                outcomes.update(green.get())
        finally:
            gevent.killall(greens, block=False)
        return outcomes

    def _to(self, node: Node, batches: dict[TopicPartition, bytes]) -> dict[TopicPartition, Produced]:
        posted = self._post(node, batches)
        return posted if isinstance(posted, dict) else self._answer(batches, posted)

    def _post(
        self, node: Node, batches: dict[TopicPartition, bytes]
    ) -> _Posted | dict[TopicPartition, Produced]:
        """Send a request; the outcome if that has failed."""
        timeout = self._cluster.request_timeout
        try:
            connection = node.connection(PRODUCE)
        except KafkaConnectionError as error:
            self._cluster.forget_leaders({topic for topic, _ in batches})
            return dict.fromkeys(batches, Produced(NetworkExceptionError, detail=f"not sent: {error}"))
        try:
            version = connection.version(API_KEY, *self._versions)
            flexible = version >= FLEXIBLE
            body = encode_produce(batches, version, self._acks, int(timeout * 1000), self._transactional_id)
            answered = self._acks != 0
            answer = connection.post(API_KEY, version, body, timeout, flexible=flexible, answered=answered)
            return _Posted(connection, version, answer)
        except LOST as error:
            return self._lost(batches, NetworkExceptionError, error)
        except IncompatibleBrokerVersion as error:
            return dict.fromkeys(batches, Produced(IncompatibleBrokerVersion, detail=str(error)))

    def _answer(
        self, batches: dict[TopicPartition, bytes], posted: _Posted
    ) -> dict[TopicPartition, Produced]:
        """The outcome of a request."""
        if self._acks == 0:
            return dict.fromkeys(batches, Produced(None))
        connection, version, waiting = posted
        try:
            answer = connection.answer(waiting, self._cluster.request_timeout)
            body = body_of(answer, version >= FLEXIBLE)
            outcomes = connection.decode(lambda: decode_produce(body, version))
        except RequestTimedOutError as error:
            return self._lost(batches, RequestTimedOutError, error)
        except LOST as error:
            return self._lost(batches, NetworkExceptionError, error)
        missing = Produced(NetworkExceptionError, detail="the broker has not answered for this partition")
        return {one: outcomes.get(one, missing) for one in batches}

    def _lost(
        self, batches: dict[TopicPartition, bytes], error: Error, cause: KafkaError
    ) -> dict[TopicPartition, Produced]:
        self._cluster.forget_leaders({topic for topic, _ in batches})
        return dict.fromkeys(batches, Produced(error, detail=f"perhaps written: {cause}"))


def _rounds(
    batches: Mapping[TopicPartition, Sequence[bytes]],
    done: Mapping[TopicPartition, int],
    refused: Collection[TopicPartition],
    moved: Collection[TopicPartition],
) -> Iterator[dict[TopicPartition, bytes]]:
    """The next batch of each partition behind those that are ``done``, and so on; of partitions that are by
    then ``refused`` or ``moved`` no more."""
    left = list(done)
    for place in count():
        left = [
            one
            for one in left
            if done[one] + place < len(batches[one]) and one not in refused and one not in moved
        ]
        if not left:
            return
        yield {one: batches[one][done[one] + place] for one in left}


def _is_of_one_producer(batches: Sequence[bytes]) -> bool:
    """Whether all are of the same idempotent producer, with the same epoch."""
    headers = map(read_header, batches)
    producers = {(header.producer_id, header.producer_epoch) for header in headers}
    return len(producers) == 1 and min(producers)[0] >= 0


def _merged(taken: list[Produced], refused: Produced | None) -> Produced:
    """The outcome of several batches for one partition."""
    offsets = tuple(offset for one in taken for offset in one.base_offsets)
    if refused is not None:
        return refused._replace(base_offsets=offsets)
    if not taken:
        return Produced(None)
    return taken[0]._replace(base_offsets=offsets)
