"""Broker's developer guide, "Timestamps"."""

from __future__ import annotations

from overlay.routing.town import Town, identity

from dafka.overlay.routing.table import Path, RoutingTable
from dafka.overlay.wire.routed import Revocation, encode_routed


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


def test_statements_of_an_earlier_life_of_an_id_are_contradicted():
    town = Town(A="/a", B="", C="").link("A B C")
    # Told by somebody who has it from before A began anew, with a clock that was ahead.
    town.carry("C", [])
    revocation = encode_routed(Revocation(identity("A"), 10**6, identity("B")))[4:]
    town.carry("B", town["B"].receive(identity("C"), revocation))
    assert town["A"].flooding.clock > 10**6
    assert town.knows("C") == "A B" and town.knows("A") == "B C"
    assert town.publish("C", "/a", "still") == ["A"]
