"""Both sides of a connection without a network: octets in, events and octets out, however they were torn."""

from __future__ import annotations

import struct
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from dafka.overlay.websocket import limits
from dafka.overlay.websocket.client_connection import ClientConnection, uri_of
from dafka.overlay.websocket.frames import Ended, Opened, Text, text_frame
from dafka.overlay.websocket.server_connection import ServerConnection

URL = "ws://127.0.0.1:9997/v1/messages/json"
REQUEST = (
    b"GET /v1/messages/json HTTP/1.1\r\n"
    b"Host: 127.0.0.1:9997\r\n"
    b"Upgrade: websocket\r\n"
    b"Connection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)
ANSWERED = pytest.mark.skipif(
    version("websockets").startswith("16."),
    reason="websockets 16, the last one for Python 3.10, closes without an answer to what it cannot read",
)
ACCEPTED = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # as libbroker answered to this key


def opened() -> ServerConnection:
    server = ServerConnection()
    assert server.receive(REQUEST + b"\r\n") == [Opened()]
    assert ACCEPTED in server.take_output()
    return server


def frame(opcode: Opcode, octets: bytes, fin: bool = True) -> bytes:
    return Frame(opcode, octets, fin).serialize(mask=True)


def closed_with(output: bytes) -> tuple[int, str]:
    """Code and reason of the close frame at the end of what a server sent."""
    begin = output.rindex(b"\x88")
    body = output[begin + 2 :]
    assert output[begin + 1] == len(body)
    return struct.unpack(">H", body[:2])[0], body[2:].decode()


# -- opening ----------------------------------------------------------------------------------------


def test_a_request_is_taken_in_pieces_and_what_follows_it_after_the_answer():
    server = ServerConnection()
    octets = REQUEST + b"\r\n" + frame(Opcode.TEXT, b'["/a"]')
    events = [event for index in range(len(octets)) for event in server.receive(octets[index : index + 1])]
    assert events == [Opened(), Text('["/a"]')]
    at_once = ServerConnection()
    assert at_once.receive(octets) == events
    assert at_once.take_output().startswith(b"HTTP/1.1 101 ")


def test_another_path_is_refused_as_libbroker_does():
    server = ServerConnection()
    (end,) = server.receive(REQUEST.replace(b"/v1/messages/json", b"/") + b"\r\n")
    assert isinstance(end, Ended)
    output = server.take_output()
    assert output.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Content-Length: 65\r\n" in output
    assert output.endswith(b'caf::sec::invalid_argument("invalid path; try /v1/messages/json")')


@pytest.mark.parametrize(
    ("request_octets", "status"),
    [
        (REQUEST.replace(b"Upgrade: websocket\r\n", b""), 426),
        pytest.param(REQUEST.replace(b"GET ", b"POST "), 405, marks=ANSWERED),
        (REQUEST.replace(b"Version: 13", b"Version: 8"), 400),
        (REQUEST.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"short"), 400),
        pytest.param(REQUEST + b"Cookie: " + b"x" * 9000 + b"\r\n", 431, marks=ANSWERED),
        pytest.param(REQUEST + b"A: b\r\n" * 200, 431, marks=ANSWERED),
        (REQUEST + b"x" * 20_000, 431),
    ],
    ids=["no upgrade", "post", "version", "key", "long line", "many lines", "long request"],
)
def test_a_request_that_opens_nothing_gets_an_http_status(request_octets, status):
    server = ServerConnection()
    (end,) = server.receive(request_octets + b"\r\n")
    assert isinstance(end, Ended)
    assert server.take_output().startswith(b"HTTP/1.1 %d " % status)
    assert not server.is_open
    assert server.receive(frame(Opcode.TEXT, b"[]")) == []


@pytest.mark.parametrize(
    "octets",
    [b"\x16\x03\x01\x02\x00\x01", b"SSH-2.0-x\r\n\r\n", b"\r\n\r\n", b"\0" * 20_000],
    ids=["tls", "ssh", "empty", "zeros"],
)
def test_anything_but_http_ends_the_connection(octets):
    server = ServerConnection()
    (end,) = server.receive(octets)
    assert isinstance(end, Ended)


def test_a_request_that_never_ends_takes_bounded_memory():
    server = ServerConnection()
    for _ in range(1000):
        server.receive(b"A: b\r\n" * 100)
        assert server.held <= limits.REQUEST_OCTETS + 600


