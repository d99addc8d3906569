"""Connections of libbroker, replayed on sockets: an endpoint takes either part, and says the same octets."""

from __future__ import annotations

import socket
import ssl
import threading
import uuid
from collections.abc import Sequence
from contextlib import closing

import pytest
import trustme
from overlay.node.certificates import of_a_ca
from overlay.node.endpoints import WAIT, until
from overlay.peering.replay import PROBE
from overlay.peering.test_recorded_sessions import (
    CONNECTOR_FILTER,
    FAILURES,
    LARGE,
    LIBBROKER,
    LISTENER_FILTER,
    SMALL,
)
from overlay.vectors import Vector, named, native, session, vectors

from dafka.overlay import Endpoint
from dafka.overlay.peering.peerings import BYE
from dafka.overlay.values import decode
from dafka.overlay.wire.envelope import DATA, PING, decode_envelope, encode_envelope
from dafka.overlay.wire.handshake import (
    Announcement,
    Hello,
    OriginatorAck,
    OriginatorSyn,
    ResponderSynAck,
    VersionSelect,
    encode_handshake,
)
from dafka.overlay.wire.primitives import NOBODY
from dafka.protocol.errors import MalformedMessage
from dafka.security.contexts import of_peers

V1 = (1, 1)  # the highest version that libbroker's hello says
GOODBYE = 8  # octets at the end of a goodbye, which are anybody's choice


