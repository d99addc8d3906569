"""Broker's developer guide, "Routing Tables"."""

from __future__ import annotations

from overlay.routing.town import Town


def test_the_table_holds_paths_to_all_known_peers():
    town = Town(A="", B="", C="", D="").link("A B C D", "A D")
    assert town.knows("A") == "B C D"
    assert town.paths("A", "C") == ["B C", "D C"]
    assert town.paths("A", "B") == ["B", "D C B"]


def test_one_path_to_a_peer_is_kept_for_each_neighbour():
    names = "ABCDEFGH"
    town = Town(**dict.fromkeys(names, ""))
    town.link(*[f"{one} {other}" for one in names for other in names if one < other])
    for one in names:
        for other in names:
            if one != other:
                assert len(town.paths(one, other)) == len(names) - 1
                assert town.paths(one, other)[0] == other


def test_peers_without_a_path_are_unreachable_and_forgotten():
    town = Town(A="", B="", C="", D="").link("A B C D")
    town.heard.clear()
    town.cut("B", "C")
    assert (town.knows("A"), town.knows("D")) == ("B", "C")
    assert ("A", "Unreachable", "D") in town.heard and ("D", "Unreachable", "A") in town.heard
    town.link("A D")
    assert town.knows("A") == "B C D"
    assert ("A", "Discovered", "C") in town.heard


def test_peers_further_away_than_the_bound_are_unreachable(monkeypatch):
    monkeypatch.setattr("dafka.overlay.routing.flooding.MOST_HOPS", 4)
    names = [f"N{number}" for number in range(7)]
    town = Town(**dict.fromkeys(names, "")).link(" ".join(names))
    assert town.knows("N0") == "N1 N2 N3 N4"


def test_a_path_takes_one_object_for_all_links_that_it_leads_over():
    """Thousands of long paths would give Python's collector of garbage hundreds of thousands to look at."""
    names = [f"N{number}" for number in range(12)]
    town = Town(**dict.fromkeys(names, "")).link(" ".join(names))
    keys = [one for users in town["N0"].flooding.table._over.values() for one in users]
    assert len(keys) > 60 and len(set(map(id, keys))) == len(set(keys)) == 11
