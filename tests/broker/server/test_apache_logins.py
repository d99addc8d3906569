"""Logins, beside Apache Kafka's with the same settings: DAFKA_TEST_APACHE_KAFKA=1.

The same octets to both; the answers, their words, whether the connection is closed and how long a failure
takes are compared, and the differences are listed here.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from broker.server.client import WireClient
from broker.server.secured import (
    AUDIENCE,
    DELAY,
    ISSUER,
    MECHANISMS,
    PASSWORD,
    PASSWORDS,
    SASL,
    SASL_TLS,
    STRICT,
    TLS,
    TOPIC,
    Files,
    Secured,
    files,
    secured,
)
from clients.servers import APACHE, DAFKA
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from scramp import ScramClient, ScramException

from scripts.apache import jars

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
        reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
    ),
    pytest.mark.xdist_group("apache"),
]

Conversation = Callable[[WireClient, Files], list[Any]]
CLOSED = "closed"

FAILED = 58  # SASL_AUTHENTICATION_FAILED
AFTER = "closed after it"
CHOSEN = (0, sorted(MECHANISMS))
WORDS = "Authentication failed: Invalid username or password"
SPECIFIC = {
    "PLAIN, no password": "Authentication failed: password not specified",
    "PLAIN, no name": "Authentication failed: username not specified",
    "PLAIN, for somebody else": (
        "Authentication failed: Client requested an authorization id that is different from username"
    ),
    "PLAIN, two parts": "Invalid SASL/PLAIN response: expected 3 tokens, got 2",
    "PLAIN, four parts": "Invalid SASL/PLAIN response: expected 3 tokens, got 4",
    "PLAIN, nothing": "Invalid SASL/PLAIN response: expected 3 tokens, got 1",
}


def generic(mechanism: str) -> tuple[Any, ...]:
    words = f"due to invalid credentials with SASL mechanism {mechanism}"
    return FAILED, f"Authentication failed during authentication {words}", b"", 0


TOLD = 0, "", b'{"status":"invalid_token"}', 0
KNOWN = [CHOSEN, (0, "", b"", 6), "served"]
DIFFERENT: dict[str, tuple[Any, Any]] = {
    # What: what Apache Kafka answers, and what this broker does
    # It says what was wrong with a message; here the words are the same for all that is wrong.
    **{
        what: tuple([CHOSEN, (FAILED, words, b"", 0), AFTER] for words in (theirs, WORDS))
        for what, theirs in SPECIFIC.items()
    },
    "SCRAM, for somebody else": (
        [CHOSEN, (FAILED, SPECIFIC["PLAIN, for somebody else"], b"", 0), AFTER],
        [CHOSEN, generic("SCRAM-SHA-256"), AFTER],
    ),
    # It refuses unknown users one message sooner, so names can be guessed; here they have a salt, too.
    **{
        f"{one}, an unknown user": ([CHOSEN, generic(one), True], [CHOSEN, (0, "", 0), generic(one), True])
        for one in PASSWORDS[1:]
    },
    # These end there in an exception, and without an answer.
    "SCRAM, another proof": (
        [CHOSEN, (0, "", 0), CLOSED, True],
        [CHOSEN, (0, "", 0), generic("SCRAM-SHA-256"), True],
    ),
    "OAUTHBEARER, another kind": ([CHOSEN, CLOSED, AFTER], [CHOSEN, generic("OAUTHBEARER"), AFTER]),
    "OAUTHBEARER, for somebody else": (
        [
            CHOSEN,
            (
                FAILED,
                "Authentication failed: Client requested an authorization id (bob) that is different from "
                "the token's principal name (alice)",
                b"",
                0,
            ),
            AFTER,
        ],
        [CHOSEN, TOLD, "answered"],
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def both(made: Files) -> Iterator[tuple[Secured, Secured]]:
    """Apache Kafka, and ours."""
    try:
        with secured(APACHE, made) as theirs, secured(DAFKA, made) as ours:
            yield theirs, ours
    except jars.UnavailableError as error:
        pytest.skip(str(error))


def at(server: Secured, listener: str) -> WireClient:
    return WireClient(SimpleNamespace(bootstrap_servers=server.listeners[listener]))


def told(client: WireClient, request: Any, version: int) -> Any:
    """What is answered, in what two brokers can have in common."""
    try:
        answer = client.ask(request, version)
    except (EOFError, OSError):
        return CLOSED
    if isinstance(request, SaslHandshakeRequest):
        return answer.error_code, sorted(answer.mechanisms)
    if isinstance(request, SaslAuthenticateRequest):
        lifetime = getattr(answer, "session_lifetime_ms", None)
        return answer.error_code, answer.error_message, answer.auth_bytes, lifetime and lifetime // 10_000
    if isinstance(request, MetadataRequest):
        return "served" if answer.brokers else "answered"
    return answer.error_code


def metadata(client: WireClient) -> Any:
    return told(client, MetadataRequest(topics=[]), 1)


def shake(client: WireClient, mechanism: str, version: int = 1) -> Any:
    return told(client, SaslHandshakeRequest(mechanism=mechanism), version)


def say(client: WireClient, *messages: bytes, version: int = 2) -> list[Any]:
    """The answers to messages of a mechanism, and how it ends."""
    answers = []
    for message in messages:
        answers.append(told(client, SaslAuthenticateRequest(auth_bytes=message), version))
        if answers[-1] == CLOSED or answers[-1][0]:
            return [*answers, "closed after it" if answers[-1] == CLOSED or client.is_closed() else "open"]
    return [*answers, metadata(client)]


def plain(*messages: bytes, version: int = 2) -> Conversation:
    return lambda client, _: [shake(client, "PLAIN"), *say(client, *messages, version=version)]


def scram(mechanism: str, user: str, password: str, change: Callable[[str], str] = str) -> Conversation:
    """An exchange; ``change`` makes another one of the last message."""

    def conversation(client: WireClient, _: Files) -> list[Any]:
        said: list[Any] = [shake(client, mechanism)]
        other = ScramClient([mechanism], user, password)
        first = other.get_client_first().encode()
        answer = told(client, SaslAuthenticateRequest(auth_bytes=first), 2)
        if answer == CLOSED or answer[0]:
            return [*said, answer, client.is_closed()]
        other.set_server_first(answer[2].decode())
        said.append((answer[0], answer[1], answer[3]))
        last = change(other.get_client_final()).encode()
        answer = told(client, SaslAuthenticateRequest(auth_bytes=last), 2)
        if answer == CLOSED or answer[0]:
            return [*said, answer, client.is_closed()]
        with suppress(ScramException):
            other.set_server_final(answer[2].decode())
            said.append("the broker knows the password")
        return [*said, (answer[0], answer[1], answer[3]), metadata(client)]

    return conversation


def octets(mechanism: str, message: bytes) -> Conversation:
    return lambda client, _: [shake(client, mechanism), *say(client, message)]


def bearer(
    claims: dict[str, Any], form: bytes = b"n,,\x01auth=Bearer %s\x01\x01", **more: Any
) -> Conversation:
    def conversation(client: WireClient, made: Files) -> list[Any]:
        signer = made.strange_signer if more.get("strange") else made.signer
        known = {"aud": AUDIENCE, "iss": ISSUER, "iat": int(time.time())}
        token = signer.token(more.get("seconds", 300), **{**known, **claims}).encode()
        first = told(client, SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        message = form % token if b"%s" in form else form
        answers = say(client, message, *([b"\x01"] if more.get("refused") else []))
        return [first, *answers]

    return conversation


def bare(message: bytes) -> Conversation:
    """After a handshake of version 0 messages have no header."""

    def conversation(client: WireClient, _: Files) -> list[Any]:
        said = [shake(client, "PLAIN", 0)]
        client.socket.sendall(len(message).to_bytes(4, "big") + message)
        try:
            return [*said, client.receive_frame(), metadata(client)]
        except (EOFError, OSError):
            return [*said, CLOSED]

    return conversation


def renewed(*again: Any) -> Conversation:
    """A login of alice by PLAIN, and then ``again``: a mechanism, and messages."""

    def conversation(client: WireClient, _: Files) -> list[Any]:
        said = [shake(client, "PLAIN"), *say(client, RIGHT)]
        mechanism, *messages = again
        said.append(shake(client, mechanism))
        return [*said, *(say(client, *messages) if said[-1] != CLOSED else [])]

    return conversation


def unannounced(*requests: tuple[Any, int]) -> Conversation:
    return lambda client, _: [told(client, *request) for request in requests] + [client.is_closed()]


def raw(message: bytes) -> Conversation:
    def conversation(client: WireClient, _: Files) -> list[Any]:
        with suppress(OSError):
            client.socket.sendall(message)
        return [client.is_closed()]

    return conversation


RIGHT = f"\0alice\0{PASSWORD}".encode()
VERSIONS = ApiVersionsRequest(client_software_name="a", client_software_version="1")
HANDSHAKE = SaslHandshakeRequest(mechanism="PLAIN")
AUTHENTICATE = SaslAuthenticateRequest(auth_bytes=RIGHT)
CONVERSATIONS: dict[str, Conversation] = {
    "PLAIN": plain(RIGHT),
    "PLAIN, the same name twice": plain(b"alice" + RIGHT),
    "PLAIN, version 0": plain(RIGHT, version=0),
    "PLAIN, version 1": plain(RIGHT, version=1),
    "PLAIN, a wrong password": plain(b"\0alice\0wrong"),
    "PLAIN, a wrong password, version 0": plain(b"\0alice\0wrong", version=0),
    "PLAIN, an unknown user": plain(b"\0nobody\0right"),
    "PLAIN, no password": plain(b"\0alice\0"),
    "PLAIN, no name": plain(b"\0\0right"),
    "PLAIN, for somebody else": plain(b"bob\0alice\0right"),
    "PLAIN, two parts": plain(b"alice\0right"),
    "PLAIN, four parts": plain(b"a\0alice\0right\0x"),
    "PLAIN, no UTF-8": plain(b"\0alice\0\xff\xfe"),
    "PLAIN, nothing": plain(b""),
    "PLAIN, a long password": plain(b"\0alice\0" + b"x" * 60_000),
    "PLAIN, too much": plain(b"\0alice\0" + b"x" * 600_000),
    "PLAIN without headers": bare(RIGHT),
    "PLAIN without headers, wrong": bare(b"\0alice\0wrong"),
    **{f"{one}": scram(one, "alice", PASSWORD) for one in PASSWORDS[1:]},
    **{f"{one}, a wrong password": scram(one, "alice", "wrong") for one in PASSWORDS[1:]},
    **{f"{one}, an unknown user": scram(one, "nobody", PASSWORD) for one in PASSWORDS[1:]},
    "SCRAM, another proof": scram(
        "SCRAM-SHA-256", "alice", PASSWORD, lambda text: text[: text.index("p=") + 2] + "AAAA"
    ),
    "SCRAM, another nonce": scram(
        "SCRAM-SHA-256", "alice", PASSWORD, lambda text: text.replace("r=", "r=x", 1)
    ),
    "SCRAM, no proof": scram("SCRAM-SHA-256", "alice", PASSWORD, lambda text: text[: text.index(",p=")]),
    "SCRAM, rubbish": octets("SCRAM-SHA-256", b"rubbish"),
    "SCRAM, nothing": octets("SCRAM-SHA-256", b""),
    "SCRAM, with channel binding": octets("SCRAM-SHA-256", b"p=tls-unique,,n=alice,r=abcdefghijkl"),
    "SCRAM, for somebody else": octets("SCRAM-SHA-256", b"n,a=bob,n=alice,r=abcdefghijkl"),
    "OAUTHBEARER": bearer({}),
    "OAUTHBEARER, named": bearer({}, b"n,a=alice,\x01auth=Bearer %s\x01\x01"),
    "OAUTHBEARER, for somebody else": bearer({}, b"n,a=bob,\x01auth=Bearer %s\x01\x01"),
    "OAUTHBEARER, another audience": bearer({"aud": "x"}, refused=True),
    "OAUTHBEARER, several audiences": bearer({"aud": ["x", "kafka"]}),
    "OAUTHBEARER, another issuer": bearer({"iss": "x"}, refused=True),
    "OAUTHBEARER, expired": bearer({}, seconds=-3600, refused=True),
    "OAUTHBEARER, not yet": bearer({"nbf": int(time.time()) + 3600}, refused=True),
    "OAUTHBEARER, issued later": bearer({"iat": int(time.time()) + 3600}, refused=True),
    "OAUTHBEARER, issued never": bearer({"iat": None}, refused=True),
    "OAUTHBEARER, a name of spaces": bearer({"sub": "  "}, refused=True),
    "OAUTHBEARER, ended ten seconds ago": bearer({}, seconds=-10, refused=True),
    "OAUTHBEARER, no audience": bearer({"aud": None}, refused=True),
    "OAUTHBEARER, without an end": bearer({"exp": None}, refused=True),
    "OAUTHBEARER, nobody's": bearer({"sub": None}, refused=True),
    "OAUTHBEARER, an empty name": bearer({"sub": ""}, refused=True),
    "OAUTHBEARER, a stranger's key": bearer({}, strange=True, refused=True),
    "OAUTHBEARER, rubbish": bearer({}, b"n,,\x01auth=Bearer rubbish\x01\x01", refused=True),
    "OAUTHBEARER, no token": bearer({}, b"n,,\x01auth=Bearer \x01\x01"),
    "OAUTHBEARER, another kind": bearer({}, b"n,,\x01auth=Basic %s\x01\x01"),
    "OAUTHBEARER, nothing": bearer({}, b""),
    "OAUTHBEARER, extensions": bearer({}, b"n,,\x01auth=Bearer %s\x01key=value\x01\x01"),
    "OAUTHBEARER, extensions first": bearer({}, b"n,,\x01key=value\x01auth=Bearer %s\x01\x01"),
    "again": renewed("PLAIN", RIGHT),
    "again, somebody else": renewed("PLAIN", f"\0bob\0{PASSWORD}".encode()),
    "again, a wrong password": renewed("PLAIN", b"\0alice\0wrong"),
    "again, by another mechanism": renewed("SCRAM-SHA-256", b"n,,n=alice,r=abcdefghijkl"),
    "again, by an unknown mechanism": renewed("GSSAPI", b""),
    "an unknown mechanism": unannounced((SaslHandshakeRequest(mechanism="GSSAPI"), 1)),
    "an empty mechanism": unannounced((SaslHandshakeRequest(mechanism=""), 1)),
    "a handshake of version 2": unannounced((SaslHandshakeRequest(mechanism="PLAIN"), 0), (VERSIONS, 3)),
    "no handshake": unannounced((AUTHENTICATE, 2)),
    "another request first": unannounced((MetadataRequest(topics=None), 1)),
    "another request between": unannounced((HANDSHAKE, 1), (MetadataRequest(topics=None), 1)),
    "versions, then another request": unannounced((VERSIONS, 3), (MetadataRequest(topics=None), 1)),
    "versions twice": unannounced((VERSIONS, 3), (VERSIONS, 3), (MetadataRequest(topics=[]), 1)),
    "a handshake twice": unannounced((HANDSHAKE, 1), (HANDSHAKE, 1)),
    "2 GB": raw(b"\x7f\xff\xff\xff"),
    "a negative length": raw(b"\xff\xff\xff\xff"),
    "HTTP": raw(b"GET / HTTP/1.1\r\n\r\n"),
}


@pytest.mark.parametrize("what", CONVERSATIONS)
def test_the_answers_are_the_same(both: tuple[Secured, Secured], made: Files, what: str) -> None:
    found = []
    for server in both:
        with at(server, SASL) as client:
            client.socket.settimeout(20)
            found.append(CONVERSATIONS[what](client, made))
    theirs, ours = found
    assert (theirs, ours) == DIFFERENT.get(what, (theirs, theirs))


@pytest.mark.parametrize(
    "what", [one for one in CONVERSATIONS if "a wrong password" in one and "again" not in one]
)
def test_a_failure_takes_its_time(both: tuple[Secured, Secured], made: Files, what: str) -> None:
    for server in both:
        with at(server, SASL) as client:
            began = time.monotonic()
            CONVERSATIONS[what](client, made)
            assert time.monotonic() - began >= DELAY


def may_see(server: Secured, made: Files, listener: str, name: str | None) -> bool | str:
    """Whether who has this certificate may see alice's topic, or how the handshake ends."""
    context = ssl.create_default_context(cafile=made.authority.cafile)
    if name is not None:
        signed = (made.strange if name == "strange" else made.authority).sign(name, expired=name == "expired")
        context.load_cert_chain(*signed)
    with at(server, listener) as client:
        client.socket.settimeout(20)
        try:
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            answer = client.ask(MetadataRequest(topics=None), 1)
        except (OSError, EOFError):
            return CLOSED
        return [one.name for one in answer.topics] == [TOPIC]


@pytest.mark.parametrize("listener", [TLS, STRICT])
@pytest.mark.parametrize("name", [None, "alice", "Alice", "bob", "expired", "strange"])
def test_certificates_let_in_the_same(
    both: tuple[Secured, Secured], made: Files, listener: str, name: str | None
) -> None:
    theirs, ours = (may_see(server, made, listener, name) for server in both)
    assert theirs == ours
    assert ours == {"alice": True, "bob": False, None: True if listener == TLS else CLOSED}.get(name, ours)


@pytest.mark.parametrize("oldest", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("listener", [TLS, SASL_TLS])
def test_the_same_versions_of_tls_are_spoken(
    both: tuple[Secured, Secured], made: Files, listener: str, oldest: ssl.TLSVersion
) -> None:
    said = []
    for server in both:
        context = ssl.create_default_context(cafile=made.authority.cafile)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = oldest
        with at(server, listener) as client:
            try:
                with context.wrap_socket(client.socket, server_hostname="127.0.0.1") as wrapped:
                    said.append(wrapped.version())
            except OSError:
                said.append(CLOSED)
    assert said[0] == said[1]
    assert (said[0] == CLOSED) is (oldest == ssl.TLSVersion.TLSv1_1)
