"""Greetings and handshakes, against octets written from the specifications and against each other."""

from __future__ import annotations

import pytest
from zmtp.sides import DEALER, ROUTER, established, received, talk
from zmtp.vectors import (
    FILLER,
    GREETING_30,
    GREETING_31,
    NULL,
    READY_DEALER,
    READY_ROUTER,
    SIGNATURE,
    command,
    greeting_2,
    message,
    ready,
)

from dafka.zmtp.connection import (
    Connection,
    Established,
    Messages,
    Options,
)
from dafka.zmtp.encoding import encode
from dafka.zmtp.errors import ProtocolError, RefusedError
from dafka.zmtp.mechanisms import PlainClient, PlainServer


def test_a_server_answers_a_client_of_3_1_as_in_the_worked_example():
    server = Connection(ROUTER)
    assert server.take_output() == b"\xff" + bytes(7) + b"\x01\x7f"
    assert received(server, SIGNATURE + b"\x03") == []
    assert server.take_output() == b"\x03\x01" + NULL + b"\x00" + FILLER
    assert received(server, b"\x01" + NULL + b"\x00" + FILLER) == []
    assert server.take_output() == b""
    events = received(server, READY_DEALER)
    properties = {b"socket-type": b"DEALER", b"identity": b""}
    assert events == [Established(b"DEALER", b"ROUTER", b"", (3, 1), properties)]
    assert server.take_output() == READY_ROUTER[:1] + b"\x29" + READY_ROUTER[2:] + b"\x08Identity" + bytes(4)


def test_a_client_speaks_first_and_tells_its_identity():
    client = Connection(DEALER)
    assert client.take_output() == b"\xff" + bytes(7) + b"\x03\x7f" + b"\x03"
    received(client, GREETING_31)
    assert client.take_output() == b"\x01" + NULL + b"\x00" + FILLER + ready(b"DEALER", b"me")
    assert client.established is None
    assert received(client, READY_ROUTER) == [
        Established(b"ROUTER", b"DEALER", b"", (3, 1), {b"socket-type": b"ROUTER"})
    ]


@pytest.mark.parametrize(
    ("greeting", "version"),
    [
        (GREETING_30, (3, 0)),
        (GREETING_31, (3, 1)),
        (SIGNATURE + b"\x03\x07" + NULL + b"\x00" + FILLER, (3, 1)),
        (SIGNATURE + b"\x04\x00" + NULL + b"\x00" + FILLER, (3, 1)),  # higher versions are accepted
        (b"\xff" + b"padding!" + b"\x7f\x03\x01" + NULL + b"\x01" + bytes(range(31)), (3, 1)),
    ],
)
def test_versions_and_what_has_no_significance(greeting: bytes, version: tuple[int, int]):
    assert established(Connection(ROUTER), greeting + ready(b"DEALER", b"x")).version == version
    assert established(Connection(DEALER), greeting + ready(b"ROUTER")).version == version


def test_a_server_speaks_2_0_with_a_peer_of_2_0():
    server = Connection(ROUTER)
    events = received(server, greeting_2(5, b"me") + message(b"a", b"b"))
    assert events == [Established(b"DEALER", b"ROUTER", b"me", (2, 0), {}), Messages([(b"a", b"b")])]
    assert server.take_output() == b"\xff" + bytes(7) + b"\x01\x7f" + b"\x01" + b"\x06" + b"\x00\x00"


def test_a_client_speaks_2_0_with_a_peer_of_2_0():
    client = Connection(DEALER)
    client.take_output()
    assert received(client, SIGNATURE + b"\x01") == []
    assert client.take_output() == b"\x05"  # it does not wait for the other side's type
    assert received(client, b"\x06") == []
    assert client.take_output() == b"\x00\x02me"
    assert received(client, b"\x00\x00") == [Established(b"ROUTER", b"DEALER", b"", (2, 0), {})]


NAMED = (
    b"\xff" + (5).to_bytes(8, "big") + b"\x7f"
)  # as libzmq opens a connection with an identity of 4 octets


def test_2_0_is_preferred_with_a_peer_that_waits_and_has_an_identity():
    server = Connection(Options((b"ROUTER", b"PULL"), accepts=True, prefer_2=True))
    server.take_output()
    received(server, NAMED)
    received(server, b"\x03")
    assert server.take_output() == b"\x01"
    received(server, b"\x08")
    assert server.take_output() == b"\x07\x00\x00"  # PULL, to a PUSH
    assert received(server, b"\x00\x04name") == [Established(b"PUSH", b"PULL", b"name", (2, 0), {})]


