"""There is no room for what neighbours tell: it is learnt when there is some, without anything changing."""

from __future__ import annotations

import pytest
from overlay.routing.town import Town, identity

from dafka.overlay.limits import MOST_PEERS
from dafka.overlay.routing import flooding, refused
from dafka.overlay.routing.refused import Need, Refused
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.routed import Inquiry, Subscription, Withdrawal, decode_routed, encode_routed

A, B, C = map(identity, "ABC")


def hear(town: Town, receiver: str, sender: str, word) -> None:
    town.carry(receiver, town[receiver].receive(identity(sender), encode_routed(word)[4:]))


def settle(town: Town) -> None:
    """Nobody has anything left to do, and has ticked."""
    for _ in range(20):
        for one, peer in town.peers.items():
            town.carry(one, peer.flooding.ask_again())
            while peer.flooding.is_behind:
                town.carry(one, peer.flooding.go_on())


def asked(town: Town, one: str) -> list[tuple[str, str]]:
    """Whom a peer asks now, and about whom; nobody answers."""
    found = []
    for told in town[one].flooding.ask_again():
        reader = FrameReader(2**20)
        reader.feed(told.octets)
        for message in reader.messages():
            word = decode_routed(message)
            assert isinstance(word, Inquiry)
            found.append((told.neighbour.decode().rstrip("-"), word.peer.decode().rstrip("-")))
    return found


def test_a_peer_that_there_was_no_room_for_is_known_when_another_one_has_gone(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 3)
    town = Town(A="", B="", C="", D="", E="/e").link("A B", "B C", "B D", "B E")
    settle(town)
    assert town.knows("A") == "B C D" and town.publish("A", "/e", "lost") == []
    town.cut("B", "C")
    settle(town)
    assert town.knows("A") == "B D E" and town.publish("A", "/e", "heard") == ["E"]
    assert town.paths("A", "E") == ["B E"]
    town.messages.clear()
    settle(town)
    assert not town.messages


def test_it_is_learnt_from_all_who_have_told_it(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 4)
    town = Town(A="", B="", C="", D="", E="", F="").link("A B", "A C", "B D", "B E", "B F", "C F")
    settle(town)
    assert "F" not in town.knows("A")
    town.cut("B", "E")
    settle(town)
    assert town.knows("A") == "B C D F"
    assert town.paths("A", "F") == ["B F", "C F"]


def test_a_direct_peer_is_known_in_any_case(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 2)
    town = Town(A="", B="", C="", D="", E="/e").link("A B", "B C", "B D", "A E")
    assert town.knows("A") == "B C E" and town.publish("A", "/e", "heard") == ["E"]


def test_no_more_is_asked_for_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 3)
    town = Town(A="", B="").link("A B")
    for name in "CDEFGH":
        hear(town, "A", "B", Subscription((identity(name), B), (1, 1000), 1, ()))
    assert asked(town, "A") == []
    hear(town, "A", "B", Withdrawal(C))
    assert asked(town, "A") == [("B", "E")]
    assert asked(town, "A") == [("B", "F")]  # the room is still there in the next tick
    monkeypatch.setattr(flooding, "ASKED_AT_ONCE", 1)
    hear(town, "A", "B", Withdrawal(identity("D")))
    assert asked(town, "A") == [("B", "G")]


def test_asking_is_no_more_work_where_there_are_many_neighbours(monkeypatch):
    """Each of those that were asked about was looked for among what all had told: 134 ms with a thousand."""
    monkeypatch.setattr(flooding, "MOST_PEERS", 45)
    names = [f"n{number}" for number in range(40)]
    town = Town(A="", **dict.fromkeys(names, "")).link(*(f"A {name}" for name in names))
    for name in names:
        for number in range(5):
            word = Subscription((identity(f"{name}-{number}"), identity(name)), (1, 1000), 1, ())
            hear(town, "A", name, word)
    for number in range(5):
        hear(town, "A", "n0", Withdrawal(identity(f"n0-{number}")))
    forgotten = []
    forget = Refused.forget
    monkeypatch.setattr(Refused, "forget", lambda *one: forgotten.append(one) or forget(*one))
    assert len(set(asked(town, "A"))) == len(forgotten) == 5


def test_neighbours_have_their_turn_one_after_the_other(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 4)
    town = Town(A="", B="", C="").link("A B", "A C")
    for number in range(20):
        hear(town, "A", "B", Subscription((identity(f"invented{number}"), B), (1, 1000), 1, ()))
    hear(town, "A", "C", Subscription((identity("real"), C), (1, 1000), 1, ()))
    hear(town, "A", "B", Withdrawal(identity("invented0")))
    assert ("C", "real") in asked(town, "A") + asked(town, "A")


