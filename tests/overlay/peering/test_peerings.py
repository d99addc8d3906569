"""Connections among nodes of ours: versions, simultaneous connects, silence, the end of a node."""

from __future__ import annotations

import random
from collections import deque

import pytest
from overlay.peering.replay import Side, identity

from dafka.overlay import limits
from dafka.overlay.peering import statuses
from dafka.overlay.peering.outputs import Close, PeerDown, PeerUp, Pong, ReceivedRouted, Refused, Send
from dafka.overlay.peering.peerings import Peerings
from dafka.overlay.values import Count, Enum, Port
from dafka.overlay.wire.codes import ErrorCode, StatusCode
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.handshake import Announcement, DropConn, Hello, decode_handshake, encode_handshake

SMALL, LARGE, THIRD = identity("1"), identity("2"), identity("3")
BOTH = (1, 2)


class Pair:
    """Two nodes and the connections between them. Messages under way arrive in order on each connection."""

    def __init__(self, one: Side, other: Side, seed: int = 0) -> None:
        self.sides = (one, other)
        self.random = random.Random(seed)
        self.under_way: dict[tuple[int, int], deque[bytes]] = {}
        self._seen = [0, 0]

    def open(self, number: int, by: int) -> None:
        for end in (0, 1):
            self.under_way[end, number] = deque()
        for end in (0, 1):
            self.sides[end].connect(number, connector=end == by)
            self.collect()

    def collect(self) -> None:
        for end, side in enumerate(self.sides):
            for output in side.outputs[self._seen[end] :]:
                if isinstance(output, Send):
                    self.under_way[1 - end, output.connection].append(output.octets)
                elif isinstance(output, Close):
                    self.under_way[1 - end, output.connection].append(b"")
            self._seen[end] = len(side.outputs)

    def run(self) -> None:
        while due := [key for key, octets in self.under_way.items() if octets]:
            end, number = self.random.choice(due)
            octets = self.under_way[end, number].popleft()
            side = self.sides[end]
            if not side.knows(number):
                continue
            if octets:
                side.hear(number, octets)
            else:
                side.carry(side.peerings.disconnected(0.0, number))
            self.collect()


def ups(side: Side) -> list[PeerUp]:
    return side.peers_up


@pytest.mark.parametrize(
    ("one", "other", "selected"), [(BOTH, BOTH, 2), (BOTH, (1, 1), 1), ((1, 1), BOTH, 1), ((2, 2), (2, 2), 2)]
)
@pytest.mark.parametrize("by", [0, 1])
def test_the_highest_version_that_both_have_is_selected(one, other, selected, by):
    pair = Pair(Side(SMALL, (b"/a",), one), Side(LARGE, (b"/b",), other))
    pair.open(1, by)
    pair.run()
    assert [up.version for side in pair.sides for up in ups(side)] == [selected, selected]


def test_nodes_without_a_common_version_part():
    pair = Pair(Side(SMALL, versions=(1, 1)), Side(LARGE, versions=(2, 2)))
    pair.open(1, 0)
    pair.run()
    assert [side.refusals[0].code for side in pair.sides] == [ErrorCode.PEER_INCOMPATIBLE] * 2


def test_version_2_tells_filters_with_their_times():
    one, other = Side(SMALL, versions=BOTH), Side(LARGE, versions=BOTH)
    one.peerings = Peerings(SMALL, lambda _: Announcement((b"/a",), 5, 7))
    pair = Pair(one, other)
    pair.open(1, 0)
    pair.run()
    assert ups(other)[0].heard == ups(one)[0].announced == Announcement((b"/a",), 5, 7)


@pytest.mark.parametrize("versions", [(1, 1), BOTH])
def test_a_ping_is_answered_behind_what_was_sent_before(versions):
    one, other = Side(SMALL, versions=versions), Side(LARGE, versions=versions)
    pair = Pair(one, other)
    pair.open(1, 0)
    pair.run()
    one.carry(one.peerings.ping(LARGE, b"all?"))
    one.carry(one.peerings.ping(THIRD, b"nobody"))
    pair.collect()
    pair.run()
    assert [output for side in pair.sides for output in side.outputs if isinstance(output, Pong)] == [
        Pong(LARGE, b"all?")
    ]
    one.carry(one.peerings.unpeer(0.0, LARGE))
    assert one.peerings.ping(LARGE, b"no longer") == []


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("versions", [(1, 1), BOTH])
def test_simultaneous_connects_leave_one_connection(seed, versions):
    pair = Pair(Side(SMALL, versions=versions), Side(LARGE, versions=versions), seed)
    for number in range(4):
        pair.open(number, by=number % 2)
    pair.run()
    assert [len(ups(side)) for side in pair.sides] == [1, 1]
    assert pair.sides[0].peerings.peers[LARGE] == pair.sides[1].peerings.peers[SMALL]
    for side in pair.sides:
        assert len(side.refusals) == 3
        assert all(one.code == ErrorCode.REDUNDANT_CONNECTION for one in side.refusals)
        assert not any(isinstance(output, PeerDown) for output in side.outputs)


