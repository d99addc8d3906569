"""Broker's developer guide, "Application-Layer Multicast": its goals.

That connections are secured is shown in node/test_tls.py, that a publisher is slowed down where that is done.
"""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from overlay.wiring import Wiring

PREFIX = b"/t"


def town(*links: str) -> Wiring:
    """Everybody subscribes before anybody is connected."""
    names = sorted({name for link in links for name in link.split()})
    wiring = Wiring(*names)
    for name in names:
        wiring.carry(name, wiring[name].subscribe([PREFIX]))
    return wiring.connect(*links)


TOPOLOGIES = {
    "chain": ["a b", "b c", "c d"],
    "ring": ["a b", "b c", "c d", "d a"],
    "star": ["a b", "a c", "a d"],
    "mesh": [f"{one} {other}" for one, other in combinations("abcd", 2)],
    "loops": ["a b", "b c", "c a", "c d", "d b"],
}


@pytest.mark.parametrize("links", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_users_choose_the_topology_and_loops_double_nothing(links: list[str]) -> None:
    wiring = town(*links)
    for name in "abcd":
        assert wiring.publish(name, PREFIX) == [other for other in "abcd" if other != name]


@pytest.mark.parametrize("links", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_each_peer_publishes_to_each_topic(links: list[str]) -> None:
    wiring = town(*links)
    for one, other in permutations("abcd", 2):
        wiring.carry(other, wiring[other].subscribe([b"/" + other.encode()]))
        assert wiring.publish(one, b"/" + other.encode()) == [other]
        wiring.carry(other, wiring[other].subscribe([PREFIX]))


def test_there_is_no_root_whose_loss_ends_anything() -> None:
    for lost in "abcd":
        wiring = town(*TOPOLOGIES["mesh"])
        left = [name for name in "abcd" if name != lost]
        for other in left:
            wiring.cut(lost, other)
        for name in left:
            assert wiring.publish(name, PREFIX) == [other for other in left if other != name]


def test_a_message_takes_each_link_once_however_many_are_behind_it() -> None:
    wiring = town("a hub", "hub b", "hub c", "hub d", "hub e")
    before = len(wiring.sent)
    assert wiring.publish("a", PREFIX) == ["b", "c", "d", "e", "hub"]
    assert [name for name, _ in wiring.sent[before:]] == ["a", "hub", "hub", "hub", "hub"]


def test_nothing_is_sent_where_nobody_wants_it() -> None:
    wiring = town("a b", "b c", "b d")
    wiring.carry("d", wiring["d"].subscribe([b"/other"]))
    wiring.carry("b", wiring["b"].subscribe([]))
    before = len(wiring.sent)
    assert wiring.publish("a", PREFIX) == ["c"]
    assert [name for name, _ in wiring.sent[before:]] == ["a", "b"]
    before = len(wiring.sent)
    assert wiring.publish("a", b"/nobody") == []
    assert len(wiring.sent) == before