def test_nobody_is_asked_for_what_was_withdrawn_and_nobody_who_is_gone_is_asked(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_PEERS", 3)
    town = Town(A="", B="", C="").link("A B", "A C")
    for sender, names in ((B, "DEF"), (C, "GH")):
        for name in names:
            hear(town, "A", sender.decode()[0], Subscription((identity(name), sender), (1, 1000), 1, ()))
    hear(town, "A", "B", Withdrawal(identity("E")))
    town.cut("A", "C")
    hear(town, "A", "B", Withdrawal(identity("D")))
    assert asked(town, "A") == [("B", "F")]
    town["A"].leave()
    assert asked(town, "A") == []


def test_a_filter_that_was_too_much_is_learnt_when_another_one_has_gone(monkeypatch):
    monkeypatch.setattr(flooding, "ALL_FILTER_OCTETS", 8)
    town = Town(A="", B="", C="/long", D="/like").link("A B", "B C", "B D")
    settle(town)
    assert town.knows("A") == "B C D" and town.publish("A", "/like", "lost") == []
    town.carry("C", town["C"].subscribe((b"/c",)))
    settle(town)
    assert town.publish("A", "/like", "heard") == ["D"]
    assert town["A"].flooding._filter_octets == 7


def test_a_filter_that_was_too_much_for_one_is_learnt_by_those_behind_it_from_others(monkeypatch):
    town = Town(A="", B="", C="", D="/long").link("A B", "B D", "A C", "C D")
    take = flooding.Flooding._take

    def small(self, neighbour, word):
        monkeypatch.setattr(flooding, "ALL_FILTER_OCTETS", 3 if self.me == B else 100)
        return take(self, neighbour, word)

    monkeypatch.setattr(flooding.Flooding, "_take", small)
    town.carry("D", town["D"].subscribe((b"/other",)))
    assert town["B"].flooding.table.peers[identity("D")].filter == ()
    assert town["A"].flooding.table.peers[identity("D")].filter == (b"/other",)


def test_the_own_filter_of_a_neighbour_that_was_too_much_is_asked_for(monkeypatch):
    monkeypatch.setattr(flooding, "ALL_FILTER_OCTETS", 8)
    town = Town(A="", B="/long", C="/like").link("A B", "A C")
    assert town.publish("A", "/like", "lost") == []
    town.carry("B", town["B"].subscribe(()))
    settle(town)
    assert town.publish("A", "/like", "heard") == ["C"]


def test_leaves_that_were_too_many_are_learnt_when_others_have_gone(monkeypatch):
    monkeypatch.setattr(flooding, "MOST_ALL_LEAVES", 2)
    town = Town(A="", B="", C="", D="").link("A B", "B C", "B D")
    two = tuple([Leaf(identity(f"leaf{number}"), (b"/t",), ()) for number in range(2)])
    town.carry("C", town["C"].flooding.list_leaves(two))
    town.carry("D", town["D"].flooding.list_leaves((Leaf(identity("last"), (b"/t",), ()),)))
    settle(town)
    assert sorted(town["A"].flooding.leaves) == [leaf.id for leaf in two]
    town.carry("C", town["C"].flooding.list_leaves(()))
    settle(town)
    assert list(town["A"].flooding.leaves) == [identity("last")]


def test_inquiries_are_answered_once_and_only_about_what_was_told():
    town = Town(A="", B="", C="/c").link("A B C")
    answer = town["B"].flooding
    for peer in [C, C, C, B, A, identity("nobody")]:
        assert town["B"].receive(A, encode_routed(Inquiry(peer))[4:]) == []
    assert answer.is_behind
    town.messages.clear()
    town.carry("B", answer.go_on())
    assert not answer.is_behind
    assert town.messages == {"Subscription": 2}  # of C, and of itself


def test_inquiries_are_answered_also_when_there_is_no_room_for_what_comes_then(monkeypatch):
    town = Town(A="", B="", C="/c").link("A B C")
    assert town["B"].receive(A, encode_routed(Inquiry(C))[4:]) == []
    monkeypatch.setattr(flooding, "MOST_PEERS", 2)
    town.messages.clear()
    hear(town, "B", "C", Subscription((identity("D"), C), (1, 200), 1, ()))
    assert town["B"].flooding.discarded["too-many-peers"] == 1
    assert town.messages == {"Subscription": 1}  # of C, to A


@pytest.mark.parametrize("kept", [True, False])
def test_words_of_one_neighbour_are_remembered_for_as_many_peers_as_an_honest_one_knows(kept, monkeypatch):
    monkeypatch.setattr(refused, "MOST_PEERS", MOST_PEERS if kept else 3)
    words = Refused()
    for number in range(MOST_PEERS):
        words.add(A, identity(str(number)), Need(number))
    assert len(words) == (MOST_PEERS if kept else 4)
    assert words.forget(A, identity("0")) and not words.forget(A, identity("0"))
    words.forget_all(A)
    words.forget_all(B)
    assert len(words) == 0


def test_words_of_neighbours_that_have_told_least_are_kept_where_there_are_very_many(monkeypatch):
    monkeypatch.setattr(refused, "MOST_REFUSED", 100)
    words = Refused()
    for number in range(200):
        words.add(A, b"%d" % number, Need(1))
    assert len(words) == 100
    for number in range(200):
        words.add(B, b"%d" % number, Need(1))
        words.add(C, b"%d" % number, Need(1))
    assert len(words) == 100 + 33 + 33  # a third each, beyond the hundred
    assert [words.look()[0] for _ in range(3)] == [A, B, C]
