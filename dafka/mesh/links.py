"""The connections between the sockets of an endpoint and its peers.

One SUB socket of the endpoint hears what is said to all nodes of this process, another one the answers to
their FETCHes, and each lane (:mod:`dafka.mesh.lane`) hears published records for one of them. All are
connected to all peers, but for one kind: a peer whose beacon has the address of a partition is a C producer,
and its answers to FETCH have wrong contents. So they are not heard as long as any other node answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dafka.mesh import limits
from dafka.mesh.transport import AnyLane, Hearing


class Links:
    """The connections of ``subscriber``, of ``answers`` and of the lanes."""

    def __init__(self, subscriber: Hearing, answers: Hearing) -> None:
        self.lanes: dict[object, AnyLane] = {}
        """By the node that hears them."""
        self._subscriber = subscriber
        self._answers = answers
        self._fetching = False  # somebody here fetches: ``answers`` is connected
        self._peers: dict[str, bool] = {}  # and whether their answers are heard
        self._until: dict[str, float] = {}  # C producers whose answers are heard, and for how long

    def hear_answers(self) -> None:
        """From now on somebody here fetches."""
        if not self._fetching:
            self._fetching = True
            for peer, heard in self._peers.items():
                if heard:
                    self._answers.connect(peer)

    def lane(self, node: object, make: Callable[[list[str]], AnyLane]) -> AnyLane:
        """The lane of a node; it is made on first use."""
        lane = self.lanes.get(node)
        if lane is None:
            lane = self.lanes[node] = make(list(self._peers))
        return lane

    def close_lane(self, node: object) -> None:
        """The node hears nothing any more."""
        lane = self.lanes.pop(node, None)
        if lane is not None:
            lane.close()

    def connect(self, peer: str) -> None:
        """Hear a peer. Raises ZMQError or EndpointError for an invalid address."""
        self._subscriber.connect(peer)
        self._peers[peer] = True
        if self._fetching:
            self._answers.connect(peer)
        for lane in self.lanes.values():
            lane.connect(peer)

    def disconnect(self, peer: str) -> None:
        """Hear a peer no longer."""
        self._subscriber.disconnect(peer)
        if self._peers.pop(peer) and self._fetching:
            self._answers.disconnect(peer)
        self._until.pop(peer, None)
        for lane in self.lanes.values():
            lane.disconnect(peer)

    def distrust(self, peer: str) -> None:
        """The peer is a C producer."""
        if self._peers.get(peer) and time.monotonic() >= self._until.get(peer, 0.0):
            self._peers[peer] = False
            if self._fetching:
                self._answers.disconnect(peer)

    def trust(self, peer: str) -> None:
        """Hear this C producer for some time, because no other node answers."""
        if peer in self._peers:
            self._until[peer] = time.monotonic() + limits.ANSWERS_HEARD_SECONDS
            if not self._peers[peer]:
                self._peers[peer] = True
                if self._fetching:
                    self._answers.connect(peer)

    def close(self) -> None:
        """Close the lanes."""
        for node in list(self.lanes):
            self.close_lane(node)
