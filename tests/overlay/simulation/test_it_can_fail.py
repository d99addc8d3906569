"""The simulation sees an overlay that breaks its promises: with a fault built in, some seed finds it."""

from __future__ import annotations

import pytest
from overlay.simulation.scenario import simulate

from dafka.overlay.core import Core
from dafka.overlay.gateway.gateway import Gateway
from dafka.overlay.peering.gate import Decision, Gate
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.routing import multipath
from dafka.overlay.routing.flooding import Flooding
from dafka.overlay.routing.leaves import Leaves
from dafka.overlay.routing.outputs import Deliver, Relay
from dafka.overlay.routing.peer import Peer
from dafka.overlay.routing.table import KnownPeer, RoutingTable, Said, Word
from dafka.overlay.wire.routed import Revocation, Routed, Withdrawal, encode_routed

SEEDS = range(80)


def believes_what_a_neighbour_said_before_its_link_went(patch):
    patch.setattr(RoutingTable, "revoke", lambda self, revoker, time, hop: [])


def keeps_paths_over_a_neighbour_that_is_gone(patch):
    def kept(self, neighbour):
        if self._told.pop(neighbour, None) is None:
            return []
        self.clock += 1
        return self._revoke(Revocation(self.me, self.clock, neighbour), None)

    patch.setattr(Flooding, "link_down", kept)


def tells_a_neighbour_paths_through_itself(patch):
    patch.setattr(KnownPeer, "best", lambda self, avoiding=None: self.ranked[0] if self.ranked else None)


def never_takes_another_filter(patch):
    take = Flooding._take

    def stubborn(self, neighbour, word):
        known = self.table.peers.get(word.path[0])
        return take(self, neighbour, word if known is None else word._replace(time=known.time))

    patch.setattr(Flooding, "_take", stubborn)


def sends_each_path_for_itself(patch):
    def join(paths, receivers=True):
        root = multipath.Node()
        for hops in paths:
            node = root
            for hop in hops:
                node = node.branches.setdefault(hop, multipath.Node())
            node.deliver = receivers
        return [root]

    patch.setattr("dafka.overlay.routing.peer.multipath.join", join)


def repeats_what_it_told_before_a_link_ended(patch):
    def word(self, path, known):
        if known.word is None or not known.word.said.is_of(path, known.time):
            known.word = Word(Said(path, known.time, self.clock), self._encode(path, known))
        return known.word

    patch.setattr(Flooding, "_word", word)


def withdraws_nothing(patch):
    tell = Flooding._tell_some
    withdrawal = encode_routed(Withdrawal(bytes(16)))[:5]

    def quiet(self, peer, neighbours):
        return [one for one in tell(self, peer, neighbours) if not one.octets.startswith(withdrawal)]

    patch.setattr(Flooding, "_tell_some", quiet)


def announces_itself_before_it_has_noticed_that_a_link_went(patch):
    patch.setattr(Core, "_announce", lambda self, version: self.peer.announcement._replace(clock=0))


def keeps_routes_when_paths_change(patch):
    route = Peer._route

    def kept(self, *of):
        self._routes_of = self.flooding.changes
        return route(self, *of)

    patch.setattr(Peer, "_route", kept)


def lets_every_connection_through(patch):
    patch.setattr(Gate, "ask", lambda self, connection, peer: Decision.PASS)


def delivers_to_every_hop(patch):
    pass_on = Peer.pass_on

    def eager(self, message: Routed, payloads):
        delivered = [Deliver(message.publisher, message.kind, message.topic, one) for one in payloads]
        times = 2 if message.branches else 1
        return pass_on(self, message._replace(deliver=False), payloads) + delivered * times

    patch.setattr(Peer, "pass_on", eager)


def tells_a_new_neighbour_nothing_of_the_others(patch):
    link_up = Flooding.link_up

    def silent(self, neighbour, announced, heard):
        before = self.table.peers
        self.table.peers = {}
        outputs = link_up(self, neighbour, announced, heard)
        self.table.peers = {**before, **self.table.peers}
        return outputs

    patch.setattr(Flooding, "link_up", silent)


def forgets_what_the_handshake_told(patch):
    link_up = Flooding.link_up

    def sure(self, neighbour, announced, heard):
        return link_up(self, neighbour, self.announcement, heard)

    patch.setattr(Flooding, "link_up", sure)


def keeps_its_clock_when_a_link_goes(patch):
    link_down = Flooding.link_down

    def slow(self, neighbour):
        clock = self.clock
        outputs = link_down(self, neighbour)
        self.clock = clock
        return outputs

    patch.setattr(Flooding, "link_down", slow)


