"""CURVE: keys that let a client in, octets on the wire, and octets that were changed there."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
import zmq
from zmq.utils import z85

from dafka.zmtp import curve, limits
from dafka.zmtp.commands import encode_command
from dafka.zmtp.connection import Cancel, Connection, Event, Messages, Options, Subscribe
from dafka.zmtp.curve import CurveClient, CurveServer, Pair, public_of, z85_of
from dafka.zmtp.encoding import encode
from dafka.zmtp.errors import ProtocolError
from dafka.zmtp.greeting import signature


def pair() -> Pair:
    public, secret = zmq.curve_keypair()
    return Pair(z85.decode(public), z85.decode(secret))


SERVER, CLIENT, STRANGER = pair(), pair(), pair()
PLAIN = b"nobody else reads this"


def server(allowed: Iterable[bytes] = (CLIENT.public,), pair: Pair = SERVER, **options: object) -> Connection:
    known = set(allowed)

    def make(check: curve.Check) -> CurveServer:
        return CurveServer(check, pair, known.__contains__)

    return Connection(Options((b"ROUTER", b"XPUB"), accepts=True, mechanism=make, **options))  # type: ignore[arg-type]


def client(own: Pair = CLIENT, server: Pair = SERVER, socket_type: bytes = b"DEALER") -> Connection:
    def make(check: curve.Check) -> CurveClient:
        return CurveClient(check, server.public, own)

    return Connection(Options((socket_type,), accepts=False, identity=b"me", mechanism=make))


def take(side: Connection, octets: bytes) -> list[Event]:
    """What a side makes of octets, and of what is pending behind them."""
    events = side.receive(octets)
    while side.pending:
        events += side.receive(b"")
    return events


def shake_hands(one: Connection, other: Connection, torn: random.Random | None = None) -> list[bytes]:
    """Octets from each to the other until nobody has anything to say; those that ``one`` has sent."""
    sent: list[bytes] = []
    while True:
        octets = one.take_output()
        sent.append(octets)
        for piece in pieces(octets, torn):
            other.receive(piece)
        answer = other.take_output()
        if not octets and not answer:
            return sent
        for piece in pieces(answer, torn):
            one.receive(piece)


def pieces(octets: bytes, torn: random.Random | None) -> list[bytes]:
    if torn is None:
        return [octets] if octets else []
    cuts = sorted(torn.randrange(len(octets) + 1) for _ in range(5))
    return [octets[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(octets)], strict=True)]


def established(torn: random.Random | None = None) -> tuple[Connection, Connection]:
    one, other = client(), server()
    shake_hands(one, other, torn)
    assert one.established and other.established
    return one, other


def seal(side: Connection, *messages: list[bytes]) -> bytes:
    assert side.sealer is not None
    return b"".join(side.sealer.seal(b"".join(encode(message))) for message in messages)


def test_both_sides_learn_who_the_other_is():
    one, other = established()
    assert one.established and one.established.key == SERVER.public
    assert other.established and other.established.key == CLIENT.public
    assert other.established.identity == b"me" and other.established.socket_type == b"DEALER"


@pytest.mark.parametrize("seed", range(10))
def test_messages_pass_in_both_directions_however_octets_are_torn(seed):
    torn = random.Random(seed)
    one, other = established(torn)
    messages = [
        [torn.randbytes(torn.choice([0, 1, 30, 255, 256, 70_000])) for _ in range(torn.randint(1, 4))]
        for _ in range(20)
    ]
    for side, peer in ((one, other), (other, one)):
        received: list[tuple[bytes, ...]] = []
        for piece in pieces(seal(side, *messages), torn):
            received += [
                message
                for event in take(peer, piece)
                if isinstance(event, Messages)
                for message in event.messages
            ]
        assert received == list(map(tuple, messages))


def test_subscriptions_are_commands_under_encryption_too():
    one, other = client(socket_type=b"SUB"), server()
    shake_hands(one, other)
    assert one.sealer is not None
    octets = one.sealer.seal(one.subscribe(b"topic") + one.cancel(b"topic"))
    assert b"topic" not in octets
    assert take(other, octets) == [Subscribe(b"topic"), Cancel(b"topic")]


def test_nothing_is_on_the_wire_in_clear_text():
    one, other = client(), server()
    sent = b"".join(shake_hands(one, other))
    assert CLIENT.public not in sent and b"DEALER" not in sent
    assert PLAIN not in seal(one, [PLAIN])


def test_the_same_message_twice_is_never_the_same_octets():
    one, _ = established()
    assert seal(one, [PLAIN]) != seal(one, [PLAIN])


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        (client(STRANGER), server(), "key"),
        (client(), server(allowed=[]), "key"),
        (client(), server(pair=STRANGER), "curve"),
        (Connection(Options((b"DEALER",), accepts=False)), server(), "mechanism"),
        (Connection(Options((b"DEALER",), accepts=False, prefer_2=True)), server(), "mechanism"),
    ],
    ids=["not on the list", "nobody is", "another server's key", "no key", "an old peer without keys"],
)
def test_clients_that_are_refused(one, other, cause):
    with pytest.raises(ProtocolError) as caught:
        shake_hands(one, other)
    assert caught.value.cause == cause
    assert other.established is None
    if cause == "key":
        assert z85_of(STRANGER.public) in str(caught.value) or z85_of(CLIENT.public) in str(caught.value)


def test_a_client_talks_to_no_server_that_has_not_the_secret_key():
    """Somebody between the two answers the HELLO himself."""
    between = Pair(SERVER.public, STRANGER.secret)
    with pytest.raises(ProtocolError):
        shake_hands(client(), server(pair=between))


def test_a_client_whose_key_is_taken_off_the_list_is_refused():
    known = {CLIENT.public}

    def make(check: curve.Check) -> CurveServer:
        return CurveServer(check, SERVER, lambda key: key in known)

    one, other = client(), Connection(Options((b"ROUTER",), accepts=True, mechanism=make))
    shake_hands(one, other)
    assert other.is_welcome
    known.clear()
    assert not other.is_welcome


@pytest.mark.parametrize("what", ["changed", "repeated", "left out of its place", "of another connection"])
def test_frames_that_somebody_has_tampered_with(what):
    one, other = established()
    first, second, third = (seal(one, [b"%d" % number]) for number in range(3))
    if what == "changed":
        octets = first + second[:-1] + bytes((second[-1] ^ 1,)) + third
    elif what == "repeated":
        octets = first + first
    elif what == "left out of its place":
        octets = first + third + second
    else:
        octets = first + seal(established()[0], [b"x"])
    got: list[tuple[bytes, ...]] = []
    with pytest.raises(ProtocolError) as caught:
        events = other.receive(octets)
        while True:
            got += [one for event in events if isinstance(event, Messages) for one in event.messages]
            assert other.pending
            events = other.receive(b"")
    assert caught.value.cause == "curve"
    assert got == [(b"0",), (b"2",)] if what == "left out of its place" else got == [(b"0",)]


def test_a_plain_message_behind_the_handshake_is_refused():
    _, other = established()
    with pytest.raises(ProtocolError):
        other.receive(b"".join(encode([PLAIN])))


def test_a_frame_has_a_bound_before_it_has_arrived():
    one, other = client(), server(max_octets=1000)
    shake_hands(one, other)
    sealed = seal(one, [bytes(2000)])
    with pytest.raises(ProtocolError) as caught:
        other.receive(sealed[:20])
    assert caught.value.cause == "message-size"


def test_a_message_has_the_same_bound_over_all_of_its_frames():
    one, other = client(), server(max_octets=1000)
    shake_hands(one, other)
    with pytest.raises(ProtocolError) as caught:
        take(other, seal(one, [bytes(400)] * 3))
    assert caught.value.cause == "message-size"


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_handshake_ends_in_a_named_error_or_the_same_connection(seed):
    """A changed length may have a side wait for octets; the time of handshakes ends that. Some octets have no
    meaning, like those that fill up a greeting."""
    chance = random.Random(seed)
    one, other = client(), server()
    at = chance.randrange(len(b"".join(shake_hands(client(), server()))))
    try:
        for _ in range(4):
            octets = bytearray(one.take_output())
            if 0 <= at < len(octets):
                octets[at] ^= 1 << chance.randrange(8)
            at -= len(octets)
            other.receive(bytes(octets))
            one.receive(other.take_output())
    except ProtocolError:
        assert not (one.established and other.established)
        return
    if one.established and other.established:
        assert other.established.key == CLIENT.public
        assert take(other, seal(one, [PLAIN])) == [Messages([(PLAIN,)])]


@pytest.mark.parametrize("size", range(0, 250, 10))
def test_commands_of_another_size_end_with_a_named_error(size):
    other = server()
    other.receive(signature(b"") + b"\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32))
    with pytest.raises(ProtocolError):
        other.receive(encode_command(b"HELLO", bytes(size)))


def test_keys_as_files_have_them():
    public, secret = zmq.curve_keypair()
    assert z85_of(z85.decode(public)) == public.decode()
    assert public_of(z85.decode(secret)) == z85.decode(public)


def test_a_handshake_fits_into_its_bound():
    sizes = [len(octets) for octets in shake_hands(client(), server())]
    assert max(sizes) < limits.HANDSHAKE_OCTETS
