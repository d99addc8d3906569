"""Connections of libbroker, replayed: a node of ours takes either part, and says the same octets."""

from __future__ import annotations

import pytest
from overlay.peering.replay import Side, identity, play
from overlay.vectors import Vector, native, session

from dafka.overlay.peering.outputs import Close, NewFilter, PeerDown, Received
from dafka.overlay.values import decode
from dafka.overlay.wire.codes import ErrorCode
from dafka.protocol.errors import MalformedMessage

SMALL, LARGE = identity("1"), identity("2")
LIBBROKER = identity("8")
PYTHON_SMALL = bytes.fromhex("00000000000040008000000000000001")
PYTHON_LARGE = bytes.fromhex("ffffffffffff4fffbfffffffffffffff")
CONNECTOR_FILTER, LISTENER_FILTER = (b"/c/one", b"/c/two"), (b"/l",)


@pytest.mark.parametrize("connector", [True, False])
@pytest.mark.parametrize("smaller", ["connector", "listener"])
def test_the_four_handshakes(smaller, connector):
    me, peer = (SMALL, LARGE) if (smaller == "connector") == connector else (LARGE, SMALL)
    ours, theirs = (CONNECTOR_FILTER, LISTENER_FILTER) if connector else (LISTENER_FILTER, CONNECTOR_FILTER)
    side = Side(me, ours)
    play(side, session(f"hs-{smaller}-has-smaller-id"), connector, "connector" if connector else "listener")
    (up,) = side.peers_up
    assert (up.peer, up.version, up.announced.filter, up.heard.filter) == (peer, 1, ours, theirs)


@pytest.mark.parametrize("smaller", ["connector", "listener"])
@pytest.mark.parametrize("part", ["connector", "listener"])
def test_goodbyes_of_the_connector(smaller, part):
    """Behind the handshake of the same two nodes comes the recorded goodbye."""
    me = SMALL if smaller == part else LARGE
    side = Side(me, CONNECTOR_FILTER if part == "connector" else LISTENER_FILTER)
    begin = session(f"hs-{smaller}-has-smaller-id")
    play(side, begin + session(f"hs-{smaller}-has-smaller-id-unpeer-by-connector"), part == "connector", part)
    peer = LARGE if me == SMALL else SMALL
    if part == "connector":
        assert side.outputs[-2:] == [Close(1), PeerDown(1, peer, removed=True, said_goodbye=False)]
    else:
        side.carry(side.peerings.disconnected(1.0, 1))
        assert side.outputs[-1] == PeerDown(1, peer, removed=False, said_goodbye=True)


@pytest.mark.parametrize("smaller", ["connector", "listener"])
@pytest.mark.parametrize("again", ["second", "reverse"])
def test_the_originator_refuses_a_redundant_connection(smaller, again):
    recording = session(f"hs-{smaller}-has-smaller-id-redundant-{again}-connection")
    ours = next(one.direction.split("->")[0] for one in recording if one.name.endswith("drop_conn"))
    side = Side(SMALL)
    become_peers(side, LARGE)
    before = len(side.outputs)
    replay_second(side, recording, ours)
    assert Close(2) in side.outputs[before:]
    assert list(side.peerings.peers) == [LARGE]


@pytest.mark.parametrize("smaller", ["connector", "listener"])
@pytest.mark.parametrize("again", ["second", "reverse"])
def test_the_responder_takes_it_for_the_connection_that_it_has(smaller, again):
    recording = session(f"hs-{smaller}-has-smaller-id-redundant-{again}-connection")
    theirs = next(one.direction.split("->")[0] for one in recording if one.name.endswith("drop_conn"))
    ours = "listener" if theirs == "connector" else "connector"
    side = Side(LARGE)
    become_peers(side, SMALL)
    replay_second(side, recording, ours)
    assert [one.redundant for one in side.refusals] == [True]
    assert list(side.peerings.peers) == [SMALL]


def become_peers(side: Side, peer: bytes) -> None:
    other = Side(peer)
    side.connect(1, connector=True)
    other.connect(1, connector=False)
    said = [0, 0]
    while said != [len(side.sent), len(other.sent)]:
        mine, others = side.sent[said[0] :], other.sent[said[1] :]
        said = [len(side.sent), len(other.sent)]
        for octets in mine:
            other.hear(1, octets)
        for octets in others:
            side.hear(1, octets)
    assert list(side.peerings.peers) == [peer]
    side.sent.clear()


def replay_second(side: Side, recording: list[Vector], ours: str) -> None:
    side.connect(2, connector=ours == "connector")
    for vector in recording:
        if not vector.direction.startswith(ours):
            side.hear(2, vector.octets)
    assert side.sent == [one.octets for one in recording if one.direction.startswith(ours)]


@pytest.mark.parametrize(
    ("name", "me", "filter"),
    [
        ("py-connector-small-id", PYTHON_SMALL, b"/zeek"),
        ("py-connector-large-id", PYTHON_LARGE, b"/zeek"),
        ("py-listener-small-id", PYTHON_SMALL, b"/zeek"),
        ("py-listener-large-id", PYTHON_LARGE, b"/zeek"),
    ],
)
@pytest.mark.parametrize("part", ["python", "libbroker"])
def test_whole_sessions_with_data_filters_pings_and_a_goodbye(name, me, filter, part):
    connects = ("connector" in name) == (part == "python")
    side = Side(me, (filter,)) if part == "python" else Side(LIBBROKER, (b"/py",))
    play(side, session(name), connects, part)
    data = [output for output in side.outputs if isinstance(output, Received)]
    theirs = [one for one in session(name) if not one.direction.startswith(part)]
    assert len(data) == sum(one.name.endswith("-data") for one in theirs)
    if part == "python" and any(one.name.endswith("-pong") for one in session(name)):
        assert side.outputs[-1] == PeerDown(1, LIBBROKER, removed=True, said_goodbye=False)
    changes = [output for output in side.outputs if isinstance(output, NewFilter)]
    assert [change.filter for change in changes] == [
        (b"/other",) for one in theirs if one.name.endswith("routing_update")
    ]


