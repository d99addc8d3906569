"""Produce: each batch to the broker that leads its partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gevent
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
from dafka.broker.interface.transactions import Writes
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.leaders import no_leader, while_leaders_move
from dafka.broker.remote.nodes import PRODUCE, Node

_VERSIONS = {
    Writes.ANNOUNCED: (LOWEST, ABORTABLE - 1),
    Writes.ABORTABLE: (ABORTABLE, ABORTABLE),
    Writes.ADDING: (ADDING, HIGHEST),
}


class Producing:
    """One produce: ``run`` sends it and answers for each partition.

    Kafka accepts one batch for each partition in a request. Several batches are sent one after the other, in
    their order, up to the first that is refused; ``Produced.base_offsets`` has those that were appended.
    """

    def __init__(
        self,
        cluster: Cluster,
        acks: int,
        transactional_id: str | None,
        writes: Writes = Writes.ANNOUNCED,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._transactional_id = transactional_id
        self._versions = _VERSIONS[writes]

    def run(self, batches: Mapping[TopicPartition, Sequence[bytes]]) -> dict[TopicPartition, Produced]:
        """Send and wait for the outcome."""
        taken: dict[TopicPartition, list[Produced]] = {partition: [] for partition in batches}
        refused: dict[TopicPartition, Produced] = {}
        left = [partition for partition, some in batches.items() if some]
        while left:
            outcomes = self._send({one: batches[one][len(taken[one])] for one in left})
            for one, outcome in outcomes.items():
                if outcome.error is None:
                    taken[one].append(outcome)
                else:  # the order would be lost if the next ones were taken
                    refused[one] = outcome
            left = [one for one in left if one not in refused and len(taken[one]) < len(batches[one])]
        return {one: _merged(some, refused.get(one)) for one, some in taken.items()}

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
            answer = connection.request(
                API_KEY, version, body, timeout, flexible=flexible, answered=self._acks != 0
            )
            if self._acks == 0:
                return dict.fromkeys(batches, Produced(None))
            outcomes = connection.decode(lambda: decode_produce(body_of(answer, flexible), version))
        except RequestTimedOutError as error:
            return self._lost(batches, RequestTimedOutError, error)
        except LOST as error:
            return self._lost(batches, NetworkExceptionError, error)
        except IncompatibleBrokerVersion as error:
            return dict.fromkeys(batches, Produced(IncompatibleBrokerVersion, detail=str(error)))
        missing = Produced(NetworkExceptionError, detail="the broker has not answered for this partition")
        return {one: outcomes.get(one, missing) for one in batches}

    def _lost(
        self, batches: dict[TopicPartition, bytes], error: Error, cause: KafkaError
    ) -> dict[TopicPartition, Produced]:
        self._cluster.forget_leaders({topic for topic, _ in batches})
        return dict.fromkeys(batches, Produced(error, detail=f"perhaps written: {cause}"))


def _merged(taken: list[Produced], refused: Produced | None) -> Produced:
    """The outcome of several batches for one partition."""
    offsets = tuple(offset for one in taken for offset in one.base_offsets)
    if refused is not None:
        return refused._replace(base_offsets=offsets)
    if not taken:
        return Produced(None)
    return taken[0]._replace(base_offsets=offsets)