@pytest.mark.parametrize(
    "pieces",
    [
        [NAMED + b"\x03\x01"],  # it does not wait
        [NAMED + GREETING_31[10:]],
        [b"\xff" + (1).to_bytes(8, "big") + b"\x7f\x03"],  # it has no identity
        [SIGNATURE + b"\x03"],
        [b"\xff" + (1000).to_bytes(8, "big") + b"\x7f\x03"],  # padding without a meaning
    ],
)
def test_otherwise_3_x_is_spoken(pieces: list[bytes]):
    server = Connection(Options((b"ROUTER",), accepts=True, prefer_2=True))
    server.take_output()
    for piece in pieces:
        received(server, piece)
    assert server.take_output()[:2] == b"\x03\x01"


def test_2_0_is_not_preferred_where_it_would_lower_security():
    options = Options(
        (b"ROUTER",), accepts=True, prefer_2=True, mechanism=lambda check: PlainServer(check, lambda *_: True)
    )
    server = Connection(options)
    server.take_output()
    received(server, NAMED + b"\x03")
    assert server.take_output()[:2] == b"\x03\x01"
    with pytest.raises(ProtocolError, match="downgrade"):
        received(Connection(options), greeting_2(5))


@pytest.mark.parametrize("prefer_2", [False, True])
@pytest.mark.parametrize("identity", [b"", b"me", b"\0" * 255])
def test_both_sides_of_ours_understand_each_other(prefer_2: bool, identity: bytes):
    client = Connection(Options((b"DEALER",), accepts=False, identity=identity))
    server = Connection(Options((b"ROUTER",), accepts=True, prefer_2=prefer_2))
    to_client, to_server = talk(client, server)
    expected = (2, 0) if prefer_2 and identity else (3, 1)
    assert [(one.identity, one.version) for one in to_server if isinstance(one, Established)] == [
        (identity, expected)
    ]
    assert [one.socket_type for one in to_client if isinstance(one, Established)] == [b"ROUTER"]


@pytest.mark.parametrize(
    ("theirs", "shown"),
    [
        (b"DEALER", b"ROUTER"),
        (b"REQ", b"ROUTER"),
        (b"ROUTER", b"ROUTER"),
        (b"PUSH", b"PULL"),
        (b"PULL", b"PUSH"),
    ],
)
def test_a_server_shows_each_peer_a_type_that_it_talks_to(theirs: bytes, shown: bytes):
    server = Connection(ROUTER)
    assert established(server, GREETING_31 + ready(theirs)).shown_type == shown


@pytest.mark.parametrize(
    "theirs", [b"SUB", b"XSUB", b"PUB", b"XPUB", b"REP", b"PAIR", b"", b"NONSENSE", b"\xff" * 200]
)
def test_other_types_are_refused_with_an_error_command(theirs: bytes):
    server = Connection(ROUTER)
    received(server, GREETING_31)
    server.take_output()
    with pytest.raises(ProtocolError) as error:
        received(server, ready(theirs))
    assert error.value.cause == "socket-type"
    assert server.take_output()[2:8] == b"\x05ERROR"


def test_a_client_is_told_why_it_is_refused():
    client = Connection(DEALER)
    with pytest.raises(RefusedError, match="go away"):
        received(client, GREETING_31 + command(b"\x05ERROR\x07go away"))


# -- PLAIN --------------------------------------------------------------------------------------


def plain(password: bytes) -> tuple[Connection, Connection]:
    client = Options(
        (b"DEALER",),
        accepts=False,
        identity=b"me",
        mechanism=lambda check: PlainClient(check, b"user", password),
    )
    server = Options(
        (b"ROUTER",),
        accepts=True,
        mechanism=lambda check: PlainServer(check, lambda *given: given == (b"user", b"secret")),
    )
    return Connection(client), Connection(server)


def test_plain_lets_in_clients_with_the_password():
    client, server = plain(b"secret")
    to_client, to_server = talk(client, server)
    assert [type(event) for event in to_client + to_server] == [Established, Established]
    assert server.established is not None
    assert server.established.identity == b"me"
    assert received(server, b"".join(encode([b"a"]))) == [Messages([(b"a",)])]


def test_plain_refuses_others():
    client, server = plain(b"guess")
    with pytest.raises(ProtocolError) as error:
        talk(client, server)
    assert error.value.cause == "password"
    with pytest.raises(RefusedError):
        received(client, server.take_output())


def test_plain_is_as_the_specification_writes_it():
    client, server = plain(b"secret")
    client.take_output(), server.take_output()
    greeting = SIGNATURE + b"\x03\x01" + b"PLAIN" + bytes(15)
    received(client, greeting + b"\x01" + FILLER)
    assert client.take_output()[-20:] == command(b"\x05HELLO\x04user\x06secret")[-20:]
    received(server, greeting + b"\x00" + FILLER)
    server.take_output()
    received(server, command(b"\x05HELLO\x04user\x06secret"))
    assert server.take_output() == command(b"\x07WELCOME")
    for wrong in (b"", b"\x04use", b"\x04user\x06secre", b"\x04user\x06secretx"):
        _, server = plain(b"")
        with pytest.raises(ProtocolError, match="handshake"):
            received(server, greeting + b"\x00" + FILLER + command(b"\x05HELLO" + wrong))
