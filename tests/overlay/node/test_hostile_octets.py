"""Octets that nobody honest sends, over real TCP: answered with a code or not at all; others go on."""

from __future__ import annotations

import socket
import struct
from contextlib import closing

import pytest
from overlay.node.endpoints import until
from timing import SECONDS

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint, limits
from dafka.overlay.values import encode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.envelope import (
    COMMAND,
    DATA,
    ROUTING_UPDATE,
    Envelope,
    encode_envelope,
    ping,
    routing_update,
)
from dafka.overlay.wire.frames import frame
from dafka.overlay.wire.handshake import (
    Announcement,
    DropConn,
    Hello,
    OriginatorAck,
    OriginatorSyn,
    ResponderSynAck,
    VersionSelect,
    decode_handshake,
    encode_handshake,
)
from dafka.overlay.wire.primitives import NOBODY

ME = bytes(15) + b"\x01"  # smaller than the id of any endpoint
MANY = tuple(b"/%d" % number for number in range(100_000))
HELLO = encode_handshake(Hello(ME, 1, 1))
SELECT = encode_handshake(VersionSelect(ME, 1))


@pytest.fixture
def endpoint():
    with Endpoint(listen="127.0.0.1:0") as one:
        yield one


def connect(endpoint):
    host, _, port = endpoint.address.rpartition(":")
    return closing(socket.create_connection((host, int(port)), timeout=SECONDS))


def messages(connection):
    """What the endpoint says, until it closes the connection."""
    stream = connection.makefile("rb")
    while head := stream.read(4):
        yield stream.read(*struct.unpack(">I", head))


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (frame(b"\x06ZEEX" + ME + b"\x01\x01"), ErrorCode.WRONG_MAGIC_NUMBER),
        (encode_handshake(Hello(ME, 3, 9)), ErrorCode.PEER_INCOMPATIBLE),
        (
            encode_handshake(Hello(ME, 1, 1)) + encode_handshake(VersionSelect(ME, 7)),
            ErrorCode.PEER_INCOMPATIBLE,
        ),
        (frame(b"\xff"), ErrorCode.INVALID_MESSAGE),
        (frame(b"\x06ZE"), ErrorCode.INVALID_MESSAGE),
        (HELLO + SELECT + frame(b"\x0a\xff\xff\xff\xff\x0f"), ErrorCode.INVALID_MESSAGE),
        (HELLO + SELECT + encode_handshake(OriginatorSyn(Announcement(MANY))), ErrorCode.INVALID_MESSAGE),
        (b"\x00\x00\x00\x00", None),
        (struct.pack(">I", limits.HANDSHAKE_OCTETS + 1), None),
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (HELLO + encode_handshake(OriginatorAck()), None),
    ],
    ids=[
        "magic",
        "versions",
        "selected version",
        "type",
        "short hello",
        "filter that ends too early",
        "filter of 100 000 prefixes",
        "length 0",
        "length",
        "HTTP",
        "order",
    ],
)
def test_in_the_handshake_it_is_refused_by_code_or_the_connection_is_closed(endpoint, octets, code):
    with connect(endpoint) as connection:
        connection.sendall(octets)
        codes = [
            message.code
            for message in map(decode_handshake, messages(connection))
            if isinstance(message, DropConn)
        ]
        assert codes == ([] if code is None else [code])
    with Endpoint() as peer:
        assert peer.peer(endpoint.address, timeout=SECONDS)


def hostile_envelopes():
    deep = b"\x0e\x01" * 10_000 + b"\x00"
    twice = b"\x0c\x02\x02" + bytes(8) + b"\x02" + bytes(8)
    yield frame(b"\x00")
    yield frame(bytes(36))
    yield frame(ME + NOBODY + b"\xff\x00\x10\x00\x00")
    yield frame(ME + NOBODY + b"\x01\x00\x10\xff\xff/t")
    for topic in (b"/t", b"st/<$>/data/master", b"<$>/local/data/statuses", b""):
        for payload in (b"", deep, twice, b"\xff", b"\x0e\xff\xff\xff\xff\x0f", b"\x05\xff\xff\x7f"):
            yield encode_envelope(Envelope(DATA, ME, NOBODY, topic, payload))
            yield encode_envelope(Envelope(COMMAND, ME, NOBODY, topic, bytes(56) + b"\x00" + payload))
    yield encode_envelope(routing_update(ME, NOBODY, MANY))
    yield encode_envelope(Envelope(ROUTING_UPDATE, ME, NOBODY, b"<$>", b"\xff\xff\xff\xff\x0f"))
    yield encode_envelope(Envelope(DATA, NOBODY, NOBODY, b"/t", encode("claims to be ours")))


def test_a_large_message_that_is_not_a_value_is_not_passed_on(endpoint):
    with Endpoint(peers=[endpoint.address]) as other, connect(endpoint) as connection:
        there = other.subscribe("/t", capacity=10)
        assert endpoint.await_subscriber("/t", other.id, SECONDS)
        connection.sendall(HELLO + SELECT + encode_handshake(OriginatorSyn(Announcement((b"/none",)))))
        heard = messages(connection)
        while not isinstance(decode_handshake(next(heard)), ResponderSynAck):
            pass
        connection.sendall(encode_handshake(OriginatorAck()))
        assert other.await_peer(ME, SECONDS)
        until(lambda: get_hub().run(lambda: endpoint._carrier.role.core.gateway._speaks_for(ME)))
        large = encode("x" * 3_000_000)
        for payload in (large[:-1], large + b"\x00", large):
            connection.sendall(encode_envelope(Envelope(DATA, ME, NOBODY, b"/t", payload)))
        assert len(there.get(timeout=SECONDS).value) == 3_000_000
        assert endpoint._carrier.role.core.gateway.discarded == {"undecodable": 2}
        assert there.malformed == 0


def test_a_peer_of_version_1_that_sends_it_stays_a_peer_and_others_go_on(endpoint):
    endpoint.attach_master("st")
    with Endpoint(listen="127.0.0.1:0", peers=[endpoint.address]) as other, connect(endpoint) as connection:
        here, there = endpoint.subscribe("/t"), other.subscribe("/t")
        connection.sendall(HELLO + SELECT + encode_handshake(OriginatorSyn(Announcement((b"/t",)))))
        heard = messages(connection)
        while not isinstance(decode_handshake(next(heard)), ResponderSynAck):
            pass
        connection.sendall(encode_handshake(OriginatorAck()) + b"".join(hostile_envelopes()))
        connection.sendall(encode_envelope(ping(ME, endpoint.id, b"alive")))
        while not next(heard).endswith(b"alive"):
            pass
        assert other.await_subscriber("/t", endpoint.id, SECONDS)
        assert endpoint.await_subscriber("/t", other.id, SECONDS)
        other.publish("/t", "from the other")
        values = []
        while "from the other" not in values:
            values.append(here.get(timeout=SECONDS).value)
        endpoint.publish("/t", "from here")
        while there.get(timeout=SECONDS).value != "from here":
            pass
        while b"from here" not in next(heard):
            pass
        assert "claims to be ours" not in values
