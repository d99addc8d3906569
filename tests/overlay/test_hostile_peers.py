"""Whatever a peer sends: this node goes on, the others notice nothing, and what it keeps is bounded."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay.vectors import native
from overlay.wiring import Wiring, identity

from dafka.overlay.limits import CHECKED_OCTETS, WINDOW_OCTETS
from dafka.overlay.values import encode
from dafka.overlay.values.checking import is_value
from dafka.overlay.wire.commands import decode_command, encode_command
from dafka.overlay.wire.credit import CREDIT
from dafka.overlay.wire.envelope import COMMAND, Envelope, decode_envelope, encode_envelope
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.primitives import NOBODY, EntityId
from dafka.overlay.wire.routed import (
    DATA,
    Revocation,
    Routed,
    Subscription,
    Withdrawal,
    encode_branch,
    encode_routed,
)

NAMES = ["a", "b", "x", "y", "z"]
IDS = st.sampled_from([*map(identity, NAMES), NOBODY])
TIMES = st.sampled_from([0, 1, 99, 100, 101, 2**40, 2**62 - 1, 2**63 - 1])
PREFIXES = st.lists(st.sampled_from([b"", b"/t", b"/t/u", b"st/<$>/data/master"]), max_size=3).map(tuple)


@st.composite
def subscriptions(draw):
    path = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    path = path if draw(st.booleans()) else [*[hop for hop in path if hop != identity("x")], identity("x")]
    times = [draw(TIMES) for _ in path]
    # Not newer than the truth: the word of a peer about others' filters is believed.
    leaves = draw(st.dictionaries(IDS, st.builds(Leaf, IDS, PREFIXES, st.lists(IDS, max_size=2).map(tuple))))
    listed = tuple([leaf._replace(id=one) for one, leaf in leaves.items()])
    return Subscription(tuple(path), tuple(times), draw(st.sampled_from([0, 1, 99])), draw(PREFIXES), listed)


@st.composite
def routed(draw):
    way = b""
    for hop in draw(st.lists(IDS, max_size=4)):
        way = encode_branch(hop, draw(st.booleans()), way) + draw(st.sampled_from([b"", b"", b"\x01"]))
    topic = draw(st.sampled_from([b"/t", b"st/<$>/data/master", b"st/<$>/data/clone"]))
    payload = draw(st.one_of(st.binary(max_size=30), st.sampled_from(COMMANDS)))
    return Routed(draw(st.sampled_from([1, 2])), draw(st.booleans()), draw(IDS), way, topic, payload)


COMMANDS = [
    decode_envelope(one.message).payload
    for one in native()
    if one.name.startswith(("store-", "py-master", "py-clone")) and "command." in one.name
]
WORDS = st.one_of(
    subscriptions().map(encode_routed),
    IDS.map(lambda one: encode_routed(Withdrawal(one))),
    st.builds(Revocation, IDS, TIMES, IDS).map(encode_routed),
    routed().map(encode_routed),
    st.binary(min_size=1, max_size=40).map(frame),
)


def town() -> Wiring:
    """x is the liar: its messages are made up, and messages to it are lost. b has another way to a."""
    wiring = Wiring("a", "b", "x").connect("a b", "x a")
    wiring.carry("a", wiring["a"].subscribe([b"/t"]))
    wiring.carry("b", wiring["b"].subscribe([b"/t"]))
    wiring.carry("a", wiring["a"].attach_master("st"))
    wiring.carry("b", wiring["b"].attach_clone("st"))
    wiring.tick(1.0)
    return wiring


@given(st.lists(WORDS, max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_liar_among_the_peers_stops_nothing(words):
    wiring = town()
    (number,) = wiring["x"].core.peerings.peers.values()
    for word in words:
        wiring.carry("a", wiring["a"].received(wiring.now, number, word[4:]))
        wiring.tick(0.1)
    wiring.tick(1.0)
    assert wiring["a"].core.peerings.peers.keys() >= {identity("b"), identity("x")}
    wiring.carry("x", wiring["x"].unpeer(wiring.now, identity("a")))
    wiring.tick(1.0)
    # With the liar everything is gone that it said, but for revocations, which were contradicted.
    assert [*wiring["a"].core.peer.peers] == [identity("b")]
    assert [*wiring["b"].core.peer.peers] == [identity("a")]
    assert wiring.publish("a", b"/t") == ["b"] and wiring.publish("b", b"/t") == ["a"]
    for name, other in ("ab", "ba"):
        wiring.carry(name, wiring[name].subscribe([b"/new"]))
        assert wiring.publish(other, b"/new") == [name] and wiring.publish(other, b"/t") == []


NO_VALUES = [b"", b"\xff", b"\x05\x02x", encode(("x", 1))[:-1], encode(1) + b"\x00"]


@pytest.mark.parametrize("size", [0, CHECKED_OCTETS + 1])
def test_malformed_values_go_no_further_than_the_first_node(size):
    """x, b and a in a chain; messages of x for a, and for b and a."""
    wiring = Wiring("a", "b", "x").connect("a b", "x b")
    wiring.carry("a", wiring["a"].subscribe([b"/t"]))
    core = wiring["b"].core
    number, good = core.peerings.peers[identity("x")], encode("x" * size)
    for deliver in (False, True):
        way = encode_branch(identity("a"), True, b"")
        message = Routed(DATA, deliver, identity("x"), way, b"/t", b"")
        run = []
        for payload in [good, *[bad + bytes(size) for bad in NO_VALUES], good]:
            octets = encode_routed(message._replace(payload=payload))[4:]
            large = core.payload_to_check(number, octets)
            assert large == (payload if size else None)
            if large is None or is_value(large):
                run.append(octets)
            else:
                wiring.carry("b", wiring["b"].undecodable(wiring.now, number, octets))
        wiring.carry("b", wiring["b"].received_many(wiring.now, number, run))
    # nothing of it was delivered at b, which wants nothing
    assert [got for got in wiring.got if got[0] == "a"] == [("a", "x", b"/t", good)] * 4
    assert core.discarded == {"undecodable": 2 * len(NO_VALUES)}


def test_malformed_values_use_credit_all_the_same():
    wiring = Wiring("a", "b", "x").connect("a b", "x b")
    wiring.carry("a", wiring["a"].subscribe([b"/t"]))
    core = wiring["b"].core
    number = core.peerings.peers[identity("x")]
    way = encode_branch(identity("a"), True, b"")
    octets = encode_routed(Routed(DATA, False, identity("x"), way, b"/t", b"\xff" * 1000))[4:]
    wiring.sent.clear()
    for _ in range(2 * WINDOW_OCTETS // len(octets)):
        wiring.carry("b", wiring["b"].received(wiring.now, number, octets))
        wiring.carry("b", wiring["b"].undecodable(wiring.now, number, octets))
    granted = [message for name, message in wiring.sent if name == "b" and message[4] == CREDIT]
    assert granted and identity("x") in core.peerings.peers, "it gets credit for what it has sent"
    assert wiring.got == []
    core.unpeer(wiring.now, identity("x"))
    assert core.undecodable(wiring.now, number, octets) == [], "whoever was left has no credit"


@pytest.mark.parametrize("seed", range(20))
def test_commands_that_were_tampered_with_stop_no_store(seed):
    chance = random.Random(seed)
    wiring = Wiring("a", "z", plain="z").connect("a z")
    wiring.carry("a", wiring["a"].attach_master("st"))
    (number,) = wiring["a"].core.peerings.peers.values()
    for _ in range(300):
        payload = bytearray(chance.choice(COMMANDS))
        for _ in range(chance.choice([0, 1, 3])):
            payload[chance.randrange(len(payload))] = chance.randrange(256)
        octets = bytes(payload)
        if chance.random() < 0.5:  # for the store that is there
            try:
                command = decode_command(octets)
            except ValueError:
                continue
            master = wiring["a"].stores["st"].entity
            sender = EntityId(identity("z"), chance.randrange(3))
            octets = encode_command(command._replace(receiver=master, sender=sender))
        topic = chance.choice([b"st/<$>/data/master", b"st/<$>/data/clone"])
        envelope = Envelope(COMMAND, identity("z"), NOBODY, topic, octets)
        wiring.carry("a", wiring["a"].received(wiring.now, number, encode_envelope(envelope)[4:]))
        wiring.tick(0.1)
    assert wiring["a"].core.peerings.peers == {identity("z"): number}
