"""The connections between the sockets of an endpoint and its peers.

One SUB socket of the endpoint hears what is said to all nodes of this process, another one the answers to
their FETCHes, and each lane (:mod:`dafka.mesh.lane`) hears published records for one of them. The first one
tries to reach each peer, and the others are connected once it has: to peers that there are not, nothing else
is lost than one attempt. One kind is left out: a peer whose beacon has the address of a partition is a C
producer, and its answers to FETCH have wrong contents. So they are not heard as long as any other node does
answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from dafka.mesh import limits
from dafka.mesh.transport import AnyLane, Hearing

log = logging.getLogger(__name__)


class Links:
    """The connections of ``subscriber``, of ``answers`` and of the lanes.

    ``tells_reached``: whether :meth:`reached` is called when the subscriber has reached a peer; otherwise
    each counts as reached at once.
    """

    def __init__(self, subscriber: Hearing, answers: Hearing, tells_reached: bool) -> None:
        self.lanes: dict[object, AnyLane] = {}
        """By the node that hears them."""
        self._subscriber = subscriber
        self._answers = answers
        self.tells_reached = tells_reached
        self._fetching = False  # somebody here fetches: ``answers`` is connected
        self._peers: dict[str, bool] = {}  # and whether their answers are heard
        self._reached: dict[str, None] = {}  # those of them that were
        self._until: dict[str, float] = {}  # C producers whose answers are heard, and for how long

    def hear_answers(self) -> None:
        """From now on somebody here fetches."""
        if not self._fetching:
            self._fetching = True
            for peer in self._reached:
                if self._peers[peer]:
                    self._answers.connect(peer)

    def lane(self, node: object, make: Callable[[list[str]], AnyLane]) -> AnyLane:
        """The lane of a node; it is made on first use."""
        lane = self.lanes.get(node)
        if lane is None:
            lane = self.lanes[node] = make(list(self._reached))
        return lane

    def close_lane(self, node: object) -> None:
        """The node hears nothing any more."""
        lane = self.lanes.pop(node, None)
        if lane is not None:
            lane.close()

    def connect(self, peer: str) -> None:
        """Hear a peer, once it is reached. Raises ZMQError or EndpointError for an invalid address."""
        if peer in self._peers:  # it has another name
            self._hear(peer)
            return
        self._subscriber.connect(peer)
        self._peers[peer] = True
        if not self.tells_reached:
            self.reached(peer)

    def is_reached(self, peer: str) -> bool:
        """Whether the peer was reached at any time since :meth:`connect`."""
        return peer in self._reached

    def reached(self, peer: str) -> None:
        """There is a connection to a peer, maybe not the first one."""
        if peer in self._reached or peer not in self._peers:
            return
        log.info("connected to the peer at %s", peer)
        self._reached[peer] = None
        if self._fetching and self._peers[peer]:
            self._answers.connect(peer)
        for lane in self.lanes.values():
            lane.connect(peer)

    def disconnect(self, peer: str) -> None:
        """Hear a peer no longer."""
        self._subscriber.disconnect(peer)
        heard = self._peers.pop(peer)
        self._until.pop(peer, None)
        if peer not in self._reached:
            return
        del self._reached[peer]
        log.info("left the peer at %s, which is silent", peer)
        if heard and self._fetching:
            self._answers.disconnect(peer)
        for lane in self.lanes.values():
            lane.disconnect(peer)

    def distrust(self, peer: str) -> None:
        """The peer is a C producer."""
        if self._peers.get(peer) and time.monotonic() >= self._until.get(peer, 0.0):
            self._peers[peer] = False
            if self._fetching and peer in self._reached:
                self._answers.disconnect(peer)

    def trust(self, peer: str) -> None:
        """Hear this C producer for some time, because no other node answers."""
        if peer in self._peers:
            self._until[peer] = time.monotonic() + limits.ANSWERS_HEARD_SECONDS
            self._hear(peer)

    def _hear(self, peer: str) -> None:
        if not self._peers[peer]:
            self._peers[peer] = True
            if self._fetching and peer in self._reached:
                self._answers.connect(peer)

    def close(self) -> None:
        """Close the lanes."""
        for node in list(self.lanes):
            self.close_lane(node)
