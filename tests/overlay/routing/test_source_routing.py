"""Broker's developer guide, "Source Routing"."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlay.routing.town import Town, identity

from dafka.overlay.limits import BRANCH_OCTETS, MOST_PEERS
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

HOPS = [identity(f"h{number}") for number in range(8)]


def send(town: Town, receiver: str, sender: str, message: Routed) -> None:
    town.carry(receiver, town[receiver].receive(identity(sender), encode_routed(message)[4:]))


def routed(branches: bytes, publisher: bytes = B) -> Routed:
    return Routed(DATA, False, publisher, branches, b"/t", b"lie")


def test_the_guides_scenario():
    """A to B, which forwards to C and D; D forwards to E."""
    town = Town(A="", B="", C="/t", D="", E="/t").link("A B C", "B D E")
    assert town.publish("A", "/t", "hello") == ["C", "E"]
    assert sorted(town.passed) == [("A", "B"), ("B", "C"), ("B", "D"), ("D", "E")]


def test_peers_that_are_not_receivers_only_forward():
    town = Town(A="", B="", C="/t").link("A B C")
    assert town.publish("A", "/t", "hello") == ["C"]


@given(
    st.lists(st.permutations(HOPS).flatmap(lambda order: st.integers(1, 6).map(lambda n: tuple(order[:n]))))
)
def test_joined_paths_reach_every_receiver_once_over_their_own_links(paths):
    trees = multipath.join(paths)
    assert len(trees) == (1 if paths else 0)
    links = {link for path in paths for link in itertools.pairwise((b"me", *path))}
    seen, receivers, left = [], set(), [(b"me", tree) for tree in trees]
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


@given(st.lists(st.permutations(HOPS).map(lambda order: tuple(order[:3])), min_size=1, max_size=5))
def test_each_hop_reads_its_own_branch(paths):
    [tree] = multipath.join(paths)
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


def invented(number):
    return b"%016d" % number


def received(trees):
    """The receivers over each first hop, checked as the first hop checks them."""
    found = []
    for first, node in [branch for tree in trees for branch in tree.branches.items()]:
        found += [first] if node.deliver else []
        branches = multipath.encode(node)
        assert len(branches) <= BRANCH_OCTETS
        left = [branches]
        while left:
            for hop, deliver, behind in split_branches(left.pop()):
                found += [hop] if deliver else []
                left.append(behind)
    return found


def test_more_receivers_than_a_message_has_room_for_get_two_messages():
    peers = [invented(number) for number in range(MOST_PEERS)]
    near = [(b"a" * 16, peer) for peer in peers[:2000]] + [(b"b" * 16, peer) for peer in peers[2000:2100]]
    far = [(b"a" * 16, peers[number % 2000], peers[number]) for number in range(2100, MOST_PEERS)]
    trees = multipath.join([*far, *near, (b"a" * 16,)])
    assert len(trees) == 2
    assert sorted(received(trees)) == sorted([*peers, b"a" * 16])


def test_invented_paths_do_not_make_endless_work():
    paths = [(b"a" * 16, *[invented(100 * one + hop) for hop in range(60)]) for one in range(1000)]
    trees = multipath.join([*paths, (b"b" * 16,), (b"a" * 16, b"c" * 16)])
    found = received(trees)
    assert {b"b" * 16, b"c" * 16} < set(found) and len(found) == len(set(found)) < 200


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
