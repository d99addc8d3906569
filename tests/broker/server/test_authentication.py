"""SASL at a listener: real clients of three libraries, wrong passwords, sessions that end, and strangers."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import random
import socket
import ssl
import time
from contextlib import ExitStack, suppress

import pytest
from aiokafka import AIOKafkaProducer
from broker.server.client import WireClient
from broker.users import add
from confluent_kafka import Producer as ConfluentProducer
from descriptors import descriptors
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import IllegalSaslStateError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from security.certificates import Authority
from security.sasl.keys import Signer

from compat.kafka import KafkaProducer as Facade
from dafka import Broker
from dafka.security import OAuthTokens, SaslError, ServerSasl, ServerTls

LISTEN = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class At:
    """Where a wire client connects."""

    def __init__(self, address: str) -> None:
        self.bootstrap_servers = address


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def signer(tmp_path_factory) -> Signer:
    return Signer(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def broker(authority, signer):
    sasl = ServerSasl(
        mechanisms=(*PASSWORDS, "OAUTHBEARER"),
        failure_delay=0.01,
        tokens=OAuthTokens(jwks=signer.jwks, audience=("kafka",)),
    )
    tls = ServerTls(**authority.sign("server")._asdict())
    with Broker(listen=LISTEN, tls=tls, sasl=sasl) as broker:
        add(broker, "alice", "right")
        yield broker


@pytest.fixture
def stranger(broker):
    with WireClient(At(broker.listeners["SASL_PLAINTEXT"])) as client:
        yield client


def options(
    broker: Broker, authority: Authority, mechanism: str, password: str = "right", user="alice"
) -> dict:
    return {
        "bootstrap_servers": broker.listeners["SASL_SSL"],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": authority.cafile,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("library", [KafkaProducer, Facade])
@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_kafka_python_and_the_facade_log_in(broker, authority, mechanism, library, monkeypatch):
    monkeypatch.setattr("dafka.broker.running.at", lambda _: None)  # the facade shall use TCP
    monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
    producer = library(**options(broker, authority, mechanism))
    try:
        assert producer.send("python", b"one").get(100).offset >= 0
    finally:
        producer.close()


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_librdkafka_logs_in(broker, authority, mechanism):
    producer = ConfluentProducer(
        {
            "bootstrap.servers": broker.listeners["SASL_SSL"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": authority.cafile,
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": "right",
        }
    )
    errors = []
    producer.produce("confluent", b"one", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(100) == 0
    assert errors == [None]


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_aiokafka_logs_in(broker, mechanism):
    async def write() -> int:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.listeners["SASL_PLAINTEXT"],
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password="right",
        ) as producer:
            return (await producer.send_and_wait("aiokafka", b"one")).offset

    assert asyncio.run(write()) >= 0


class Tokens(AbstractTokenProvider):
    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)

    def token(self) -> str:
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]


def test_tokens_log_in(broker, authority, signer):
    token = signer.token(aud="kafka")
    one = {**options(broker, authority, "OAUTHBEARER"), "sasl_oauth_token_provider": Tokens(token)}
    producer = KafkaProducer(**one)
    try:
        assert producer.send("token", b"one").get(100).offset == 0
    finally:
        producer.close()
    confluent = ConfluentProducer(
        {
            "bootstrap.servers": broker.listeners["SASL_SSL"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": authority.cafile,
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 300),
        }
    )
    errors = []
    confluent.produce("token", b"two", on_delivery=lambda error, _: errors.append(error))
    assert confluent.flush(100) == 0
    assert errors == [None]


def log_in(client: WireClient, mechanism: str, *messages: bytes, version: int = 2):
    """The answers to these messages; SCRAM takes a client instead."""
    assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    return [client.ask(SaslAuthenticateRequest(auth_bytes=one), version) for one in messages][-1]


@pytest.mark.parametrize("message", [b"\0alice\0wrong", b"\0nobody\0right", b"\0alice\0", b"rubbish"])
def test_all_wrong_logins_get_the_same_answer_and_are_disconnected(stranger, caplog, message):
    caplog.set_level(logging.DEBUG)
    answer = log_in(stranger, "PLAIN", message)
    assert answer.error_code == SaslAuthenticationFailedError.errno
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert stranger.is_closed()
    assert any(one.name == "dafka.audit" and "PLAIN failed" in one.message for one in caplog.records)
    assert "wrong" not in caplog.text and "rubbish" not in caplog.text


@pytest.mark.parametrize(("seconds", "audience"), [(300, "x"), (-10, "kafka")], ids=["other", "over"])
def test_a_token_for_somebody_else_or_one_that_is_over_is_refused(stranger, signer, seconds, audience):
    token = signer.token(seconds, aud=audience)
    answer = log_in(stranger, "OAUTHBEARER", f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
    answer = stranger.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
    assert answer.error_code == SaslAuthenticationFailedError.errno
    assert stranger.is_closed()


def test_an_unknown_mechanism_is_told_the_known_ones(stranger):
    answer = stranger.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert answer.error_code == UnsupportedSaslMechanismError.errno
    assert tuple(answer.mechanisms) == (*PASSWORDS, "OAUTHBEARER")
    assert stranger.is_closed()


def test_nothing_else_is_answered_before(stranger):
    stranger.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    with suppress(EOFError, ConnectionResetError):
        stranger.ask(MetadataRequest(topics=None), 1)
        pytest.fail("a stranger was answered")
    assert stranger.is_closed()


def test_another_request_within_a_login_is_an_error_and_the_end(stranger):
    assert stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    answer = stranger.ask(MetadataRequest(topics=None), 13)
    assert (answer.error_code, answer.brokers) == (IllegalSaslStateError.errno, [])
    assert stranger.is_closed()


def test_the_versions_are_told_once(stranger):
    versions = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert stranger.ask(versions, 3).error_code == 0
    with suppress(EOFError, ConnectionResetError):
        stranger.ask(versions, 3)
        pytest.fail("a second answer")
    assert stranger.is_closed()


def test_a_session_is_not_renewed_by_another_mechanism(renewing):
    with WireClient(At(renewing.listeners["SASL_PLAINTEXT"])) as client:
        log_in(client, "PLAIN", b"\0alice\0right")
        assert client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
        with suppress(EOFError, ConnectionResetError):
            client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abcdefghijkl"), 2)
            pytest.fail("it was answered")
        assert client.is_closed()


def test_a_session_may_be_renewed_without_headers(renewing):
    with WireClient(At(renewing.listeners["SASL_PLAINTEXT"])) as client:
        log_in(client, "PLAIN", b"\0alice\0right")
        assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
        message = b"\0alice\0right"
        client.socket.sendall(len(message).to_bytes(4, "big") + message)
        assert client.receive_frame() == b""
        assert client.ask(MetadataRequest(topics=[]), 1).brokers


def test_messages_without_headers_follow_a_handshake_of_version_0(stranger):
    assert stranger.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    message = b"\0alice\0right"
    stranger.socket.sendall(len(message).to_bytes(4, "big") + message)
    assert stranger.receive_frame() == b""
    assert stranger.ask(MetadataRequest(topics=[]), 1).brokers


@pytest.mark.parametrize(
    "request_", [SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=b"")]
)
def test_a_session_without_an_end_cannot_log_in_again(stranger, request_):
    log_in(stranger, "PLAIN", b"\0alice\0right")
    assert stranger.ask(request_, 1).error_code == IllegalSaslStateError.errno
    assert stranger.ask(MetadataRequest(topics=[]), 1).brokers


@pytest.fixture
def renewing(signer):
    """A broker whose sessions last two seconds."""
    sasl = ServerSasl(mechanisms=PASSWORDS, max_session=2, failure_delay=0)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", sasl=sasl) as broker:
        add(broker, "alice", "right")
        add(broker, "bob", "right")
        yield broker


def test_a_session_ends_unless_it_is_renewed_by_the_same_user(renewing):
    at = At(renewing.listeners["SASL_PLAINTEXT"])
    with WireClient(at) as kept, WireClient(at) as left, WireClient(at) as changed, WireClient(at) as old:
        for client in (kept, left, changed):
            answer = log_in(client, "PLAIN", b"\0alice\0right")
            assert answer.session_lifetime_ms == 2000
        assert not log_in(old, "PLAIN", b"\0alice\0right", version=0).error_code
        assert log_in(kept, "PLAIN", b"\0alice\0right").session_lifetime_ms == 2000
        answer = log_in(changed, "PLAIN", b"\0bob\0right")
        assert answer.error_code == SaslAuthenticationFailedError.errno
        assert changed.is_closed()
        until = time.monotonic() + 2.05
        while time.monotonic() < until:
            time.sleep(0.05)
        for client in (left, old):
            with suppress(EOFError, ConnectionResetError):
                client.ask(MetadataRequest(topics=[]), 1)
                pytest.fail("a session without an end")
        assert (
            log_in(kept, "PLAIN", b"\0alice\0right").error_code == 0
        )  # late, and the first thing that it says
        assert kept.ask(MetadataRequest(topics=[]), 1).brokers


@pytest.mark.parametrize("library", [KafkaProducer, Facade])
def test_clients_renew_their_sessions(renewing, library, monkeypatch, caplog):
    monkeypatch.setattr("dafka.broker.running.at", lambda _: None)
    monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
    caplog.set_level(logging.INFO, "dafka.audit")
    producer = library(
        bootstrap_servers=renewing.listeners["SASL_PLAINTEXT"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="alice",
        sasl_plain_password="right",
    )

    def renewed() -> bool:
        """Whether one connection has logged in twice."""
        logins = [one.message.split(" at ")[0] for one in caplog.records if " connected from " in one.message]
        return len(set(logins)) < len(logins)

    try:
        until = time.monotonic() + 100
        while not renewed() and time.monotonic() < until:
            assert producer.send("renewed", b"x").get(100).offset >= 0
            time.sleep(0.02)  # leave the processor to others until the session is about to end
        assert renewed()
    finally:
        producer.close()


@pytest.mark.parametrize(
    "octets",
    [
        b"\x7f\xff\xff\xff",
        b"\0\1\0\1",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\x04\0\0\0\0",
        b"\0\0\0\x0a\0\x11\0\1\0\0\0\1\xff\xff",
    ],
    ids=["2 GB", "64 KB", "HTTP", "short", "no mechanism"],
)
def test_a_stranger_who_sends_anything_else_is_closed(stranger, octets):
    stranger.socket.sendall(octets)
    stranger.socket.shutdown(socket.SHUT_WR)
    assert stranger.is_closed()


def test_requests_before_it_are_counted(stranger):
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    with pytest.raises((EOFError, OSError)):
        for _ in range(100):
            stranger.ask(request, 3)


def test_a_client_has_some_seconds(broker, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_SECONDS", 0.1)
    with WireClient(At(broker.listeners["SASL_PLAINTEXT"])) as client:
        assert client.socket.recv(1) == b""


def test_fuzzed_frames_never_log_in_and_never_disturb(broker):
    chance = random.Random(7)
    host, port = broker.listeners["SASL_PLAINTEXT"].split(":")
    handshake = b"\0\0\0\x13\0\x11\0\1\0\0\0\1\0\1a\0\5PLAIN"
    message = b"\0alice\0right"
    body = len(message).to_bytes(4, "big") + message
    frame = b"\0\x24\0\1\0\0\0\2\0\1a" + body
    whole = handshake + len(frame).to_bytes(4, "big") + frame
    for _ in range(300):
        octets = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        with socket.create_connection((host, int(port)), 100) as client, suppress(OSError):
            client.sendall(octets[: chance.randint(1, len(octets))])
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
    assert "internal" not in broker.discarded
    admin = KafkaAdminClient(bootstrap_servers=broker.listeners["PLAINTEXT"])
    admin.close()


def test_thousands_of_half_open_connections_leave_room_for_quick_clients(broker, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKES", 200)
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_LEAST_SECONDS", 0.2)
    host, port = broker.listeners["SASL_PLAINTEXT"].split(":")
    with descriptors(2500), ExitStack() as opened:
        for _ in range(1000):
            client = opened.enter_context(socket.create_connection((host, int(port)), 100))
            with suppress(OSError):
                client.sendall(b"\0\0")
        with WireClient(At(broker.listeners["SASL_PLAINTEXT"])) as quick:
            assert log_in(quick, "PLAIN", b"\0alice\0right").error_code == 0
            assert quick.ask(MetadataRequest(topics=[]), 1).brokers
        assert broker.discarded["handshakes"]
    assert broker.metrics()["listener_held_bytes"] < 1 << 20


def test_too_many_strangers_behind_tls_end_the_oldest_quietly(broker, authority, monkeypatch):
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKES", 2)
    monkeypatch.setattr("dafka.broker.server.limits.HANDSHAKE_LEAST_SECONDS", 0)
    host, port = broker.listeners["SASL_SSL"].split(":")
    context = ssl.create_default_context(cafile=authority.cafile)
    with ExitStack() as opened:
        for _ in range(4):
            plain = opened.enter_context(socket.create_connection((host, int(port)), 100))
            last = opened.enter_context(context.wrap_socket(plain, server_hostname=host))
            last.sendall(b"\0")
        with pytest.raises(OSError):
            for _ in range(1000):
                plain = socket.create_connection((host, int(port)), 100)
                opened.callback(plain.close)
                last.settimeout(0.02)
                with suppress(TimeoutError):
                    if not last.recv(1):
                        raise ConnectionResetError
    assert "internal" not in broker.discarded


@pytest.mark.parametrize("missing", ["scramp", "jwt"])
def test_packages_that_are_missing_are_named_at_the_start(signer, missing, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "dafka.broker.server.authentication.find_spec", lambda name: None if name == missing else found(name)
    )
    tokens = OAuthTokens(jwks=signer.jwks)
    sasl = ServerSasl(mechanisms=("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"), tokens=tokens)
    with pytest.raises(SaslError, match=r"pip install 'dafka\[security\]'"):
        Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", sasl=sasl).start()