OURS_IS_OTHERWISE = {
    # libbroker answers its own id with hello, and waits for ever.
    "hs-same-id-as-listener",
    # libbroker waits for 1.2 GB.
    "hs-http-request",
}
FAILURES = sorted(
    {one.session for one in native() if one.session.startswith("hs-") and "python" in one.direction}
    - OURS_IS_OTHERWISE
)


@pytest.mark.parametrize("name", FAILURES)
def test_sessions_recorded_with_libbroker_as_listener(name):
    recording = session(name)
    side = Side(LIBBROKER, (b"/py",))
    side.connect(1, connector=False)
    for vector in recording:
        if vector.direction.startswith("python"):
            side.hear(1, vector.octets)
    sent = [one.octets for one in recording if one.direction.startswith("libbroker") and one.octets]
    assert side.sent == sent
    if any(not one.octets for one in recording):
        assert side.closed == [1]


def test_the_failures_are_all_there():
    assert len(FAILURES) >= 10


@pytest.mark.parametrize("name", sorted(OURS_IS_OTHERWISE))
def test_handshakes_in_which_libbroker_waits_in_vain_are_ended(name):
    side = Side(LIBBROKER, (b"/py",))
    side.connect(1, connector=False)
    for vector in session(name):
        if vector.direction.startswith("python"):
            side.hear(1, vector.octets)
    assert side.closed == [1]


def test_a_connector_hears_why_it_is_refused():
    side = Side(LIBBROKER)
    play(side, session("py-listener-rejects"), True, "libbroker")
    (refusal,) = side.refusals
    assert (refusal.peer, refusal.code, refusal.redundant) == (PYTHON_SMALL, ErrorCode.SHUTTING_DOWN, False)


def test_a_second_connection_waits_for_the_handshake_of_the_first():
    recording = [one for one in native() if one.name.startswith("redundant-during-handshake/")]
    side = Side(LIBBROKER, (b"/py",))
    sent = 0
    for vector in recording:
        number = int(vector.session[-1])
        if vector.name.endswith("01-probe"):
            side.connect(number, connector=False)
        if not vector.octets:
            assert side.closed == [number]
        elif vector.direction.startswith("libbroker"):
            assert side.sent[sent] == vector.octets, vector.name
            sent += 1
        else:
            side.hear(number, vector.octets)
    assert len(side.sent) == sent
    assert side.peerings.peers == {PYTHON_LARGE: 1}


def test_a_goodbye_without_an_answer_ends_by_itself():
    ping, closed = session("bye-from-libbroker-without-answer")
    side = Side(LIBBROKER)
    become_peers(side, PYTHON_LARGE)
    side.carry(side.peerings.unpeer(10.0, PYTHON_LARGE))
    assert [octets[:-8] for octets in side.sent] == [ping.octets[:-8]]
    side.carry(side.peerings.tick(12.9))
    assert side.closed == []
    side.carry(side.peerings.tick(13.1))
    assert side.closed == [1] and not closed.octets
    assert side.outputs[-1] == PeerDown(1, PYTHON_LARGE, removed=True, said_goodbye=False)


ELSEWHERE = (
    # Subscriptions are not decided here.
    *("op-receiver-is-me", "op-receiver-is-other", "op-no-subscriber-topic"),
    # Refused by this side, see below.
    *("op-local-topic-from-peer", "op-ieee-quiet-nan-7ff8"),
)
OPERATION = [
    one
    for one in native()
    if one.name.startswith("op-") and "outcome: " in one.meaning and one.session not in ELSEWHERE
]


@pytest.mark.parametrize("vector", OPERATION, ids=lambda vector: vector.session)
def test_sessions_recorded_with_libbroker_as_peer(vector):
    side = Side(LIBBROKER, (b"/py",))
    become_peers(side, PYTHON_LARGE)
    side.hear(1, vector.octets)
    received = [output.envelope for output in side.outputs if isinstance(output, Received)]
    values = 0
    for envelope in received:
        try:
            decode(envelope.payload)
            values += 1
        except MalformedMessage:
            pass
    outcome = vector.meaning.partition("outcome: ")[2]
    assert values == outcome.startswith("delivered")
    assert bool(side.sent) == outcome.startswith("answered")
    assert side.closed == []


def test_topics_of_local_events_are_not_taken_from_a_peer():
    (vector,) = session("op-local-topic-from-peer")
    side = Side(LIBBROKER, (b"/py",))
    become_peers(side, PYTHON_LARGE)
    side.hear(1, vector.octets)
    assert side.peerings.discarded == {"local-topic": 1}


def test_pings_are_answered_whatever_their_receiver_and_topic_are():
    side = Side(LIBBROKER, (b"/py",))
    become_peers(side, PYTHON_LARGE)
    for name in ("op-ping-nil-receiver", "op-ping-other-topic"):
        asked, answered = session(name)
        side.hear(1, asked.octets)
        assert side.sent[-1] == answered.octets