def test_compression_is_not_accepted():
    server = ServerConnection()
    offer = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
    assert server.receive(REQUEST + offer + b"\r\n") == [Opened()]
    assert b"Extensions" not in server.take_output()
    compressed = bytearray(frame(Opcode.TEXT, b"x"))
    compressed[0] |= 0x40
    server.receive(bytes(compressed))
    assert closed_with(server.take_output()) == (1002, "reserved bits must be 0")


@pytest.mark.parametrize(
    ("origin", "host", "origins", "taken"),
    [
        (None, "127.0.0.1:9997", (), True),
        ("http://127.0.0.1:3000", "127.0.0.1:9997", (), True),
        ("http://localhost", "localhost:9997", (), True),
        ("http://[::1]:80", "[::1]:9997", (), True),
        ("https://evil.example", "127.0.0.1:9997", (), False),
        ("https://evil.example", "evil.example:9997", (), False),  # a name that points here for a moment
        ("https://good.example", "good.example", ("https://good.example",), True),
        ("https://evil.example", "127.0.0.1:9997", None, True),
        ("null", "127.0.0.1:9997", (), False),
        ("http://[", "127.0.0.1:9997", (), False),
    ],
)
def test_pages_of_strangers_may_not_connect(origin, host, origins, taken):
    server = ServerConnection(origins)
    request = REQUEST.replace(b"Host: 127.0.0.1:9997", b"Host: " + host.encode())
    more = b"" if origin is None else b"Origin: " + origin.encode() + b"\r\n"
    events = server.receive(request + more + b"\r\n")
    assert (events == [Opened()]) is taken
    assert server.take_output().startswith(b"HTTP/1.1 101" if taken else b"HTTP/1.1 403")


# -- messages ---------------------------------------------------------------------------------------


def test_fragments_are_joined_also_inside_of_characters_and_around_pings():
    text = "Grüße 🦆".encode()
    server = opened()
    octets = frame(Opcode.TEXT, text[:3], fin=False)
    octets += (
        frame(Opcode.PING, b"ping!") + frame(Opcode.CONT, text[3:9], fin=False) + frame(Opcode.CONT, text[9:])
    )
    assert server.receive(octets) == [Text("Grüße 🦆")]
    assert server.take_output() == b"\x8a\x05ping!"


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (frame(Opcode.BINARY, b"{}"), 1003),
        (frame(Opcode.TEXT, b"\xff"), 1007),
        (frame(Opcode.TEXT, b"\xed\xa0\x80"), 1007),
        (b"\x81\x02{}", 1002),  # not masked
        (b"\x83\x80mask", 1002),  # no such opcode
        (frame(Opcode.CONT, b"x"), 1002),
        (frame(Opcode.TEXT, b"x", fin=False) + frame(Opcode.TEXT, b"y"), 1002),
        (b"\x81\xff" + (2**63).to_bytes(8, "big"), 1009),
        (b"\x81\xff" + (1024 * 1024 + 1).to_bytes(8, "big"), 1009),
        (frame(Opcode.TEXT, bytes(1024 * 1024 - 1), fin=False) + frame(Opcode.CONT, b"xy"), 1009),
        (b"\x89\xfe\x00\x7emask" + bytes(126), 1002),  # a ping of 126 octets
        (b"\x88\x81mask\x00", 1002),
    ],
    ids=[
        "binary",
        "no utf-8",
        "half a surrogate pair",
        "no mask",
        "no opcode",
        "nothing to continue",
        "not continued",
        "endless",
        "too large",
        "too large together",
        "large ping",
        "short close",
    ],
)
def test_a_protocol_violation_closes_the_connection_with_its_code(octets, code):
    server = opened()
    (end,) = server.receive(octets)
    assert isinstance(end, Ended)
    assert closed_with(server.take_output())[0] == code
    assert server.receive(frame(Opcode.TEXT, b"{}")) == []


def test_a_message_in_fragments_without_end_takes_bounded_memory():
    server = opened()
    server.receive(frame(Opcode.TEXT, b"", fin=False))
    empty, some = frame(Opcode.CONT, b"", fin=False) * 1000, frame(Opcode.CONT, bytes(1000), fin=False)
    for _ in range(20):
        server.receive(empty)
    assert server.held == 0
    while server.is_open:
        server.receive(some)
        assert server.held <= limits.MESSAGE_OCTETS
    assert closed_with(server.take_output())[0] == 1009


