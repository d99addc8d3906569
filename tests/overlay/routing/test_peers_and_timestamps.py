"""Broker's developer guide, "Peers", "Timestamps" and "Routing Tables"."""

from __future__ import annotations

import pytest
from overlay.routing.town import Town, identity

from dafka.overlay.routing.table import Path, RoutingTable
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.routed import Revocation, Subscription, encode_routed


def test_a_peer_combines_its_filters_to_one_without_redundant_entries():
    town = Town(A="", B="")
    town.carry("A", town["A"].subscribe((b"/zeek/event/foo", b"/zeek/event/bar", b"/zeek/event")))
    assert town["A"].announcement.filter == (b"/zeek/event",)


def test_the_clock_rises_when_the_filter_or_the_links_change_and_only_then():
    town = Town(A="/a", B="")
    clocks = [town["A"].flooding.clock]
    for change in (
        lambda: town.link("A B"),
        lambda: town.carry("A", town["A"].subscribe((b"/b",))),
        lambda: town.cut("A", "B"),
    ):
        change()
        clocks.append(town["A"].flooding.clock)
    assert clocks == sorted(set(clocks))
    town.carry("A", town["A"].subscribe((b"/b",)))
    assert town["A"].flooding.clock == clocks[-1]


def test_the_table_holds_paths_to_all_known_peers():
    town = Town(A="", B="", C="", D="").link("A B C D", "A D")
    assert town.knows("A") == "B C D"
    assert town.paths("A", "C") == ["B C", "D C"]
    assert town.paths("A", "B") == ["B", "D C B"]


def test_of_each_neighbour_one_path_to_a_peer_is_kept():
    names = "ABCDEFGH"
    town = Town(**dict.fromkeys(names, ""))
    town.link(*[f"{one} {other}" for one in names for other in names if one < other])
    for one in names:
        for other in names:
            if one != other:
                assert len(town.paths(one, other)) == len(names) - 1
                assert town.paths(one, other)[0] == other


def test_a_path_carries_a_time_of_each_of_its_hops():
    town = Town(A="", B="", C="").link("A B C")
    path = town["A"].flooding.table.peers[identity("C")].best()
    assert path is not None
    assert len(path.times) == len(path.hops) == 2
    assert path.times[0] <= town["B"].flooding.clock


def test_a_revocation_takes_along_the_paths_that_are_older_and_no_others():
    table = RoutingTable(identity("A"))
    town = Town(A="", B="")
    table.peers = {identity("C"): town.link("A B")["A"].flooding.table.peers[identity("B")]}
    table.peers[identity("C")].paths.clear()
    table.put(identity("C"), Path((identity("B"), identity("C")), (5, 1)))
    assert table.revoke(identity("B"), 5, identity("C")) == []
    assert table.revoke(identity("C"), 1, identity("D")) == []
    assert table.revoke(identity("B"), 6, identity("C")) == [identity("C")]
    assert table.revoke(identity("B"), 6, identity("C")) is None
    assert table.is_revoked(Path((identity("B"), identity("C")), (5, 9)))
    assert not table.is_revoked(Path((identity("B"), identity("C")), (6, 1)))


def test_peers_without_a_path_are_unreachable_and_forgotten():
    town = Town(A="", B="", C="", D="").link("A B C D")
    town.heard.clear()
    town.cut("B", "C")
    assert (town.knows("A"), town.knows("D")) == ("B", "C")
    assert ("A", "Unreachable", "D") in town.heard and ("D", "Unreachable", "A") in town.heard
    town.link("A D")
    assert town.knows("A") == "B C D"
    assert ("A", "Discovered", "C") in town.heard


def test_what_an_earlier_life_of_an_id_said_is_contradicted():
    town = Town(A="/a", B="", C="").link("A B C")
    # Told by somebody who has it from before A began anew, with a clock that was ahead.
    town.carry("C", [])
    revocation = encode_routed(Revocation(identity("A"), 10**6, identity("B")))[4:]
    town.carry("B", town["B"].receive(identity("C"), revocation))
    assert town["A"].flooding.clock > 10**6
    assert town.knows("C") == "A B" and town.knows("A") == "B C"
    assert town.publish("C", "/a", "still") == ["A"]


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


def test_peers_further_away_than_the_bound_are_unreachable(monkeypatch):
    monkeypatch.setattr("dafka.overlay.routing.flooding.MOST_HOPS", 4)
    names = [f"N{number}" for number in range(7)]
    town = Town(**dict.fromkeys(names, "")).link(" ".join(names))
    assert town.knows("N0") == "N1 N2 N3 N4"


@pytest.mark.parametrize("clock", [0, 99])
def test_a_neighbour_that_was_told_an_older_filter_in_the_handshake_hears_of_the_newer_one(clock):
    town = Town(A="/new", B="")
    here, there = town["A"], town["B"]
    town.carry("B", there.link_up(here.me, there.announcement, Announcement((b"/old",), clock, clock)))
    town.carry("A", here.link_up(there.me, Announcement((b"/old",), clock, clock), there.announcement))
    assert there.flooding.table.peers[here.me].filter == (b"/new",)
