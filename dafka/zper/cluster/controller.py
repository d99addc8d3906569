"""ZPController: the sockets and the time around :class:`dafka.zper.cluster.cluster.Cluster`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gevent
from kafka.errors import KafkaError

from dafka.broker.interface.broker import BrokerInterface
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace
from dafka.protocol.errors import DafkaError
from dafka.sockets.dealer import Dealer
from dafka.sockets.peer import Peer
from dafka.zmtp.encoding import encode
from dafka.zper.cluster import limits
from dafka.zper.cluster.cluster import INVALID_COMMAND, Cluster, InvalidNodeError
from dafka.zper.commands import InvalidCommandError
from dafka.zper.discarded import Discarded
from dafka.zper.envelope import answer, without_delimiters
from dafka.zper.singles import Frames

IDENTITY = b"zpcontroller/"


class Controller:
    """Handles the clients of a :class:`dafka.sockets.router.Router`, and connects to other controllers.

    ``health()`` says how this node is. Hub side.
    """

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        quorum: Sequence[str],
        health: Callable[[], Mapping[str, int]],
        discarded: Discarded,
    ) -> None:
        self._hub = hub
        self._broker = broker
        self._quorum = quorum
        self._health = health
        self._discarded = discarded
        self._dealers: dict[str, Dealer] = {}
        self._cluster: Cluster | None = None
        self._asking: gevent.Greenlet | None = None

    def start(self, binds: Mapping[str, str]) -> None:
        """Begin when it is known where the servers of this node listen."""
        node = self._broker.metadata([]).cluster_id
        self._cluster = cluster = Cluster(node, time.time_ns() // 1_000_000, binds, self._quorum)
        for address in self._quorum:
            self._dealers[address] = Dealer(
                self._hub,
                address,
                handler=_Link(cluster, address, self._discarded),
                identity=IDENTITY + node.encode(),
                max_message=2 * limits.ANSWER,
            )
        self._asking = self._hub.keep(self._ask)

    def close(self) -> None:
        """Disconnect from the other controllers."""
        if self._asking is not None:
            self._asking.kill()
        for dealer in self._dealers.values():
            dealer.close()

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes that are known, this one first."""
        return [] if self._cluster is None else list(self._cluster.nodes(time.monotonic()))

    # -- what the Router calls ------------------------------------------------------------------

    def joined(self, peer: Peer) -> None:
        """A client, or another controller, has connected."""

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """Requests; each is answered before the next is read."""
        pace = Pace()
        for delimited, requests in without_delimiters(messages):
            for request in requests:
                peer.send(answer(delimited, self._response(peer, request)))
                pace.rest()

    def left(self, peer: Peer) -> None:
        """It has disconnected."""

    def _response(self, peer: Peer, request: Frames) -> Frames:
        assert self._cluster is not None
        try:
            return self._cluster.asked(request, peer.address[0], time.monotonic())
        except (InvalidCommandError, InvalidNodeError) as error:
            self._discarded.report("command", f"a request to the ZPController from {peer}: {error}")
            return INVALID_COMMAND

    # -- other controllers ----------------------------------------------------------------------

    def _ask(self) -> None:
        assert self._cluster is not None
        while True:
            self._cluster.update(self._topics(), self._health())
            for address, question in self._cluster.questions(time.monotonic()).items():
                peer = self._dealers[address].peer
                if peer is not None:
                    buffers = encode(question)
                    peer.offer_encoded(
                        buffers, 1, sum(map(len, buffers))
                    )  # no room: it does not answer either
            gevent.sleep(limits.INTERVAL)

    def _topics(self) -> dict[str, tuple[int, int]]:
        """First position and end of each partition that has positions, by the name that clients give it."""
        topics = {}
        try:
            partitions = self._broker.positions.partitions()
        except (DafkaError, KafkaError):
            return {}
        for name, number in Pace().over(partitions[: limits.TOPICS]):
            try:
                positions = self._broker.positions.open(name, number)
                topics[f"{name}:{number}" if number else name] = (positions.first, positions.end)
            except (DafkaError, KafkaError):
                continue  # deleted meanwhile, or unreadable: readers of it are told why
        return topics


class _Link:
    """Handles the answers of another controller."""

    def __init__(self, cluster: Cluster, address: str, discarded: Discarded) -> None:
        self._cluster = cluster
        self._address = address
        self._discarded = discarded

    def joined(self, peer: Peer) -> None:
        """It is connected."""
        self._cluster.connected(self._address)

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """Answers to questions."""
        for message in messages:
            try:
                self._cluster.answered(self._address, message, time.monotonic())
            except InvalidNodeError as error:
                self._discarded.report("node", f"the ZPController at {self._address}: {error}")

    def left(self, peer: Peer) -> None:
        """The connection has ended."""
        self._cluster.disconnected(self._address)
