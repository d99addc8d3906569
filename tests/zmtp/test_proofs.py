"""A server proves a key of its own: to this client, in this connection, and nowhere else."""

from __future__ import annotations

import pytest
import zmq
from zmq.utils import z85

from dafka.zmtp.connection import Connection, Options
from dafka.zmtp.curve import CurveClient, CurveServer, Pair
from dafka.zmtp.errors import ProtocolError
from dafka.zmtp.mechanisms import Check
from dafka.zmtp.proofs import PROPERTY, Between, proof_of, proven_by


def pair() -> Pair:
    public, secret = zmq.curve_keypair()
    return Pair(z85.decode(public), z85.decode(secret))


SHARED, NODE, OTHER, CLIENT, STRANGER = (pair() for _ in range(5))


def connect(
    proves: Pair | None, known: tuple[bytes, ...], own: Pair = CLIENT, told: dict[bytes, bytes] | None = None
) -> tuple[Connection, Connection]:
    """A client and a server that have talked until both are silent; ``told``: metadata instead of a proof."""

    def make_server(check: Check) -> CurveServer:
        return CurveServer(
            lambda peer: {**check(peer), **(told or {})}, SHARED, lambda key: key == own.public, proves
        )

    def make_client(check: Check) -> CurveClient:
        return CurveClient(check, SHARED.public, own, known.__contains__)

    server = Connection(Options((b"XPUB",), accepts=True, mechanism=make_server))
    client = Connection(Options((b"SUB",), accepts=False, mechanism=make_client))
    while True:
        forth, back = client.take_output(), server.take_output()
        if not forth and not back:
            return client, server
        if forth:
            server.receive(forth)
        if back:
            client.receive(back)


def test_the_client_learns_the_key_that_the_server_proves():
    client, server = connect(NODE, (NODE.public,))
    assert client.established is not None and client.established.key == NODE.public
    assert server.established is not None and server.established.key == CLIENT.public
    assert client.is_welcome


def test_a_server_whose_key_is_not_known_is_left():
    with pytest.raises(ProtocolError, match="is not on the list"):
        connect(NODE, (OTHER.public,))


def test_a_server_that_proves_no_key_is_left_unless_such_are_known():
    with pytest.raises(ProtocolError, match="a node that proves no key is not on the list"):
        connect(None, (NODE.public,))
    client, _ = connect(None, (b"",))
    assert client.established is not None and client.established.key == b""


def test_a_proof_of_another_connection_is_refused():
    between = Between(CLIENT.public, pair().public, pair().public)
    with pytest.raises(ProtocolError, match="a node that proves no key"):
        connect(None, (NODE.public,), told={PROPERTY: proof_of(*NODE, between)})


def test_a_key_without_its_secret_is_not_proven():
    between = Between(CLIENT.public, pair().public, pair().public)
    assert proven_by(proof_of(*NODE, between), CLIENT.secret, between) == NODE.public
    assert proven_by(proof_of(NODE.public, OTHER.secret, between), CLIENT.secret, between) == b""


@pytest.mark.parametrize("field", Between._fields)
def test_a_proof_is_for_one_client_and_one_connection(field: str):
    between = Between(CLIENT.public, pair().public, pair().public)
    other = between._replace(**{field: pair().public})
    assert proven_by(proof_of(*NODE, other), CLIENT.secret, between) == b""
    assert proven_by(proof_of(*NODE, between), STRANGER.secret, between) == b""


@pytest.mark.parametrize("value", [b"", b"x", bytes(64), b"\1" + bytes(63), bytes(65), b"\xff" * 64])
def test_octets_that_are_not_a_proof_prove_nothing(value: bytes):
    assert proven_by(value, CLIENT.secret, Between(CLIENT.public, pair().public, pair().public)) == b""


def test_a_client_of_libzmqs_takes_no_notice_of_it():
    """It gets a READY with a property that it does not know."""
    client, _ = connect(NODE, (NODE.public,))
    assert client.established is not None
    assert client.established.properties.keys() == {b"socket-type", PROPERTY.lower()}