class Wire:
    """The other end of a connection of ``endpoint``: a plain socket, which connects or is connected to."""

    def __init__(self, endpoint: Endpoint, is_dialled: bool, contexts: Sequence[ssl.SSLContext] = ()) -> None:
        self._endpoint = endpoint
        self._goodbye: threading.Thread | None = None
        self._said = b""
        if is_dialled:
            with closing(socket.create_server(("127.0.0.1", 0))) as server:
                server.settimeout(WAIT)
                endpoint.peer_nosync(f"127.0.0.1:{server.getsockname()[1]}", retry=0)
                self._socket = server.accept()[0]
        else:
            host, port = endpoint.address.split(":")
            self._socket = socket.create_connection((host, int(port)))
        self._socket.settimeout(WAIT)
        if contexts:
            self._socket = contexts[is_dialled].wrap_socket(self._socket, server_side=is_dialled)

    def play(self, recording: list[Vector], ours: str) -> None:
        """``ours`` is what the direction of the endpoint's messages begins with."""
        for vector in recording:
            if not vector.octets:
                assert self.is_closed(), vector.name
            elif vector.direction.startswith(ours):
                self._cause(vector)
                self._said = self.read()
                assert self._without_choice(self._said) == self._without_choice(vector.octets), vector.name
            elif self._goodbye is not None and vector.octets[-GOODBYE - len(BYE) :].startswith(BYE):
                self._socket.sendall(vector.octets[:-GOODBYE] + self._said[-GOODBYE:])
            else:
                self._socket.sendall(vector.octets)

    def send(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def read(self) -> bytes:
        """The next message of the endpoint, with its length."""
        head = self._exactly(4)
        return head + self._exactly(int.from_bytes(head, "big"))

    def is_closed(self) -> bool:
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self._socket.close()
        if self._goodbye is not None:
            self._goodbye.join()

    def _cause(self, vector: Vector) -> None:
        """Have the endpoint do what the message of a program at libbroker came from."""
        try:
            envelope = decode_envelope(vector.message)
        except MalformedMessage:
            return
        if envelope.kind == PING and envelope.payload.startswith(BYE):
            peer = str(uuid.UUID(bytes=envelope.receiver))
            until(lambda: self._endpoint.peers())
            self._goodbye = threading.Thread(target=self._endpoint.unpeer, args=(peer,))
            self._goodbye.start()
        elif envelope.kind == DATA and envelope.receiver == NOBODY:
            topic = envelope.topic.decode()
            wanted = self._endpoint.filters
            until(lambda: any(topic.startswith(tuple(filter)) for filter in wanted().values()))
            self._endpoint.publish(topic, decode(envelope.payload))

    def _without_choice(self, octets: bytes) -> bytes:
        return octets if self._goodbye is None else octets[:-GOODBYE]

    def _exactly(self, size: int) -> bytes:
        return exactly(self._socket, size)


def exactly(wire: socket.socket, size: int) -> bytes:
    octets = b""
    while len(octets) < size:
        more = wire.recv(size - len(octets))
        assert more, "the endpoint has closed the connection"
        octets += more
    return octets


def endpoint_with(me: bytes, *prefixes: bytes) -> Endpoint:
    endpoint = Endpoint("127.0.0.1:0", id=me, versions=V1)
    endpoint.forward([prefix.decode() for prefix in prefixes])
    return endpoint


@pytest.mark.parametrize("smaller", ["connector", "listener"])
@pytest.mark.parametrize("part", ["connector", "listener"])
def test_handshakes_with_the_goodbye_of_the_connector(smaller, part):
    filter = CONNECTOR_FILTER if part == "connector" else LISTENER_FILTER
    begin = session(f"hs-{smaller}-has-smaller-id")
    end = session(f"hs-{smaller}-has-smaller-id-unpeer-by-connector")
    with endpoint_with(SMALL if smaller == part else LARGE, *filter) as endpoint:
        with closing(Wire(endpoint, is_dialled=part == "connector")) as wire:
            wire.play(begin, part)
            until(lambda: [one.status for one in endpoint.peers()] == ["peered"])
            wire.play(end, part)
            if part == "connector":
                assert wire.is_closed()
        until(lambda: not endpoint.peers())


@pytest.mark.parametrize(
    "name", ["py-connector-small-id", "py-connector-large-id", "py-listener-small-id", "py-listener-large-id"]
)
def test_sessions_with_data_filters_pings_and_a_goodbye(name):
    recording = session(name)
    theirs = [one for one in recording if one.direction.startswith("python") and one.name.endswith("-data")]
    with (
        endpoint_with(LIBBROKER) as endpoint,
        endpoint.subscribe("/py") as subscriber,
        closing(Wire(endpoint, is_dialled="listener" in name)) as wire,
    ):
        wire.play(recording, "libbroker")
        for envelope in (decode_envelope(one.message) for one in theirs):
            message = subscriber.get(timeout=WAIT)
            assert (message.topic.encode(), message.value) == (envelope.topic, decode(envelope.payload))


@pytest.mark.parametrize("name", FAILURES)
def test_handshakes_that_fail_as_they_do_with_libbroker(name):
    with endpoint_with(LIBBROKER, b"/py") as endpoint, closing(Wire(endpoint, is_dialled=False)) as wire:
        wire.play(session(name), "libbroker")


def test_all_values_come_and_go_as_they_were_recorded():
    """Every value that libbroker has published, in both directions over one connection."""
    envelopes = [decode_envelope(one.message) for one in native() if one.name.startswith("data-")]
    recorded = [envelope for envelope in envelopes if envelope.receiver == NOBODY]
    assert len(recorded) > 40
    with (
        endpoint_with(LIBBROKER) as endpoint,
        endpoint.subscribe("/test", capacity=1000) as subscriber,
        closing(Wire(endpoint, is_dialled=False)) as wire,
    ):
        become_a_peer_that_wants_everything(wire)
        for envelope in recorded:
            wire.send(encode_envelope(envelope._replace(sender=SMALL)))
        for envelope in recorded:
            message = subscriber.get(timeout=WAIT)
            assert message.topic.encode() == envelope.topic
            endpoint.publish(message.topic, message.value)
            assert wire.read() == encode_envelope(envelope._replace(sender=LIBBROKER))


@pytest.mark.parametrize("name", ["py-connector-small-id", "py-listener-large-id"])
@pytest.mark.parametrize("tls", ["anonymous", "certificates"])
def test_the_same_octets_within_tls(name, tls, tmp_path):
    files = None if tls == "anonymous" else of_a_ca(tmp_path, trustme.CA(), "one.example")
    with (
        Endpoint("127.0.0.1:0", id=LIBBROKER, versions=V1, tls=files or tls) as endpoint,
        endpoint.subscribe("/py"),
        closing(Wire(endpoint, is_dialled="listener" in name, contexts=of_peers(files))) as wire,
    ):
        wire.play(session(name), "libbroker")


def test_a_listener_answers_libbrokers_anonymous_hello_as_libbroker_does():
    """The recorded octets of the other end; random octets, and those that depend on them, are not
    compared."""
    with Endpoint("127.0.0.1:0", tls="anonymous") as endpoint, closing(plain(endpoint.address)) as wire:
        wire.sendall(named("tls-anonymous/c-0").octets)
        messages = read_handshake(wire, 3)
    recorded = [one.octets for one in vectors() if one.name.startswith("tls-anonymous/l-")][:3]
    assert [one[5] for one in recorded] == [one[0] for one in messages]
    assert server_hello(messages[0]) == server_hello(recorded[0][5:]) == (0x0303, ANONYMOUS)
    assert messages[1][4:7] == recorded[1][9:12] == b"\x03\x00\x18", "the curve is P-384"


def test_a_listener_answers_libbrokers_hello_with_certificates_as_libbroker_does(tmp_path):
    secured = of_a_ca(tmp_path, trustme.CA(), "one.example")
    with Endpoint("127.0.0.1:0", tls=secured) as endpoint, closing(plain(endpoint.address)) as wire:
        wire.sendall(named("tls-certificates/c-0").octets)
        (hello,) = read_handshake(wire, 1)
    assert server_hello(hello) == server_hello(named("tls-certificates/l-0").octets[5:])


def test_a_connector_goes_on_behind_libbrokers_anonymous_hello():
    with Endpoint(tls="anonymous") as endpoint, closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(WAIT)
        endpoint.peer_nosync(f"127.0.0.1:{server.getsockname()[1]}", retry=0)
        with closing(server.accept()[0]) as wire:
            wire.settimeout(WAIT)
            (hello,) = read_handshake(wire, 1)
            assert hello[0] == 1 and ANONYMOUS.to_bytes(2, "big") in hello
            for number in range(3):
                wire.sendall(named(f"tls-anonymous/l-{number}").octets)
            kind, key_exchange = read_record(wire)
            recorded = named("tls-anonymous/c-1").octets
            assert kind == 22 and key_exchange[:6] == recorded[5:11], "a point of P-384 follows"
            assert read_record(wire) == (20, named("tls-anonymous/c-2").octets[5:])
            assert read_record(wire)[0] == 22, "finished, encrypted"


ANONYMOUS = 0xC019
"""AECDH-AES256-SHA."""


def plain(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT)


def read_record(wire: socket.socket) -> tuple[int, bytes]:
    """The type and the content of a record of TLS."""
    head = exactly(wire, 5)
    return head[0], exactly(wire, int.from_bytes(head[3:], "big"))


def read_handshake(wire: socket.socket, count: int) -> list[bytes]:
    """The first messages of a handshake of TLS, however they are put into records."""
    messages: list[bytes] = []
    octets = b""
    while len(messages) < count:
        size = 4 + int.from_bytes(octets[1:4], "big")
        if len(octets) < 4 or len(octets) < size:
            octets += read_record(wire)[1]
            continue
        messages.append(octets[:size])
        octets = octets[size:]
    return messages


def server_hello(message: bytes) -> tuple[int, int]:
    """The version and the cipher that a server has chosen; of TLS 1.3 the cipher says it."""
    after = 39 + message[38]
    return int.from_bytes(message[4:6], "big"), int.from_bytes(message[after : after + 2], "big")


def become_a_peer_that_wants_everything(wire: Wire) -> None:
    wire.send(encode_handshake(Hello(SMALL, *V1)))
    assert [wire.read(), wire.read()] == [PROBE, encode_handshake(Hello(LIBBROKER, *V1))]
    wire.send(encode_handshake(VersionSelect(SMALL, 1)))
    wire.send(encode_handshake(OriginatorSyn(Announcement((b"",)))))
    assert wire.read() == encode_handshake(ResponderSynAck(Announcement((b"/test",))))
    wire.send(encode_handshake(OriginatorAck()))
