"""Broker's developer guide, "Peers"."""

from __future__ import annotations

import pytest
from overlay.routing.town import Town, identity

from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.routed import Revocation, Subscription, encode_routed


def test_a_peer_combines_its_filters_to_one_without_redundant_entries():
    town = Town(A="", B="")
    town.carry("A", town["A"].subscribe((b"/zeek/event/foo", b"/zeek/event/bar", b"/zeek/event")))
    assert town["A"].announcement.filter == (b"/zeek/event",)


def test_peers_and_revocations_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.routing.flooding.MOST_PEERS", 3)
    monkeypatch.setattr("dafka.overlay.routing.table.MOST_REVOCATIONS", 3)
    town = Town(A="", B="").link("A B")
    for number in range(20):
        other = identity(f"X{number}")
        word = Subscription((other, identity("B")), (1, 1000), 1, ())
        town.carry("A", town["A"].receive(identity("B"), encode_routed(word)[4:]))
        town.carry(
            "A", town["A"].receive(identity("B"), encode_routed(Revocation(other, 1, identity("Z")))[4:])
        )
    assert len(town["A"].peers) == 3
    assert town["A"].flooding.discarded["too-many-peers"] == 18
    assert len(town["A"].flooding.table._revoked) == 3


def test_the_filters_of_all_peers_together_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.routing.flooding.ALL_FILTER_OCTETS", 100)
    town = Town(A="", B="").link("A B")
    for number in range(20):
        other = identity(f"X{number}")
        word = Subscription((other, identity("B")), (1, 1000), 1, (b"/%030d" % number,))
        town.carry("A", town["A"].receive(identity("B"), encode_routed(word)[4:]))
    filters = [known.filter for known in town["A"].flooding.table.peers.values() if known.filter]
    assert len(filters) == 3 and len(town["A"].peers) == 21
    town.cut("A", "B")
    assert town["A"].flooding._filter_octets == 0


def test_the_leaves_of_all_peers_together_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.routing.flooding.MOST_ALL_LEAVES", 5)
    town = Town(A="", B="").link("A B")
    flooding = town["A"].flooding
    for time in (1, 2):  # whoever has some may list as many anew
        for number in range(4):
            other = identity(f"X{number}")
            leaves = tuple([Leaf(identity(f"L{number}{one}"), (b"/t",), ()) for one in (1, 2)])
            word = Subscription((other, identity("B")), (1, 1000), time, (), leaves)
            town.carry("A", town["A"].receive(identity("B"), encode_routed(word)[4:]))
        assert len(list(flooding.leaves)) == flooding.leaves.listed <= 5
        assert flooding.discarded.pop("too-many-leaves") >= 2
    town.cut("A", "B")
    assert flooding.leaves.listed == 0


@pytest.mark.parametrize("clock", [0, 99])
def test_a_neighbour_that_was_told_an_older_filter_in_the_handshake_hears_of_the_newer_one(clock):
    town = Town(A="/new", B="")
    here, there = town["A"], town["B"]
    town.carry("B", there.link_up(here.me, there.announcement, Announcement((b"/old",), clock, clock)))
    town.carry("A", here.link_up(there.me, Announcement((b"/old",), clock, clock), there.announcement))
    assert there.flooding.table.peers[here.me].filter == (b"/new",)
