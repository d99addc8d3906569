"""TLS between endpoints, as libbroker has it: anonymous, or with certificates that one CA has signed."""

from __future__ import annotations

import contextlib
import socket
import ssl

import pytest
import trustme
from overlay.node.certificates import locked, of_a_ca

from dafka.overlay import Endpoint, ErrorCode, Tls, TlsError

WAIT = 20  # seconds, for what takes milliseconds


@pytest.fixture
def make():
    with contextlib.ExitStack() as made:
        yield lambda *args, **named: made.enter_context(Endpoint(*args, **named))


@pytest.fixture(scope="module")
def ca():
    return trustme.CA()


def peered(make, here: Tls | None, there: Tls | None) -> bool:
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
    assert peered(make, Tls(), Tls())


def test_certificates_of_one_ca(make, ca, tmp_path):
    one, other = of_a_ca(tmp_path, ca, "one.example"), of_a_ca(tmp_path, ca, "other.example")
    assert peered(make, one, other)
    assert peered(make, locked(one), other)


def test_a_folder_of_cas_does_as_well(make, ca, tmp_path):
    one = of_a_ca(tmp_path, ca, "one.example")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not peered(make, one, one._replace(cafile="", capath=str(empty)))


def test_who_cannot_be_trusted_is_refused(make, ca, tmp_path):
    known = of_a_ca(tmp_path, ca, "known.example")
    stranger = of_a_ca(tmp_path, trustme.CA(), "stranger.example")
    for here, there in ((known, stranger), (known, Tls()), (known, None), (Tls(), None)):
        assert not peered(make, here, there)
        assert not peered(make, there, here)


def test_an_attempt_that_is_refused_is_an_error(make, ca, tmp_path):
    listener, connector = make("127.0.0.1:0", tls=of_a_ca(tmp_path, ca, "one.example")), make(tls=Tls())
    errors = connector.statuses(statuses=False)
    assert not connector.peer(listener.address, retry=0, timeout=WAIT)
    assert errors.get(timeout=WAIT).code is ErrorCode.PEER_UNAVAILABLE


def test_large_messages_and_many(make):
    listener, connector = make("127.0.0.1:0", tls=Tls()), make(tls=Tls())
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


def test_who_says_nothing_holds_up_nobody(make):
    listener, connector = make("127.0.0.1:0", tls=Tls()), make(tls=Tls())
    host, _, port = listener.address.rpartition(":")
    with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))) as garbage:
        garbage.sendall(b"\x00" * 100)
        assert connector.peer(listener.address, timeout=WAIT)


def test_it_is_the_tls_that_a_plain_client_of_libbrokers_settings_speaks(make):
    listener = make("127.0.0.1:0", tls=Tls())
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
        {"passphrase": "wrong"},
        {"passphrase": ""},
        {"certificate": ""},
        {"cafile": ""},
        {"cafile": "missing.pem"},
        {"certificate": "missing.pem"},
    ],
)
def test_files_that_cannot_be_used_are_refused(ca, tmp_path, change: dict):
    usable = locked(of_a_ca(tmp_path, ca, "one.example"))
    with pytest.raises(TlsError, match=r"certificate"):
        Endpoint(tls=usable._replace(**change))