def test_a_goodbye_is_answered():
    server = opened()
    assert server.receive(frame(Opcode.CLOSE, b"\x03\xe8done")) == [Ended(1000, "done")]
    assert server.take_output() == b"\x88\x06\x03\xe8done"
    assert opened().receive_eof()[0].code is None


def test_a_server_says_why_it_closes_in_as_much_as_a_close_frame_holds():
    server = opened()
    assert isinstance(server.fail(1013, "ä" * 100)[0], Ended)
    assert closed_with(server.take_output()) == (1013, "ä" * 60)
    assert server.fail(1013, "again") == []


# -- clients ----------------------------------------------------------------------------------------


def pair() -> tuple[ClientConnection, ServerConnection]:
    client, server = ClientConnection(URL), ServerConnection()
    assert server.receive(client.take_output()) == [Opened()]
    assert client.receive(server.take_output()) == [Opened()]
    return client, server


def test_a_client_and_a_server_talk():
    client, server = pair()
    client.send('["ä"]'.encode())
    assert server.receive(client.take_output()) == [Text('["ä"]')]
    assert client.receive(text_frame(b'{"a":1}')) == [Text('{"a":1}')]
    client.close()
    assert server.receive(client.take_output()) == [Ended(1000, "")]
    assert client.receive(server.take_output()) == [Ended(1000, "")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope", "HTTP 404 Not Found: nope"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP 200 OK"),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n",
            "did not receive a valid HTTP response: invalid HTTP status line: SSH-2.0-OpenSSH_9.2",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "invalid Sec-WebSocket-Accept header: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ),
    ],
    ids=["not found", "no upgrade", "ssh", "another key"],
)
def test_a_client_says_why_it_was_refused(answer, reason):
    client = ClientConnection(URL)
    assert client.receive(answer) == [Ended(None, reason)]
    assert not client.is_open
    assert client.receive_eof() == []


def test_a_server_that_goes_without_a_word_is_noticed():
    client, _ = pair()
    (end,) = client.receive_eof()
    assert end.code is None
    assert ClientConnection(URL).receive_eof()[0].code is None


@pytest.mark.parametrize("url", ["http://x", "127.0.0.1:9997", "ws://", "ws://h#f", "ws://h:99999"])
def test_anything_but_a_url_is_refused(url):
    with pytest.raises(ValueError, match=r"is not the address of a WebSocket server"):
        uri_of(url)


# -- fuzzing ----------------------------------------------------------------------------------------

pieces = st.one_of(
    st.binary(max_size=30),
    st.builds(
        frame,
        st.sampled_from([Opcode.TEXT, Opcode.CONT, Opcode.PING, Opcode.PONG]),
        st.binary(max_size=20),
        st.just(True),
    ),
    st.builds(lambda octets: frame(Opcode.TEXT, octets, fin=False), st.binary(max_size=20)),
    st.just(b'\x81\x84\0\0\0\0["a]'),
)


def outcome(events):
    """The messages, and whether the connection has ended: which of two mistakes is named may differ."""
    return [event for event in events if isinstance(event, Text)], any(
        isinstance(one, Ended) for one in events
    )


@settings(max_examples=60)
@given(st.lists(pieces, max_size=8).map(b"".join), st.data())
def test_however_octets_are_torn_the_same_comes_of_them_and_nothing_is_raised(octets, data):
    whole, torn = opened(), opened()
    expected = whole.receive(octets)
    events = []
    position = 0
    while position < len(octets):
        step = data.draw(st.integers(1, 9))
        events += torn.receive(octets[position : position + step])
        position += step
    assert outcome(events) == outcome(expected)
    assert outcome(events + torn.receive_eof()) == outcome(expected + whole.receive_eof())


@settings(max_examples=60)
@given(st.lists(st.one_of(pieces, st.just(REQUEST), st.just(b"\r\n")), max_size=6).map(b"".join))
def test_no_request_and_no_answer_raises(octets):
    server, client = ServerConnection(), ClientConnection(URL)
    for connection in (server, client):
        connection.receive(octets)
        connection.take_output()
        connection.receive_eof()
        connection.take_output()
