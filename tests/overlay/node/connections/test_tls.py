"""TLS between endpoints, as libbroker has it: anonymous, or with certificates that one CA has signed."""

from __future__ import annotations

import contextlib
import socket
import ssl
from dataclasses import replace

import pytest
import trustme
from overlay.node.certificates import locked, of_a_ca

from dafka.overlay import Endpoint, ErrorCode, InsecureAddress, TlsError
from dafka.overlay.node.connections.tls import Secured

WAIT = 100  # seconds, for what takes milliseconds


@pytest.fixture
def make():
    with contextlib.ExitStack() as made:
        yield lambda *args, **named: made.enter_context(Endpoint(*args, **named))


@pytest.fixture(scope="module")
def ca():
    return trustme.CA()


def peered(make, here: Secured, there: Secured) -> bool:
    """Whether one can be peer of the other, in both directions; messages pass."""
    listener, connector = make("127.0.0.1:0", tls=here), make(tls=there)
    subscribers = [listener.subscribe("/t"), connector.subscribe("/t")]
    if not connector.peer(listener.address, retry=0, timeout=WAIT):
        assert connector.peers() == listener.peers() == []
        return False
    assert listener.await_peer(connector.id, timeout=WAIT)
    connector.publish("/t", "ping")
    assert subscribers[0].get(timeout=WAIT).value == "ping"
    listener.publish("/t", "pong")
    assert subscribers[1].get(timeout=WAIT).value == "pong"
    return True


def test_without_certificates_it_is_anonymous(make):
    assert peered(make, "anonymous", "anonymous")


def test_certificates_of_one_ca(make, ca, tmp_path):
    one, other = of_a_ca(tmp_path, ca, "one.example"), of_a_ca(tmp_path, ca, "other.example")
    assert peered(make, one, other)
    assert peered(make, locked(one), other)


def test_a_folder_of_cas_does_as_well(make, ca, tmp_path):
    one = of_a_ca(tmp_path, ca, "one.example")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not peered(make, one, replace(one, cafile=None, capath=str(empty)))


def test_a_peer_that_cannot_be_trusted_is_refused(make, ca, tmp_path):
    known = of_a_ca(tmp_path, ca, "known.example")
    stranger = of_a_ca(tmp_path, trustme.CA(), "stranger.example")
    for here, there in ((known, stranger), (known, "anonymous"), (known, None), ("anonymous", None)):
        assert not peered(make, here, there)
        assert not peered(make, there, here)


def test_an_attempt_that_is_refused_is_an_error(make, ca, tmp_path):
    listener, connector = make("127.0.0.1:0", tls=of_a_ca(tmp_path, ca, "one.example")), make(tls="anonymous")
    errors = connector.statuses(statuses=False)
    assert not connector.peer(listener.address, retry=0, timeout=WAIT)
    assert errors.get(timeout=WAIT).code is ErrorCode.PEER_UNAVAILABLE


def test_large_messages_and_many(make):
    listener, connector = make("127.0.0.1:0", tls="anonymous"), make(tls="anonymous")
    subscriber = listener.subscribe("/t")
    assert connector.peer(listener.address, timeout=WAIT)
    assert listener.await_peer(connector.id, timeout=WAIT)
    large = "x" * 3_000_000
    for number in range(2000):
        connector.publish("/t", number)
    connector.publish("/t", large)
    connector.publish("/t", "last")
    values = [subscriber.get(timeout=WAIT).value for _ in range(2002)]
    assert values == [*range(2000), large, "last"]


def test_a_silent_peer_holds_up_nobody(make):
    listener, connector = make("127.0.0.1:0", tls="anonymous"), make(tls="anonymous")
    host, _, port = listener.address.rpartition(":")
    with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as garbage:
        garbage.sendall(b"\x00" * 100)
        assert connector.peer(listener.address, timeout=WAIT)


def test_it_is_the_tls_that_a_plain_client_of_libbrokers_settings_speaks(make):
    listener = make("127.0.0.1:0", tls="anonymous")
    host, _, port = listener.address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("AECDH-AES256-SHA@SECLEVEL=0")
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain) as secured:
        assert secured.version() == "TLSv1.2"
        assert secured.cipher()[0] == "AECDH-AES256-SHA"
        probe = secured.recv(9)
        assert probe[4:] == b"\x07ZEEK"


@pytest.mark.parametrize(
    "change",
    [
        {"password": "wrong"},
        {"password": None},
        {"certfile": ""},
        {"cafile": None},
        {"cafile": "missing.pem"},
        {"certfile": "missing.pem"},
        {"capath": "missing"},
    ],
)
def test_files_that_cannot_be_used_are_refused(ca, tmp_path, change: dict):
    usable = locked(of_a_ca(tmp_path, ca, "one.example"))
    with pytest.raises(TlsError, match=r"certificate|cafile|certfile|capath"):
        Endpoint(tls=replace(usable, **change))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "[::]", "sensor", ""])
def test_other_machines_need_a_word_about_tls(make, host: str):
    silent = make()
    for call in (silent.listen, silent.peer, silent.peer_nosync, silent.listen_websocket):
        with pytest.raises(InsecureAddress, match="loopback"):
            call(f"{host}:0")
    assert silent.peers() == []
    with pytest.raises(InsecureAddress):
        Endpoint(f"{host}:0")


@pytest.mark.parametrize("tls", ["plain", "anonymous"])
def test_with_it_they_may_be_anywhere(make, tls: Secured):
    listener, connector = make("0.0.0.0:0", tls=tls), make(tls=tls)
    port = listener.address.rpartition(":")[2]
    assert connector.peer(f"127.0.0.1:{port}", timeout=WAIT)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost"])
def test_within_this_machine_they_are_plain_if_nothing_is_said(make, host: str):
    listener = make(f"{host}:0")
    assert make(tls="plain").peer(listener.address, timeout=WAIT)


def test_tls_is_one_of_these():
    with pytest.raises(ValueError, match="anonymous"):
        Endpoint(tls="encrypted")  # type: ignore[arg-type]
