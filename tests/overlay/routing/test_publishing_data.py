"""Broker's developer guide, "Source Routing" and "Publishing Data"."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay.routing.town import Town, identity

from dafka.overlay.limits import BRANCH_OCTETS
from dafka.overlay.routing import multipath
from dafka.overlay.wire.routed import (
    DATA,
    Routed,
    encode_branch,
    encode_routed,
    leads_through,
    split_branches,
)
from dafka.protocol.errors import MalformedMessage

A, B, C = map(identity, "ABC")


def test_the_guides_scenario():
    """A to B, which forwards to C and D; D forwards to E."""
    town = Town(A="", B="", C="/t", D="", E="/t").link("A B C", "B D E")
    assert town.publish("A", "/t", "hello") == ["C", "E"]
    assert sorted(town.passed) == [("A", "B"), ("B", "C"), ("B", "D"), ("D", "E")]


def test_peers_that_are_no_receivers_only_forward():
    town = Town(A="", B="", C="/t").link("A B C")
    assert town.publish("A", "/t", "hello") == ["C"]


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


HOPS = [identity(f"h{number}") for number in range(8)]


@given(
    st.lists(st.permutations(HOPS).flatmap(lambda order: st.integers(1, 6).map(lambda n: tuple(order[:n]))))
)
def test_joined_paths_reach_every_receiver_once_over_their_own_links(paths):
    tree = multipath.join(paths)
    links = {link for path in paths for link in itertools.pairwise((b"me", *path))}
    seen, receivers, left = [], set(), [(b"me", tree)]
    while left:
        name, node = left.pop()
        for hop, branch in node.branches.items():
            assert (name, hop) in links
            seen.append(hop)
            if branch.deliver:
                receivers.add(hop)
            left.append((hop, branch))
    assert len(seen) == len(set(seen))
    assert receivers == {path[-1] for path in paths}


@given(st.lists(st.permutations(HOPS).map(lambda order: tuple(order[:3])), max_size=5))
def test_each_hop_reads_its_own_branch(paths):
    tree = multipath.join(paths)
    branches = multipath.encode(tree)
    assert {hop: (deliver, rest) for hop, deliver, rest in split_branches(branches)} == {
        hop: (node.deliver, multipath.encode(node)) for hop, node in tree.branches.items()
    }
    hops, left = set(), [tree]
    while left:
        node = left.pop()
        hops |= set(node.branches)
        left += node.branches.values()
    assert {hop for hop in HOPS if leads_through(branches, hop)} == hops


# -- ways that lie ----------------------------------------------------------------------------------


def send(town: Town, receiver: str, sender: str, message: Routed) -> None:
    town.carry(receiver, town[receiver].receive(identity(sender), encode_routed(message)[4:]))


def routed(branches: bytes, publisher: bytes = B) -> Routed:
    return Routed(DATA, False, publisher, branches, b"/t", b"lie")


def test_a_way_that_leads_back_is_refused():
    town = Town(A="/t", B="", C="").link("A B", "A C")
    back = encode_branch(C, False, encode_branch(A, True, b""))
    with pytest.raises(MalformedMessage, match="loop"):
        send(town, "A", "B", routed(back))
    with pytest.raises(MalformedMessage, match="loop"):
        send(town, "A", "B", routed(b"", publisher=A))


def test_a_message_that_is_to_bounce_between_two_peers_is_refused_at_the_first():
    town = Town(A="", B="", C="").link("A B", "A C")
    way = b""
    for _ in range(1000):
        way = encode_branch(C, True, encode_branch(A, True, way))
        if len(way) > BRANCH_OCTETS - 100:
            break
    with pytest.raises(MalformedMessage, match="loop"):
        send(town, "A", "B", routed(way))


@pytest.mark.parametrize(
    "branches", [C[:-1], C + b"\x01", C + b"\x01\x05abc", C + b"\x01\xff\xff\xff\xff\x0f"]
)
def test_branches_that_end_too_early_are_refused(branches):
    town = Town(A="", B="", C="").link("A B", "A C")
    with pytest.raises(MalformedMessage):
        send(town, "A", "B", routed(branches))


def test_a_way_that_is_too_long_is_refused():
    town = Town(A="", B="").link("A B")
    with pytest.raises(MalformedMessage, match="branches"):
        send(town, "A", "B", routed(encode_branch(C, True, b"") * (BRANCH_OCTETS // 18 + 1)))


@given(st.binary(max_size=100))
def test_any_octets_are_a_message_or_malformed(octets):
    town = Town(A="", B="").link("A B")
    with suppress(MalformedMessage):
        town.carry("A", town["A"].receive(B, octets))
    assert town.knows("A").split()[0] == "B"
