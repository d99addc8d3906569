"""Links: which sockets of an endpoint are connected to which peers, and whose answers are heard."""

from __future__ import annotations

from typing import Any

import pytest

from dafka.mesh import limits, links
from dafka.mesh.links import Links

PEER, OTHER = "tcp://127.0.0.1:1001", "tcp://127.0.0.1:1002"


class Connections:
    """A socket or a lane: its connections, each as often as it was made."""

    def __init__(self, peers: Any = ()) -> None:
        self.peers: list[str] = list(peers)
        self.closed = False

    def connect(self, peer: str) -> None:
        self.peers.append(peer)

    def disconnect(self, peer: str) -> None:
        self.peers.remove(peer)

    def close(self) -> None:
        self.closed = True


class Sockets:
    """The links of an endpoint, and their two sockets."""

    def __init__(self, tells_reached: bool = False) -> None:
        self.subscriber, self.answers = Connections(), Connections()
        self.links = Links(self.subscriber, self.answers, tells_reached)  # type: ignore[arg-type]

    def lane(self, node: object) -> Any:
        return self.links.lane(node, Connections)  # type: ignore[arg-type]


@pytest.fixture
def sockets() -> Sockets:
    return Sockets()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(links.time, "monotonic", lambda: now[0])
    return now


def test_answers_are_heard_from_the_first_time_that_somebody_fetches(sockets):
    sockets.links.connect(PEER)
    assert (sockets.subscriber.peers, sockets.answers.peers) == ([PEER], [])
    sockets.links.hear_answers()
    sockets.links.hear_answers()
    sockets.links.connect(OTHER)
    assert sockets.answers.peers == [PEER, OTHER]
    sockets.links.disconnect(PEER)
    assert sockets.subscriber.peers == sockets.answers.peers == [OTHER]


def test_a_node_has_one_lane_which_is_connected_to_all_peers(sockets):
    sockets.links.connect(PEER)
    lane = sockets.lane("node")
    assert sockets.lane("node") is lane
    sockets.links.connect(OTHER)
    assert lane.peers == [PEER, OTHER]
    sockets.links.disconnect(PEER)
    assert lane.peers == [OTHER]


def test_everything_else_is_connected_to_a_peer_once_it_is_reached(clock):
    sockets = Sockets(tells_reached=True)
    lane = sockets.lane("node")
    sockets.links.hear_answers()
    sockets.links.connect(PEER)
    sockets.links.connect(OTHER)
    assert sockets.subscriber.peers == [PEER, OTHER]
    assert sockets.lane("late").peers == sockets.answers.peers == lane.peers == []
    sockets.links.reached(OTHER)
    sockets.links.reached(OTHER)
    assert (sockets.links.is_reached(PEER), sockets.links.is_reached(OTHER)) == (False, True)
    assert sockets.lane("later").peers == sockets.lane("late").peers == [OTHER]
    assert sockets.answers.peers == lane.peers == [OTHER]
    for peer in (PEER, OTHER):
        sockets.links.disconnect(peer)
    assert sockets.subscriber.peers == sockets.answers.peers == lane.peers == []
    sockets.links.reached(PEER)  # too late
    assert lane.peers == []


def test_a_peer_may_be_distrusted_before_it_is_reached(clock):
    sockets = Sockets(tells_reached=True)
    for peer in (PEER, OTHER):
        sockets.links.connect(peer)
        sockets.links.distrust(peer)
    sockets.links.hear_answers()
    sockets.links.trust(OTHER)
    for peer in (PEER, OTHER):
        sockets.links.reached(peer)
    assert sockets.answers.peers == [OTHER]


def test_the_lane_of_a_node_that_leaves_is_closed(sockets):
    lane, other = sockets.lane("node"), sockets.lane("other")
    sockets.links.close_lane("node")
    sockets.links.close_lane("node")
    assert (lane.closed, other.closed) == (True, False)
    sockets.links.close()
    assert other.closed
    assert sockets.links.lanes == {}


def test_a_c_producers_answers_are_not_heard(sockets, clock):
    sockets.links.hear_answers()
    sockets.links.connect(PEER)
    sockets.links.distrust(PEER)
    sockets.links.distrust(PEER)
    assert (sockets.subscriber.peers, sockets.answers.peers) == ([PEER], [])
    sockets.links.disconnect(PEER)
    assert sockets.subscriber.peers == []


def test_when_nobody_else_answers_they_are_heard_for_some_time(sockets, clock):
    sockets.links.hear_answers()
    sockets.links.connect(PEER)
    sockets.links.distrust(PEER)
    sockets.links.trust(PEER)
    sockets.links.trust(PEER)
    assert sockets.answers.peers == [PEER]
    clock[0] += limits.ANSWERS_HEARD_SECONDS - 1
    sockets.links.distrust(PEER)
    assert sockets.answers.peers == [PEER]
    clock[0] += 1
    sockets.links.distrust(PEER)
    assert sockets.answers.peers == []


def test_distrust_of_a_producer_counts_also_before_somebody_fetches(sockets, clock):
    sockets.links.connect(PEER)
    sockets.links.connect(OTHER)
    sockets.links.distrust(PEER)
    assert sockets.answers.peers == []
    sockets.links.hear_answers()
    assert sockets.answers.peers == [OTHER]


@pytest.mark.parametrize("tells_reached", [False, True])
def test_the_answers_of_a_peer_with_another_name_are_heard_again(clock, tells_reached):
    sockets = Sockets(tells_reached)
    sockets.links.hear_answers()
    sockets.links.connect(PEER)
    sockets.links.reached(PEER)
    sockets.links.distrust(PEER)
    sockets.links.connect(PEER)
    assert sockets.subscriber.peers == sockets.answers.peers == [PEER]
    sockets.links.distrust(PEER)
    assert sockets.answers.peers == []


def test_strangers_are_neither_trusted_nor_distrusted(sockets, clock):
    sockets.links.hear_answers()
    sockets.links.trust(PEER)
    sockets.links.distrust(PEER)
    assert sockets.answers.peers == []