@pytest.mark.parametrize("seed", range(50))
def test_a_connection_that_waited_is_let_through_when_the_first_comes_to_nothing(seed):
    pair = Pair(Side(SMALL, versions=BOTH), Side(LARGE, versions=BOTH), seed)
    pair.open(1, by=0)
    pair.open(2, by=1)
    chance = random.Random(seed)
    for _ in range(chance.randrange(12)):
        due = [key for key, octets in pair.under_way.items() if octets]
        if due:
            end, number = chance.choice(due)
            pair.sides[end].hear(number, pair.under_way[end, number].popleft())
            pair.collect()
    for end, side in enumerate(pair.sides):  # the first connection is cut
        pair.under_way[end, 1].clear()
        side.carry(side.peerings.disconnected(0.0, 1))
    pair.collect()
    pair.under_way[0, 1].clear(), pair.under_way[1, 1].clear()
    pair.run()
    refused = [one for side in pair.sides for one in side.refusals if one.connection == 2]
    if refused:  # before the cut: its connector tries again
        assert {one.code for one in refused} == {ErrorCode.REDUNDANT_CONNECTION}
        assert [side.peerings.peers for side in pair.sides] == [{}, {}]
    else:
        assert [side.peerings.peers for side in pair.sides] == [{LARGE: 2}, {SMALL: 2}]


def test_a_dead_connection_is_noticed_when_the_peer_comes_back():
    pair = Pair(Side(SMALL, versions=BOTH), Side(LARGE, versions=BOTH))
    pair.open(1, by=0)
    pair.run()
    again = Side(SMALL, versions=BOTH)  # the node that died, without a word
    pair.sides = (again, pair.sides[1])
    pair._seen[0] = 0
    pair.open(2, by=0)
    pair.run()
    old = pair.sides[1]
    assert again.refusals[0].code == ErrorCode.LOGIC_ERROR
    old.carry(old.peerings.tick(limits.GOODBYE_SECONDS + 0.1))
    assert PeerDown(1, SMALL, False, False, "silent") in old.outputs
    pair.collect()
    pair.open(3, by=0)
    pair.run()
    assert old.peerings.peers == {SMALL: 3}


def established(now: float = 0.0) -> Pair:
    pair = Pair(Side(SMALL, versions=BOTH), Side(LARGE, versions=BOTH))
    pair.open(1, by=0)
    pair.run()
    return pair


def pass_time(side: Side, begin: float, end: float) -> None:
    """A tick every half second."""
    for half in range(int(2 * begin), int(2 * end) + 1):
        side.carry(side.peerings.tick(half / 2))


def test_a_silent_peer_is_sent_a_ping_and_an_answer_keeps_it():
    pair = established()
    side = pair.sides[0]
    before = len(side.sent)
    pass_time(side, 0.0, limits.SILENT_SECONDS - 0.5)
    assert len(side.sent) == before
    pass_time(side, limits.SILENT_SECONDS, limits.SILENT_SECONDS + 1.0)
    assert len(side.sent) == before + 1
    pair.collect()
    pair.run()  # the answer comes at 0.0 by the clock of this pair
    pass_time(side, limits.SILENT_SECONDS + 1.5, limits.LOST_SECONDS - 0.5)
    assert side.peerings.peers == {LARGE: 1}
    side.carry(side.peerings.tick(limits.LOST_SECONDS))
    assert side.outputs[-2:] == [Close(1), PeerDown(1, LARGE, False, False, "silent")]


def test_a_process_that_was_stopped_does_not_take_that_for_silence_of_others():
    pair = established()
    side = pair.sides[0]
    pass_time(side, 0.0, 1.0)
    side.carry(side.peerings.tick(100.0))
    side.carry(side.peerings.tick(100.5))
    assert side.peerings.peers == {LARGE: 1}
    pass_time(side, 101.0, 100.0 + limits.LOST_SECONDS)
    assert side.peerings.peers == {}


def test_a_handshake_that_begins_behind_a_pause_has_no_more_time_than_others():
    side = Side(SMALL)
    pass_time(side, 0.0, 1.0)
    side.carry(side.peerings.connected(100.0, 1, connector=False))
    pass_time(side, 100.5, 100.5 + limits.HANDSHAKE_SECONDS)
    assert side.closed == [1]


def test_a_handshake_that_does_not_go_on_ends():
    side = Side(SMALL)
    side.connect(1, connector=False)
    side.carry(side.peerings.tick(limits.HANDSHAKE_SECONDS - 0.1))
    assert side.closed == []
    side.carry(side.peerings.tick(limits.HANDSHAKE_SECONDS))
    (refusal,) = side.refusals
    assert (refusal.peer, refusal.code) == (None, ErrorCode.PEER_TIMEOUT)
    assert isinstance(decode_handshake(side.sent[-1][4:]), DropConn)
    assert side.closed == [1]


