"""Broker's developer guide, "Publishing Data"."""

from __future__ import annotations

from overlay.routing.town import Town, identity

A, B, C = map(identity, "ABC")


def test_a_message_goes_over_each_hop_once_whatever_loops_there_are():
    names = "ABCDEFGH"
    town = Town(**dict.fromkeys(names, "/t")).link("A B C D E F G H A", "A D G B E H C F A")
    for one in names:
        town.passed.clear()
        assert town.publish(one, "/t", one) == sorted(set(names) - {one})
        assert len(town.passed) == len(names) - 1


def test_receivers_are_those_whose_filter_lets_the_topic_pass_when_it_is_published():
    town = Town(A="", B="/b", C="/b/c /x", D="").link("A B C D")
    assert town.publish("A", "/b/c/d", "1") == ["B", "C"]
    assert town.publish("A", "/x", "2") == ["C"]
    assert town.publish("A", "/y", "3") == []
    town.carry("D", town["D"].subscribe((b"",)))
    assert town.publish("A", "/y", "4") == ["D"]
    town.carry("D", town["D"].subscribe(()))
    assert town.publish("A", "/y", "5") == []


def test_nobody_gets_what_it_publishes():
    town = Town(A="/t", B="/t").link("A B")
    assert town.publish("A", "/t", "1") == ["B"]


def test_unicast_reaches_one_peer_over_any_number_of_hops():
    town = Town(A="", B="/t", C="", D="").link("A B C D")
    town.carry("A", town["A"].publish_to(identity("D"), b"/t", b"for D"))
    assert town.got == [("D", "for D")]
    assert town["A"].publish_to(identity("Z"), b"/t", b"for nobody") == []


def test_a_branch_whose_next_hop_is_gone_is_lost_and_counted():
    town = Town(A="", B="", C="/t").link("A B C")
    route = town["A"].publish(b"/t", b"late")
    town.cut("B", "C")
    town.carry("A", route)
    assert town.got == [] and town["B"].lost == 1
