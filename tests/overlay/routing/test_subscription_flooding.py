"""Broker's developer guide, "Subscription Flooding"."""

from __future__ import annotations

import pytest
from overlay.routing.town import Town, identity

from dafka.overlay.routing.outputs import Tell
from dafka.overlay.routing.peer import Peer
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.routed import Subscription, Withdrawal, decode_routed, encode_routed
from dafka.protocol.errors import MalformedMessage

A, B, C, S = map(identity, "ABCS")


def say(town: Town, receiver: str, sender: str, word: Subscription | Withdrawal) -> None:
    town.carry(receiver, town[receiver].receive(identity(sender), encode_routed(word)[4:]))


def filter_of(town: Town, one: str, other: str) -> tuple[bytes, ...]:
    return town[one].flooding.table.peers[identity(other)].filter


def test_the_handshake_carries_the_subscription():
    town = Town(A="/a", B="/b").link("A B")
    assert filter_of(town, "A", "B") == (b"/b",) and filter_of(town, "B", "A") == (b"/a",)
    assert not town.messages


def test_a_new_filter_reaches_everybody_in_any_topology():
    town = Town(A="", B="", C="", D="", E="").link("A B C D A", "C E", "B D")
    town.carry("E", town["E"].subscribe((b"/new",)))
    assert {filter_of(town, one, "E") for one in "ABCD"} == {(b"/new",)}
    town.carry("E", town["E"].subscribe(()))
    assert {filter_of(town, one, "E") for one in "ABCD"} == {()}


def test_a_path_that_contains_the_receiver_is_refused():
    town = Town(A="", B="").link("A B")
    for path in ((S, A, B), (A, B)):
        with pytest.raises(MalformedMessage, match="path"):
            say(town, "A", "B", Subscription(path, (1,) * len(path), 1, ()))


def test_a_path_that_does_not_come_from_its_sender_is_refused():
    town = Town(A="", B="").link("A B")
    with pytest.raises(MalformedMessage, match="path"):
        say(town, "A", "B", Subscription((S, C), (1, 1), 1, ()))


def test_an_unknown_sender_is_stored_with_its_filter_and_path():
    town = Town(A="", B="").link("A B")
    say(town, "A", "B", Subscription((S, B), (7, 200), 7, (b"/s",)))
    assert filter_of(town, "A", "S") == (b"/s",)
    assert town.paths("A", "S") == ["B S"]


def test_an_older_filter_is_dropped_an_equal_one_may_bring_a_path_a_newer_one_replaces():
    town = Town(A="", B="", C="").link("A B", "A C")
    say(town, "A", "B", Subscription((S, B), (7, 200), 7, (b"/7",)))
    say(town, "A", "B", Subscription((S, B), (7, 200), 6, (b"/6",)))
    assert filter_of(town, "A", "S") == (b"/7",)
    assert town["A"].flooding.discarded["older-filter"] == 1
    say(town, "A", "C", Subscription((S, identity("X"), C), (7, 1, 200), 7, (b"/7",)))
    assert town.paths("A", "S") == ["B S", "C X S"]
    say(town, "A", "C", Subscription((S, identity("X"), C), (8, 1, 200), 8, (b"/8",)))
    assert filter_of(town, "A", "S") == (b"/8",)


def test_the_last_statement_of_a_neighbour_replaces_earlier_ones():
    town = Town(A="", B="").link("A B")
    say(town, "A", "B", Subscription((S, C, B), (1, 1, 200), 1, ()))
    say(town, "A", "B", Subscription((S, B), (1, 200), 1, ()))
    assert town.paths("A", "S") == ["B S"]
    say(town, "A", "B", Withdrawal(S))
    assert town.knows("A") == "B"


def test_nothing_is_said_that_a_neighbour_knows():
    town = Town(A="", B="", C="").link("A B C")
    town.messages.clear()
    say(town, "B", "A", Subscription((A,), (100,), 100, ()))
    assert sum(town.messages.values()) <= 1


def test_a_chain_of_n_takes_n_minus_1_messages_for_a_filter():
    names = [f"N{number}" for number in range(10)]
    town = Town(**dict.fromkeys(names, "")).link(" ".join(names))
    town.messages.clear()
    town.carry("N0", town["N0"].subscribe((b"/x",)))
    assert town.messages == {"Subscription": 9}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [5, 16, 50])
def test_a_full_mesh_of_n_takes_as_many_messages_as_the_guide_says(size):
    names = [f"N{number}" for number in range(size)]
    town = Town(**dict.fromkeys(names, ""))
    town.link(*[f"{one} {other}" for place, one in enumerate(names) for other in names[place + 1 :]])
    town.messages.clear()
    town.carry("N0", town["N0"].subscribe((b"/x",)))
    assert town.messages == {"Subscription": (size - 1) ** 2}


def test_a_revocation_is_flooded_once():
    names = [f"N{number}" for number in range(8)]
    town = Town(**dict.fromkeys(names, ""))
    town.link(*[f"{one} {other}" for place, one in enumerate(names) for other in names[place + 1 :]])
    town.messages.clear()
    town.cut("N0", "N1")
    links = 8 * 7 // 2 - 1
    assert town.messages["Revocation"] <= 2 * 2 * links


def test_a_peer_that_is_gone_is_not_looked_for_on_ever_longer_ways():
    names = [f"N{number}" for number in range(8)]
    town = Town(**dict.fromkeys([*names, "S"], ""))
    town.link(*[f"{one} {other}" for place, one in enumerate(names) for other in names[place + 1 :]], "N0 S")
    town.messages.clear()
    town.cut("N0", "S")
    assert all(town.paths(one, "S") == [] for one in names)
    assert town.messages["Subscription"] == 0


def test_a_new_neighbour_is_told_of_all_others_at_once_and_they_of_it_in_the_same_octets():
    hub, news = Peer(identity("hub"), 100), Announcement((b"/t",), 100, 100, ())
    ids = [identity(f"n{number}") for number in range(40)]
    for one in ids:
        outputs = hub.link_up(one, hub.announcement, news)
    told = {output.neighbour: output.octets for output in outputs if isinstance(output, Tell)}
    assert len(told) == len([one for one in outputs if isinstance(one, Tell)]) == 40
    assert len(set(told.values())) == 2  # the others hear the same of the last one
    reader = FrameReader(len(told[ids[-1]]))
    reader.feed(told[ids[-1]])
    assert {decode_routed(word).path[0] for word in reader.messages()} == set(ids[:-1])
