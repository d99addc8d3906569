"""Established connections, against octets written from the specifications; and peers that are wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import accumulate

import pytest
from zmtp.sides import PUB, ROUTER, established, received
from zmtp.vectors import (
    FILLER,
    GREETING_30,
    GREETING_31,
    SIGNATURE,
    command,
    frame,
    greeting_2,
    message,
    ready,
)

from dafka.zmtp import limits
from dafka.zmtp.connection import (
    Cancel,
    Connection,
    Messages,
    Options,
    Ping,
    Pong,
    Subscribe,
)
from dafka.zmtp.errors import ProtocolError

STREAMS = {
    "3.1": (
        PUB,
        GREETING_31
        + ready(b"SUB")
        + command(b"\x09SUBSCRIBEtopic")
        + command(b"\x04PING\x00\x64context")
        + command(b"\x06CANCELtopic")
        + command(b"\x07UNKNOWNx")
        + command(b"\x09SUBSCRIBE"),
        [Subscribe(b"topic"), Ping(10.0), Cancel(b"topic"), Subscribe(b"")],
    ),
    "3.0": (
        PUB,
        GREETING_30 + ready(b"XSUB") + message(b"\x01topic") + message(b"\x00topic") + message(b"upstream"),
        [Subscribe(b"topic"), Cancel(b"topic"), Messages([(b"upstream",)])],
    ),
    "2.0": (
        PUB,
        greeting_2(2) + message(b"\x01") + message(b"\x00") + message(b"\x01two", b"frames"),
        [Subscribe(b""), Cancel(b""), Messages([(b"\x01two", b"frames")])],
    ),
    "router": (
        ROUTER,
        GREETING_31
        + ready(b"DEALER", b"me")
        + message(b"\x01not a subscription")
        + message(b"a", b"", b"b" * 300)
        + command(b"\x09SUBSCRIBEignored")
        + command(b"\x06CANCELignored")
        + message(b"x") * 5
        + command(b"\x04PONGcontext")
        + message(b"end"),
        [
            Messages([(b"\x01not a subscription",)]),
            Messages([(b"a", b"", b"b" * 300)]),
            *[Messages([(b"x",)])] * 5,
            Pong(b"context"),
            Messages([(b"end",)]),
        ],
    ),
    "router 2.0": (
        ROUTER,
        greeting_2(3, b"identity") + message(b"", b"request") * 3,
        [Messages([(b"", b"request")])] * 3,
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_torn_anywhere_gives_the_same_events_and_answers(name: str):
    options, octets, expected = STREAMS[name]
    whole = Connection(options)
    events = received(whole, octets)
    assert events[1:] == expected
    output = whole.take_output()

    def torn(ends: Iterable[int], most: int = 1000) -> None:
        connection, found, begin = Connection(options), [], 0
        for end in [*ends, len(octets)]:
            found += received(connection, octets[begin:end], most)
            begin = end
        assert found == events
        assert connection.take_output() == output
        assert not connection.in_progress
        assert connection.held == 0

    for position in range(1, len(octets)):
        torn([position])
    torn(range(1, len(octets)))
    dice = random.Random(name)
    for most in (1, 2, 3):
        torn(sorted(dice.sample(range(1, len(octets)), 9)), most)


def test_pings_are_answered_with_the_context_of_the_last():
    server = Connection(ROUTER)
    established(server, GREETING_31 + ready(b"DEALER"))
    assert received(server, command(b"\x04PING\x00\x00one") + command(b"\x04PING\x00\x05two")) == [
        Ping(0.0),
        Ping(0.5),
    ]
    assert server.take_output() == command(b"\x04PONGtwo")
    assert server.take_output() == b""


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0" + b"x" * 17])
def test_a_malformed_ping_is_refused(data: bytes):
    server = Connection(ROUTER)
    established(server, GREETING_31 + ready(b"DEALER"))
    with pytest.raises(ProtocolError, match="command"):
        received(server, command(b"\x04PING" + data))


@pytest.mark.parametrize(("greeting", "name"), [(GREETING_31, "3.1"), (GREETING_30, "3.0")])
def test_commands_that_a_subscriber_sends(greeting: bytes, name: str):
    client = Connection(Options((b"SUB",), accepts=False))
    established(client, greeting + ready(b"PUB"))
    if name == "3.1":
        assert client.subscribe(b"a") == command(b"\x09SUBSCRIBEa")
        assert client.cancel(b"a") == command(b"\x06CANCELa")
        assert client.ping(1.5, b"c") == command(b"\x04PING\x00\x0fc")
    else:
        assert client.subscribe(b"a") == message(b"\x01a")
        assert client.cancel(b"a") == message(b"\x00a")
        assert client.ping() == b""


def test_events_in_front_of_an_error_are_returned_first_however_it_was_torn():
    octets = GREETING_31 + ready(b"DEALER") + message(b"a") * 3 + b"\x08\x00"
    for position in range(len(octets) - 1):
        server = Connection(ROUTER)
        found = received(server, octets[:position]) if position else []
        with pytest.raises(ProtocolError, match="flags"):
            for octet in (octets[position:], b"", b"", b""):
                found += server.receive(octet)
        messages = [one for event in found if isinstance(event, Messages) for one in event.messages]
        assert messages == [(b"a",)] * 3
        with pytest.raises(ProtocolError, match="flags"):
            server.receive(b"more")


# -- wrong peers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "cause"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "greeting"),
        (b"\x00\x00\x00\x23\x00\x12", "greeting"),
        (b"\x01\x00", "greeting"),  # ZMTP 1.0, a short identity
        (b"\xff" + bytes(8) + b"\x00", "greeting"),  # ZMTP 1.0, a long identity
        (SIGNATURE + b"\x00\x05", "greeting"),
        (SIGNATURE + b"\x01\x0b", "socket-type"),
        (SIGNATURE + b"\x01\x02", "socket-type"),  # a SUB
        (SIGNATURE + b"\x01\x05" + b"\x01\x00\x00\x00", "identity"),
        (SIGNATURE + b"\x01\x05" + b"\x02" + (256).to_bytes(8, "big"), "identity"),
        (SIGNATURE + b"\x01\x05" + b"\x04\x05\x04PING", "handshake"),
        (greeting_2(5) + b"\x04\x05\x04PING", "command"),
        (SIGNATURE + b"\x03\x01" + b"CURVE" + bytes(15) + b"\x00" + FILLER, "mechanism"),
        (SIGNATURE + b"\x03\x01" + b"PLAIN" + bytes(15) + b"\x01" + FILLER, "mechanism"),
        (SIGNATURE + b"\x03\x01" + bytes(20) + b"\x00" + FILLER, "mechanism"),
        (GREETING_31 + message(b"before READY"), "handshake"),
        (GREETING_31 + command(b"\x05HELLO"), "handshake"),
        (GREETING_31 + command(b"\x05READY"), "socket-type"),
        (GREETING_31 + command(b"\x05READY\x01X" + bytes(4)), "socket-type"),
        (GREETING_31 + command(b"\x05READY\x0bSocket"), "properties"),
        (GREETING_31 + ready(b"DEALER", bytes(256)), "identity"),
        (GREETING_31 + b"\x06" + (5000).to_bytes(8, "big"), "handshake-size"),
        (GREETING_31 + b"\x02" + (5000).to_bytes(8, "big"), "handshake-size"),
        (GREETING_31 + ready(b"DEALER") + b"\x02" + (1 << 21).to_bytes(8, "big"), "message-size"),
        (GREETING_31 + ready(b"DEALER") + b"\x06" + (5000).to_bytes(8, "big"), "command-size"),
        (GREETING_31 + ready(b"DEALER") + b"\x05\x00", "flags"),
        (GREETING_31 + ready(b"DEALER") + command(b""), "command"),
        (GREETING_31 + ready(b"DEALER") + command(b"\x05ERROR\x02no"), "refused"),
    ],
)
def test_wrong_peers_are_named(octets: bytes, cause: str):
    for pieces in ([octets], [octets[index : index + 1] for index in range(len(octets))]):
        server = Connection(ROUTER)
        with pytest.raises(ProtocolError) as error:
            for piece in pieces:
                received(server, piece)
        assert error.value.cause == cause


def test_octets_of_a_handshake_are_bounded():
    server = Connection(ROUTER)
    received(server, GREETING_31 + b"\x06" + limits.HANDSHAKE_OCTETS.to_bytes(8, "big"))
    received(server, bytes(limits.HANDSHAKE_OCTETS - 1))
    assert server.held <= limits.HANDSHAKE_OCTETS + 9


def test_mutated_octets_raise_nothing_but_protocol_errors():
    for name, (options, octets, _) in STREAMS.items():
        dice = random.Random(name)
        for _ in range(1500):
            wrong = bytearray(octets)
            for _ in range(dice.randrange(1, 5)):
                place = dice.randrange(len(wrong))
                action = dice.randrange(3)
                if action == 0:
                    wrong[place] = dice.randrange(256)
                elif action == 1:
                    del wrong[place : place + dice.randrange(1, 9)]
                else:
                    wrong[place:place] = dice.randbytes(dice.randrange(1, 9))
            connection = Connection(options)
            try:
                for begin in range(0, len(wrong), 37):
                    received(connection, bytes(wrong[begin : begin + 37]))
                    connection.take_output()
            except ProtocolError as error:
                assert error.cause


def test_frames_of_a_user_have_no_meaning_to_the_connection():
    server = Connection(ROUTER)
    established(server, GREETING_31 + ready(b"DEALER"))
    assert received(server, frame(b"\x04PING\x00\x00")) == [Messages([(b"\x04PING\x00\x00",)])]
    assert server.take_output() == b""


def test_octets_are_plain_between_two_messages_of_an_established_connection():
    connection = Connection(ROUTER)
    assert not connection.is_plain
    connection.receive(GREETING_31)
    assert not connection.is_plain
    connection.receive(ready(b"DEALER", b"me"))
    assert connection.is_plain
    parts = [
        message(b"two", b"frames"),
        message(b"x" * 300),
        message(b"y" * 70_000),
        command(b"\x04PING\x00\x64"),
    ]
    whole, ends = b"".join(parts), set(accumulate(map(len, parts)))
    begin_of_long = sum(map(len, parts[:2]))
    places = {*range(1, begin_of_long + 20), begin_of_long + 60_000, len(whole) - 3, *ends}
    at = 0
    for end in sorted(places):
        connection.receive(whole[at:end])
        assert connection.is_plain == (end in ends)
        at = end
    with pytest.raises(ProtocolError):
        connection.receive(b"\xff\x00")
    assert not connection.is_plain


def test_messages_that_are_not_taken_yet_keep_a_connection_from_being_plain():
    connection = Connection(ROUTER)
    connection.receive(GREETING_31 + ready(b"DEALER", b"me"))
    connection.receive(message(b"a") * 3, 1)
    assert connection.pending
    assert not connection.is_plain
    while connection.pending:
        connection.receive(b"", 1)
    assert connection.is_plain