def never_asks_whether_a_silent_peer_lives(patch):
    patch.setattr(Peerings, "tick", lambda self, now: [])


def passes_on_to_the_first_branch_only(patch):
    pass_on = Peer.pass_on

    def lazy(self, message, payloads):
        outputs = pass_on(self, message, payloads)
        told = [one for one in outputs if isinstance(one, Relay)]
        return [one for one in outputs if one not in told[1:]]

    patch.setattr(Peer, "pass_on", lazy)


def goes_on_with_words_about_nothing(patch):
    tell = Flooding._tell

    def loud(self, peer):
        self.table.peers[peer].told = None
        for neighbour, told in self._told.items():
            if peer != neighbour:
                told.pop(peer, None)
        return tell(self, peer)

    patch.setattr(Flooding, "_tell", loud)


def lets_echoes_in(patch):
    patch.setattr("dafka.overlay.gateway.gateway.is_marked", lambda payload: False)


def lets_everybody_speak_for_a_leaf(patch):
    patch.setattr(Gateway, "_speaks_for", lambda self, leaf: True)


def sends_to_a_leaf_over_its_last_gateway(patch):
    patch.setattr(Leaves, "speaker", lambda self, leaf: max(self._listed.get(leaf, ()), default=None))


def knows_of_no_islands(patch):
    patch.setattr(Leaves, "is_covered", lambda self, leaf, topic: False)


def thinks_that_everything_is_passed_on(patch):
    patch.setattr("dafka.overlay.routing.peer.has_room", lambda payload: True)


def sends_back_to_where_it_came_from(patch):
    wanting = Leaves.wanting
    patch.setattr(Leaves, "wanting", lambda self, topic, publisher, passed: wanting(self, topic, b"", passed))


def tells_leaves_nothing_new(patch):
    patch.setattr(Gateway, "tell", lambda self: [])


def keeps_the_list_of_leaves_to_itself(patch):
    patch.setattr(Gateway, "list_anew", lambda self: [])


def forgets_no_leaf_of_a_node_that_is_gone(patch):
    put = Leaves.put
    patch.setattr(Leaves, "put", lambda self, node, leaves: put(self, node, leaves) if leaves else [])


def forgets_what_it_is_behind_with(patch):
    go_on = Flooding.go_on

    def hasty(self):
        outputs = go_on(self)
        self._unsettled.clear()
        return outputs

    patch.setattr(Flooding, "go_on", hasty)


def never_asks_for_what_it_had_no_room_for(patch):
    patch.setattr(Flooding, "ask_again", lambda self: [])


def hears_no_inquiries(patch):
    patch.setattr(Flooding, "hear_inquiry", lambda self, neighbour, word: [])


@pytest.mark.parametrize(
    ("fault", "finder"),
    [
        (believes_what_a_neighbour_said_before_its_link_went, 0),
        (keeps_paths_over_a_neighbour_that_is_gone, 0),
        (tells_a_neighbour_paths_through_itself, 4),
        (never_takes_another_filter, 3),
        (sends_each_path_for_itself, 1061),
        (repeats_what_it_told_before_a_link_ended, 0),
        (withdraws_nothing, 11),
        (announces_itself_before_it_has_noticed_that_a_link_went, 4),
        (keeps_routes_when_paths_change, 1),
        (lets_every_connection_through, 4),
        (delivers_to_every_hop, 0),
        (tells_a_new_neighbour_nothing_of_the_others, 0),
        (forgets_what_the_handshake_told, 53),
        (keeps_its_clock_when_a_link_goes, 4),
        (never_asks_whether_a_silent_peer_lives, 4),
        (passes_on_to_the_first_branch_only, 0),
        (goes_on_with_words_about_nothing, 0),
        (lets_echoes_in, 18),
        (lets_everybody_speak_for_a_leaf, 1),
        (sends_to_a_leaf_over_its_last_gateway, 8),
        (knows_of_no_islands, 18),
        (thinks_that_everything_is_passed_on, 98),
        (sends_back_to_where_it_came_from, 3),
        (tells_leaves_nothing_new, 3),
        (keeps_the_list_of_leaves_to_itself, 3),
        (forgets_no_leaf_of_a_node_that_is_gone, 38),
        (forgets_what_it_is_behind_with, 2),
        (never_asks_for_what_it_had_no_room_for, 32),
        (hears_no_inquiries, 32),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_overlay_that_does_this_is_found(fault, finder, monkeypatch):
    """``finder`` is a seed that has found it; others follow, for the simulation may have changed."""
    fault(monkeypatch)
    for seed in (finder, *SEEDS):
        try:
            simulate(seed)
        except (AssertionError, KeyError):
            return
    pytest.fail(f"no seed below {len(SEEDS)} found it")
