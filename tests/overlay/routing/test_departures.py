"""Very many peers lose their paths at once: what follows comes in pieces, and nothing is wrong meanwhile."""

from __future__ import annotations

import pytest
from overlay.routing.town import Town, identity

from dafka.overlay.routing import flooding
from dafka.overlay.routing.outputs import Relay, Tell
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.routed import Revocation, Subscription, Withdrawal, decode_routed, encode_routed

A, B, C, S = map(identity, "ABCS")
MANY = [identity(f"p{number}") for number in range(12)]


@pytest.fixture
def town(monkeypatch) -> Town:
    """S is behind A, and behind S are twelve peers that S has invented. B is A's other neighbour."""
    town = Town(A="", B="", C="", S="").link("B A S")
    for peer in MANY:
        hear(town, "A", "S", Subscription((peer, S), (5, 50), 7, (b"/t",), ()))
    monkeypatch.setattr(flooding, "SETTLED_AT_ONCE", 6)  # two peers, where there are two neighbours
    monkeypatch.setattr(flooding, "TIDIED_AT_ONCE", 4)
    town.heard.clear()
    return town


def hear(town: Town, receiver: str, sender: str, word) -> None:
    town.carry(receiver, town[receiver].receive(identity(sender), encode_routed(word)[4:]))


def words(outputs, neighbour: bytes) -> list:
    reader = FrameReader(2**20)
    for output in outputs:
        if isinstance(output, Tell) and output.neighbour == neighbour:
            reader.feed(output.octets)
    return [decode_routed(message) for message in reader.messages()]


def relays(town: Town) -> list:
    return [one for one in town["A"].publish(b"/t", b"payload") if isinstance(one, Relay)]


def known(town: Town, one: str) -> set[bytes]:
    return set(town[one].flooding.table.peers)


def go_on(town: Town) -> list:
    """What A tells B by the way, until nobody has anything left."""
    told = []
    while behind := [one for one, peer in town.peers.items() if peer.flooding.is_behind]:
        for one in behind:
            outputs = town[one].flooding.go_on()
            told += words(outputs, B) if one == "A" else []
            town.carry(one, outputs)
    return told


def test_those_without_a_path_are_unreachable_at_once_and_told_of_in_pieces(town):
    assert relays(town)
    town.carry("A", town["A"].link_down(S))
    assert town["A"].flooding.is_behind and 0 < len(town.heard) < len(MANY)
    assert town.knows("A") == "B" and relays(town) == []
    assert not any(town["A"].is_reachable(peer) for peer in MANY)
    assert town["A"].publish_to(MANY[-1], b"/t", b"payload") == []
    go_on(town)
    assert known(town, "A") == {B} and known(town, "B") == {A}
    assert sorted(one for one in town.heard if one[0] == "A") == sorted(
        ("A", "Unreachable", peer.decode().rstrip("-")) for peer in [S, *MANY]
    )
    assert not town["A"].flooding.table._over.keys() - {(A, B)} and not town["A"].flooding.table._gone


def test_the_neighbour_itself_is_the_first_that_is_told_of(town):
    town.carry("A", town["A"].link_down(S))
    assert town.heard[0] == ("A", "Unreachable", "S")


def test_a_peer_that_gets_a_new_path_meanwhile_is_discovered_anew(town):
    town.carry("A", town["A"].link_down(S))
    town.heard.clear()
    last = MANY[-1]
    hear(town, "A", "B", Subscription((last, C, B), (9, 90, 900), 3, (b"/other",), ()))  # with an older time
    name = last.decode().rstrip("-")
    assert [one[:3] for one in town.heard if one[0] == "A"] == [
        ("A", "Unreachable", name),
        ("A", "Discovered", name),
    ]
    go_on(town)
    assert town["A"].flooding.table.peers[last].filter == (b"/other",)
    assert known(town, "A") == {B, last}


def test_a_link_that_comes_back_meanwhile_keeps_what_is_told_over_it(town):
    town.carry("A", town["A"].link_down(S))
    town.carry("S", town["S"].link_down(A))
    town.link("A S")
    hear(town, "A", "S", Subscription((MANY[-1], S), (6, 10**9), 8, (b"/t",), ()))
    go_on(town)
    assert known(town, "A") == {B, S, MANY[-1]} and known(town, "B") == {A, S, MANY[-1]}
    assert [one.neighbour for one in relays(town)] == [S]
    hear(town, "A", "S", Revocation(S, 2 * 10**9, MANY[-1]))  # the path is still found by its links
    assert known(town, "A") == {B, S}