def test_probes_without_end_do_not_keep_a_handshake_alive():
    side = Side(SMALL)
    side.connect(1, connector=False)
    probe = side.sent[0]
    for _ in range(1000):
        side.hear(1, probe)
    side.carry(side.peerings.tick(limits.HANDSHAKE_SECONDS))
    assert side.closed == [1]


def test_goodbye_is_said_once_and_nothing_is_sent_behind_it():
    pair = established()
    one, other = pair.sides
    one.carry(one.peerings.unpeer(0.0, LARGE))
    one.carry(one.peerings.unpeer(0.0, LARGE))
    assert one.peerings.send(LARGE, frame(b"\x14late")) == []
    pair.collect()
    pair.run()
    assert one.outputs[-1] == PeerDown(1, LARGE, removed=True, said_goodbye=False)
    assert PeerDown(1, SMALL, removed=False, said_goodbye=True) in other.outputs
    assert one.peerings.peers == other.peerings.peers == {}


def test_routed_messages_of_version_2_peers_are_handed_on():
    pair = established()
    one, other = pair.sides
    one.carry(one.peerings.send(LARGE, frame(b"\x14anything")))
    pair.collect()
    pair.run()
    assert other.outputs[-1] == ReceivedRouted(SMALL, b"\x14anything")


def test_a_node_that_shuts_down_says_goodbye_and_refuses():
    pair = established()
    one, other = pair.sides
    one.connect(2, connector=False)
    one.carry(one.peerings.shut_down(0.0))
    assert Close(2) in one.outputs
    pair.under_way[1, 2] = deque()
    pair.collect()
    pair.under_way[1, 2].clear()
    pair.run()
    assert other.peerings.peers == {}
    one.connect(3, connector=False)
    assert isinstance(one.outputs[-2], Refused)
    assert one.outputs[-2].code == ErrorCode.SHUTTING_DOWN


def test_the_same_id_at_both_ends_is_refused():
    side = Side(SMALL)
    side.connect(1, connector=False)
    side.hear(1, encode_handshake(Hello(SMALL, 1, 1)))
    assert side.refusals[0].code == ErrorCode.PEER_INVALID


def test_connections_are_bounded(monkeypatch):
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 2)
    side = Side(SMALL)
    for number in range(3):
        side.connect(number, connector=False)
    assert side.closed == [2]


def test_strangers_who_say_nothing_do_not_keep_others_out(monkeypatch):
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 2)
    side = Side(SMALL)
    side.connect(0, connector=False)
    side.connect(1, connector=False)
    later = limits.HANDSHAKE_LEAST_SECONDS
    side.connect(2, connector=False, now=later)
    assert side.closed == [0]  # the oldest made room
    assert side.refusals[0].code == ErrorCode.PEER_TIMEOUT
    side.connect(3, connector=False, now=later)
    side.connect(4, connector=False, now=later)
    assert side.closed == [0, 1, 4]  # the third has had no time yet


def test_octets_that_are_not_messages_end_a_connection_and_only_that():
    pair = established()
    side = pair.sides[0]
    side.connect(2, connector=False)
    side.hear(2, b"GET / HTTP/1.1\r\n")
    assert side.closed == [2]
    side.hear(1, bytes(4))
    assert side.outputs[-1][:4] == (1, LARGE, False, False)
    assert side.outputs[-1].reason.startswith("frame-length: a message of 0 octets")


def test_statuses_and_errors_are_the_values_that_subscribers_of_libbroker_get():
    at = statuses.EndpointInfo(SMALL, statuses.NetworkInfo("127.0.0.1", 9999, 10))
    name = "11111111-1111-4111-8111-111111111111"
    status = statuses.Status(StatusCode.PEER_ADDED, at, "handshake successful")
    where = (name, "127.0.0.1", Port(9999), Count(10))
    assert statuses.status_value(status) == ("status", Enum("peer_added"), where, "handshake successful")
    discovered = statuses.Status(StatusCode.ENDPOINT_DISCOVERED, statuses.EndpointInfo(SMALL), "found")
    assert statuses.status_value(discovered)[2] == (name, None, None, None)
    nobody = statuses.EndpointInfo(None, statuses.NetworkInfo("::1", 1))
    error = statuses.Error(ErrorCode.PEER_UNAVAILABLE, nobody, "refused")
    assert statuses.error_value(error) == (
        *("error", Enum("peer_unavailable")),
        ((None, "::1", Port(1), Count(0)), "refused"),
    )
    assert statuses.error_value(statuses.Error(ErrorCode.PEER_INVALID, None, "who?"))[2] == ("who?",)
