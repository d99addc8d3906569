"""A client's view of a cluster: its brokers, the leaders of partitions, the coordinators.

All of it is a cache that is asked for again when an answer shows that it is out of date.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from ssl import SSLContext
from typing import Any, NamedTuple

from kafka.errors import (
    BrokerNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    RequestTimedOutError,
    for_code,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from dafka.broker.interface.broker import TopicPartition
from dafka.broker.interface.errors import LoginRefusedError
from dafka.broker.remote.connection import CLIENT_ID, Connection
from dafka.broker.remote.limits import COORDINATORS, METADATA_AGE
from dafka.broker.remote.nodes import SHARED, Node
from dafka.broker.remote.retrying import attempts
from dafka.security.sasl.options import ClientSasl

GROUP, TRANSACTION, SHARE = 0, 1, 2  # kinds of coordinators (FindCoordinator's key type)

LOST = (KafkaConnectionError, KafkaProtocolError, RequestTimedOutError)
"""Errors of a request whose connection has failed: it may have been carried out, or not."""

# The highest versions that are used. Later ones have topic ids in place of names, several groups or
# transactions in one request, or the second protocol of transactions.
_HIGHEST = {
    3: 12,  # Metadata
    8: 9,  # OffsetCommit
    9: 7,  # OffsetFetch
    10: 3,  # FindCoordinator
    15: 5,  # DescribeGroups
    20: 5,  # DeleteTopics
    22: 5,  # InitProducerId
    24: 3,  # AddPartitionsToTxn
    26: 4,  # EndTxn
    28: 4,  # TxnOffsetCommit
}


class _Leaders(NamedTuple):
    nodes: dict[int, int]
    until: float


class Cluster:
    """A cluster that is reached by way of ``addresses``, pairs of host and port. Hub side."""

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        request_timeout: float,
        connect_timeout: float,
        tls: SSLContext | None = None,
        sasl: ClientSasl | None = None,
    ) -> None:
        self.request_timeout = request_timeout
        self._connect_timeout = connect_timeout
        self._tls = tls
        self._sasl = sasl
        self.controller_id = -1
        self._bootstrap = [
            Node(-1 - index, host, port, connect_timeout, tls, sasl)
            for index, (host, port) in enumerate(addresses)
        ]
        self._nodes: dict[int, Node] = {}
        self._leaders: dict[str, _Leaders] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @property
    def reached(self) -> bool:
        """Whether a broker has ever answered with the cluster's metadata."""
        return bool(self._nodes)

    # -- requests -------------------------------------------------------------------------------

    def ask(
        self,
        node: Node,
        request: Any,
        *,
        highest: int | None = None,
        lowest: int = 0,
        wait: float | None = None,
        owner: object = None,
        client_id: str = CLIENT_ID,
    ) -> Any:
        """Send a request of kafka-python's to a broker; its response.

        ``wait``: the request may wait at the broker, for so many seconds beyond the request timeout.
        ``owner``: it goes out on the connection of this object, until :meth:`forget`.
        Raises one of ``LOST`` and IncompatibleBrokerVersion.
        """
        if wait is None:
            return self._ask(node.connection(SHARED), request, lowest, highest, 0.0, client_id)
        with node.waiting(owner) as connection:
            return self._ask(connection, request, lowest, highest, wait, client_id)

    def forget(self, owner: object) -> None:
        """Close the connections of an owner."""
        for node in [*self._nodes.values(), *self._bootstrap]:
            node.forget(owner)

    def _ask(
        self,
        connection: Connection,
        request: Any,
        lowest: int,
        highest: int | None,
        wait: float,
        client_id: str,
    ) -> Any:
        key = request.API_KEY
        if highest is None:
            highest = _HIGHEST.get(key, request.max_version)
        version = connection.version(key, lowest, min(highest, request.max_version))
        return connection.ask(request, version, self.request_timeout + wait, client_id)

    def ask_any(self, request: Any, **options: Any) -> Any:
        """Send a request that any broker can answer. Each of them is tried once.

        Raises KafkaConnectionError, saying what was wrong with each, LoginRefusedError if it was that with
        all of them, and IncompatibleBrokerVersion.
        """
        failures: dict[str, None] = {}
        kinds: set[type] = set()
        for node in self._candidates():
            try:
                return self.ask(node, request, **options)
            except LOST as error:
                failures[_words(error)] = None
                kinds.add(type(error))
        kind = LoginRefusedError if kinds == {LoginRefusedError} else KafkaConnectionError
        raise kind("; ".join(failures) or "no broker is known")

    def _candidates(self) -> list[Node]:
        """The brokers, those that are likely to answer first; the addresses given at the start last."""
        known = sorted(self._nodes.values(), key=lambda node: (not node.reachable, node.failures))
        bootstrap = sorted(self._bootstrap, key=lambda node: (not node.reachable, node.failures))
        if known and known[0].failures == 0:
            return known + bootstrap
        addresses = {(node.host, node.port) for node in known}
        others = [node for node in bootstrap if (node.host, node.port) not in addresses]
        return sorted(known + others, key=lambda node: (not node.reachable, node.failures))

    # -- metadata -------------------------------------------------------------------------------

    def refresh(self, topics: Iterable[str] | None, create: bool = False) -> Any:
        """Ask for the brokers and topics of these names (None: all); kafka-python's response.

        Raises KafkaConnectionError.
        """
        names = None if topics is None else list(topics)
        wanted = None if names is None else [MetadataRequest.MetadataRequestTopic(name=one) for one in names]
        # Before version 4 a topic that was asked for was always created.
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        response = self.ask_any(request, lowest=1 if create else 4)
        self._take_over(response)
        return response

    def _take_over(self, response: Any) -> None:
        self.controller_id = response.controller_id
        for broker in response.brokers:
            known = self._nodes.get(broker.node_id)
            if known is not None and (known.host, known.port) == (broker.host, broker.port):
                continue
            if known is not None:
                known.close()
            node = Node(
                broker.node_id, broker.host, broker.port, self._connect_timeout, self._tls, self._sasl
            )
            self._nodes[broker.node_id] = node
        for gone in self._nodes.keys() - {broker.node_id for broker in response.brokers}:
            if response.brokers:
                self._nodes.pop(gone).close()
        until = time.monotonic() + METADATA_AGE
        for topic in response.topics:
            if topic.error_code:
                self._leaders.pop(topic.name, None)
            else:
                leaders = {one.partition_index: one.leader_id for one in topic.partitions}
                self._leaders[topic.name] = _Leaders(leaders, until)

    @property
    def nodes(self) -> list[Node]:
        """The brokers, as of the last metadata; asked for if there was none yet."""
        if not self._nodes:
            self.refresh(())
        return list(self._nodes.values())

    def node(self, node_id: int) -> Node:
        """The broker of that id. Raises BrokerNotAvailableError."""
        if node_id not in self._nodes:
            self.refresh(())
        if node_id not in self._nodes:
            raise BrokerNotAvailableError(f"no broker has the id {node_id}")
        return self._nodes[node_id]

    def controller(self) -> Node:
        """The broker that administrative requests go to. Raises KafkaConnectionError if none is known."""
        if self.controller_id not in self._nodes:
            self.refresh(())
        node = self._nodes.get(self.controller_id)
        if node is None:
            raise KafkaConnectionError("the cluster has no controller at the moment")
        return node

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[Node, list[TopicPartition]], list[TopicPartition]]:
        """Partitions by the brokers that lead them, and those that have none or do not exist.

        Raises KafkaConnectionError.
        """
        partitions = list(partitions)
        now = time.monotonic()
        outdated = {
            topic
            for topic, number in partitions
            if (known := self._leaders.get(topic)) is None
            or known.until < now
            or known.nodes.get(number, -1) not in self._nodes
        }
        if outdated:
            self.refresh(sorted(outdated))
        led: dict[Node, list[TopicPartition]] = {}
        leaderless = []
        for topic, number in partitions:
            found = self._leaders.get(topic)
            node = self._nodes.get(found.nodes.get(number, -1)) if found is not None else None
            if node is None:
                leaderless.append((topic, number))
            else:
                led.setdefault(node, []).append((topic, number))
        return led, leaderless

    def exists(self, partition: TopicPartition) -> bool:
        """Whether the last metadata had that partition."""
        known = self._leaders.get(partition[0])
        return known is not None and partition[1] in known.nodes

    def forget_leaders(self, topics: Iterable[str]) -> None:
        """Ask again for the leaders of these topics when they are next needed."""
        for topic in topics:
            self._leaders.pop(topic, None)

    # -- coordinators ---------------------------------------------------------------------------

    def coordinator(self, kind: int, key: str) -> Node:
        """The broker that coordinates a group or a transactional id.

        Raises KafkaConnectionError, and the brokers' error, such as CoordinatorNotAvailableError after some
        attempts.
        """
        known = self._nodes.get(self._coordinators.get((kind, key), -1))
        if known is not None:
            return known
        for last in attempts():
            response = self.ask_any(FindCoordinatorRequest(key=key, key_type=kind))
            if not response.error_code:
                break
            error = for_code(response.error_code)
            if not error.retriable or last:
                raise error(response.error_message or "")
        node = self._nodes.get(response.node_id)
        if node is None or (node.host, node.port) != (response.host, response.port):
            self.refresh(())
            node = self.node(response.node_id)
        if len(self._coordinators) >= COORDINATORS:
            self._coordinators.clear()
        self._coordinators[kind, key] = node.node_id
        return node

    def forget_coordinator(self, kind: int, key: str) -> None:
        """Ask again for this coordinator when it is next needed."""
        self._coordinators.pop((kind, key), None)

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        for node in [*self._bootstrap, *self._nodes.values()]:
            node.close()


def _words(error: KafkaError) -> str:
    return str(error.args[0]) if error.args else repr(error)