def test_a_revocation_of_a_link_that_many_paths_led_over_is_carried_out_in_pieces(town):
    far = [identity(f"far{number}") for number in range(12)]
    for peer in far:
        hear(town, "A", "S", Subscription((peer, C, S), (5, 6, 50), 7, (b"/t",), ()))
    go_on(town)
    hear(town, "A", "S", Revocation(C, 10, S))
    assert town["A"].flooding.is_behind and not any(town["A"].is_reachable(peer) for peer in far)
    go_on(town)
    assert known(town, "A") == {B, S, *MANY}


def test_contradicted_statements_are_repeated_in_pieces(town):
    clock = town["A"].flooding.clock
    outputs = town["A"].receive(S, encode_routed(Revocation(A, clock + 5, B))[4:])
    told = words(outputs, B)
    assert 0 < len(told) < len(MANY) and told[0].path == (A,)
    told += go_on(town)
    assert {one.path[0] for one in told} == {A, S, *MANY}
    assert all(one.times[-1] > clock + 5 for one in told)


def test_a_peer_that_is_lost_before_it_is_told_again_is_withdrawn(town):
    town.carry("A", town["A"].receive(S, encode_routed(Revocation(A, 10**6, B))[4:]))
    outputs = town["A"].receive(S, encode_routed(Withdrawal(MANY[-1]))[4:])
    assert words(outputs, B) == [Withdrawal(MANY[-1])]
    town.carry("A", outputs)
    go_on(town)
    assert known(town, "A") == {B, S, *MANY[:-1]}


def test_those_that_are_to_be_forgotten_make_room_for_others(town, monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", len(MANY) + 2)
    town.carry("A", town["A"].link_down(S))
    fresh = [identity(f"fresh{number}") for number in range(4)]
    for peer in fresh:
        hear(town, "A", "B", Subscription((peer, B), (5, 50), 7, (), ()))
    assert set(fresh) <= known(town, "A")
    assert not town["A"].flooding.discarded["too-many-peers"]


def test_peers_with_much_to_forget_are_fewer_in_a_piece(town):
    prefixes = tuple(b"/%d" % number for number in range(100))
    for peer in MANY:
        hear(town, "A", "S", Subscription((peer, S), (6, 50), 8, prefixes, ()))
    go_on(town)
    town.carry("A", town["A"].link_down(S))
    before = len(known(town, "A"))
    town.carry("A", town["A"].flooding.go_on())
    assert len(known(town, "A")) == before - 1


def test_a_leaf_behind_a_lost_peer_is_reached_over_the_other_that_lists_it(town):
    leaf = Leaf(identity("leaf"), (b"/leaf",))
    last = identity("0")  # its id is the smaller one, so it speaks for the leaf
    hear(town, "A", "B", Subscription((B,), (10**6,), 10**6, (), (leaf,)))
    hear(town, "A", "S", Subscription((last, S), (5, 50), 7, (), (leaf,)))
    town.carry("A", town["A"].link_down(S))
    assert last in known(town, "A")  # as nobody got so far
    town["A"].publish(b"/leaf", b"payload")
    go_on(town)
    assert town["A"].fan_out(b"/leaf") == 1
    assert [one.neighbour for one in town["A"].publish(b"/leaf", b"payload")] == [B]


def test_lost_peers_take_no_room_for_leaves_and_filters(town, monkeypatch):
    leaves = [Leaf(identity(f"leaf{number}"), (b"/leaf",)) for number in range(len(MANY))]
    for peer, leaf in zip(MANY, leaves, strict=True):
        hear(town, "A", "S", Subscription((peer, S), (6, 50), 8, (b"/t",), (leaf,)))
    go_on(town)
    a = town["A"].flooding
    octets = a._filter_octets
    monkeypatch.setattr(flooding, "MOST_ALL_LEAVES", len(MANY))
    monkeypatch.setattr(flooding, "ALL_FILTER_OCTETS", octets)
    town.carry("A", town["A"].link_down(S))
    for number, leaf in enumerate(leaves):
        hear(town, "A", "B", Subscription((identity(f"f{number}"), B), (5, 50), 7, (b"/f",), (leaf,)))
    go_on(town)
    assert sorted(a.leaves) == sorted(leaf.id for leaf in leaves)
    assert not a.discarded
    assert a._filter_octets == octets
    hear(town, "A", "B", Subscription((C, B), (5, 50), 7, (b"/f",), (Leaf(identity("more"), ()),)))
    assert set(a.discarded) == {"too-much-filter"}
    town.carry("A", town["A"].link_down(B))
    go_on(town)
    assert a._filter_octets == a.leaves.listed == len(a.demand) == 0
