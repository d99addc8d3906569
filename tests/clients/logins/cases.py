"""How clients come in, and how they do not: a table of listeners, mechanisms, and what may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from broker.server.secured import (
    EXPIRED,
    PASSWORD,
    PASSWORDS,
    SASL,
    SASL_TLS,
    STRICT,
    TLS,
    Files,
)

IN = "writes and reads"
NOT_ALLOWED = "is known, and may not write"
LOGIN = "is told that the login has failed"
SERVER = "does not accept the broker's certificate"
CERTIFICATE = "is told that its certificate is not accepted"
CLOSED = "finds the connection closed"
"""What becomes of an attempt, and what its client says of it."""

TOKEN = "OAUTHBEARER"
OTHER_NAME = "localhost"  # the brokers' certificates are for 127.0.0.1


@dataclass(frozen=True)
class Login:
    """What a client is given; paths are of PEM files. ``token`` is that of OAUTHBEARER."""

    protocol: str
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")


Way = Callable[[Login, Files], Login]


@dataclass(frozen=True)
class Case:
    """An attempt at one of the brokers' listeners, and what becomes of it."""

    listener: str
    mechanism: str
    how: str
    way: Way
    outcome: str

    @property
    def name(self) -> str:
        return f"{self.listener}{' ' * bool(self.mechanism)}{self.mechanism}: {self.how}"

    def address(self, listeners: dict[str, str]) -> str:
        """Where the client connects to."""
        host, port = listeners[self.listener].rsplit(":", 1)
        return f"{OTHER_NAME if self.how == ANOTHER_HOST else host}:{port}"

    def login(self, made: Files) -> Login:
        """What it is given."""
        protocol = self.listener if self.listener in (SASL, SASL_TLS) else TLS
        return self.way(Login(protocol, cafile=made.authority.cafile, mechanism=self.mechanism), made)


def as_it_is(login: Login, made: Files) -> Login:
    return login


def certificate(name: str, *, strange: bool = False, expired: bool = False) -> Way:
    def shows(login: Login, made: Files) -> Login:
        signed = (made.strange if strange else made.authority).sign(name, expired=expired)
        return replace(login, **signed._asdict())

    return shows


def password(user: str, said: str = PASSWORD) -> Way:
    return lambda login, made: replace(login, user=user, password=said)


def token(*, strange: bool = False, since: float = 0, **claims: Any) -> Way:
    """One of alice for five minutes, from ``since`` seconds before now on."""

    def shows(login: Login, made: Files) -> Login:
        began = int(time.time() - since)
        known = {"iat": began, "exp": began + 300, **claims}
        return replace(login, token=made.token(strange=strange, **known))

    return shows


def speaks(protocol: str) -> Way:
    return lambda login, made: replace(alice(login, made), protocol=protocol)


def alice(login: Login, made: Files) -> Login:
    return password("alice")(login, made)


def trusts_somebody_else(login: Login, made: Files) -> Login:
    return replace(alice(login, made), cafile=made.strange.cafile)


ANOTHER_HOST = "another name than the certificate's"
CERTIFICATES: dict[str, tuple[Way, str]] = {
    "alice's certificate": (certificate("alice"), IN),
    "bob's certificate": (certificate("bob"), NOT_ALLOWED),
    "a certificate that has expired": (certificate("late", expired=True), CERTIFICATE),
    "a stranger's certificate": (certificate("stranger", strange=True), CERTIFICATE),
}
BROKERS: dict[str, tuple[Way, str]] = {
    "an authority that has not signed the broker's": (trusts_somebody_else, SERVER),
    ANOTHER_HOST: (alice, SERVER),
}
ACCOUNTS: dict[str, tuple[Way, str]] = {
    "alice": (alice, IN),
    "bob": (password("bob"), NOT_ALLOWED),
    "a wrong password": (password("alice", "wrong"), LOGIN),
    "an unknown user": (password("nobody"), LOGIN),
}
TOKENS: dict[str, tuple[Way, str]] = {
    "alice": (token(), IN),
    "bob": (token(sub="bob"), NOT_ALLOWED),
    "a token that has expired": (token(since=3600), LOGIN),
    "a stranger's token": (token(strange=True), LOGIN),
    "a token for somebody else": (token(aud="other"), LOGIN),
}
SCRAM = PASSWORDS[1]
EVERYTHING: list[tuple[str, str, dict[str, tuple[Way, str]]]] = [
    (TLS, "", {**CERTIFICATES, "no certificate": (as_it_is, IN), **BROKERS}),
    (STRICT, "", {**CERTIFICATES, "no certificate": (as_it_is, CERTIFICATE)}),
    (EXPIRED, "", {"a broker's certificate that has expired": (as_it_is, SERVER)}),
    *[(one, mechanism, ACCOUNTS) for one in (SASL, SASL_TLS) for mechanism in PASSWORDS],
    *[(one, TOKEN, TOKENS) for one in (SASL, SASL_TLS)],
    (SASL_TLS, SCRAM, BROKERS),
    (SASL_TLS, SCRAM, {"no TLS": (speaks(SASL), CLOSED)}),
    (SASL, SCRAM, {"TLS": (speaks(SASL_TLS), CLOSED)}),
]
CASES = [
    Case(listener, mechanism, how, way, outcome)
    for listener, mechanism, ways in EVERYTHING
    for how, (way, outcome) in ways.items()
]
