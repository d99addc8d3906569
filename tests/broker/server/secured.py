"""Brokers at which clients have to say who they are, with the same settings: this project's and Apache Kafka.

``alice`` may do everything with the topic TOPIC, ``bob`` has an account and no rights, and clients of
listeners without login may do everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from clients.servers import APACHE, APACHE_SETTINGS, DAFKA
from cryptography.hazmat.primitives import serialization as forms
from security.certificates import Authority, Signed
from security.sasl.keys import Signer
from timing import until

import dafka.broker
from dafka import Broker
from dafka.broker.interface.access import CredentialUpsertion, ScramMechanism
from dafka.broker.interface.broker import TopicSpec
from dafka.security import OAuthTokens, ServerAcls, ServerSasl, ServerTls
from dafka.security.acls.terms import Acl, Operation, PatternType, Permission, ResourceType
from dafka.security.credentials import salted_password
from scripts.apache import node

TOPIC = "secured"
PASSWORD = "right"
SALT = b"s" * 32
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORDS, "OAUTHBEARER")
AUDIENCE, ISSUER = "kafka", "https://issuer.example"
DELAY = 0.1  # seconds until a failure is answered
SESSION = 60.0  # seconds until clients have to say again who they are, of PLAIN

OPEN, TLS, STRICT, EXPIRED = "PLAINTEXT", "SSL", "STRICT", "EXPIRED"
SASL, SASL_TLS = "SASL_PLAINTEXT", "SASL_SSL"
"""Listeners: STRICT wants to see certificates of clients, EXPIRED shows one that is too old."""

RULES = "RULE:^.*CN=([a-z]+).*$/$1/L,DEFAULT"


class Files(NamedTuple):
    """The signers of certificates and tokens; ``strange`` are somebody else's."""

    authority: Authority
    strange: Authority
    signer: Signer
    strange_signer: Signer

    def token(self, *, strange: bool = False, **claims: Any) -> str:
        """A token that is valid, but for these claims."""
        signer = self.strange_signer if strange else self.signer
        return signer.token(**{"aud": AUDIENCE, "iss": ISSUER, **claims})


class Secured(NamedTuple):
    """A running broker, or several for as many listeners: addresses by listener, and those of its owners."""

    name: str
    listeners: dict[str, str]
    owners: tuple[str, ...]


def files(folder: Path) -> Files:
    """In ``folder``, which has to be there."""
    other = folder / "strange"
    other.mkdir()
    return Files(Authority(folder), Authority(other), Signer(folder), Signer(other))


@contextmanager
def secured(name: str, made: Files) -> Iterator[Secured]:
    """The broker of that name (:mod:`clients.servers`). Raises scripts.apache.jars.UnavailableError."""
    with (_dafka if name == DAFKA else _apache)(made) as server:
        assert server.name == name
        _let_in(server)
        yield server


@contextmanager
def _dafka(made: Files) -> Iterator[Secured]:
    tokens = OAuthTokens(jwks=made.signer.jwks, audience=(AUDIENCE,), issuer=ISSUER)
    sasl = ServerSasl(mechanisms=MECHANISMS, failure_delay=DELAY, max_session=SESSION, tokens=tokens)
    acls = ServerAcls(super_users=["User:ANONYMOUS"])
    good, old = made.authority.sign("server"), made.authority.sign("old", expired=True)

    def tls(signed: Signed, auth: Any) -> ServerTls:
        return ServerTls(
            **signed._asdict(), cafile=made.authority.cafile, client_auth=auth, principal_rules=RULES
        )

    everywhere = ",".join(f"{one}://127.0.0.1:0" for one in (OPEN, TLS, SASL, SASL_TLS))
    alone = f"{OPEN}://127.0.0.1:0,{TLS}://127.0.0.1:0"
    with (
        Broker(listen=everywhere, tls=tls(good, "requested"), sasl=sasl, acls=acls) as main,
        Broker(listen=alone, tls=tls(good, "required"), acls=acls) as strict,
        Broker(listen=alone, tls=tls(old, "none"), acls=acls) as expired,
    ):
        listeners = {**main.listeners, STRICT: strict.listeners[TLS], EXPIRED: expired.listeners[TLS]}
        yield Secured(DAFKA, listeners, tuple(one.listeners[OPEN] for one in (main, strict, expired)))


@contextmanager
def _apache(made: Files) -> Iterator[Secured]:
    good, old = (store(made.authority.sign(name, expired=name == "old")) for name in ("server", "old"))
    module = "org.apache.kafka.common.security"
    settings = {
        **APACHE_SETTINGS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,STRICT:SSL,EXPIRED:SSL,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
        "connection.failed.authentication.delay.ms": f"{1000 * DELAY:.0f}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": good,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": made.authority.cafile,
        "ssl.principal.mapping.rules": RULES,
        "listener.name.ssl.ssl.client.auth": "requested",
        "listener.name.strict.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.location": old,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": Path(made.signer.jwks).as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    for listener in (SASL, SASL_TLS):
        at = f"listener.name.{listener.lower()}"
        for one in MECHANISMS:
            settings[f"{at}.{one.lower()}.connections.max.reauth.ms"] = f"{1000 * SESSION:.0f}"
        users = f'user_alice="{PASSWORD}" user_bob="{PASSWORD}"'
        settings[f"{at}.plain.sasl.jaas.config"] = f"{module}.plain.PlainLoginModule required {users};"
        for one in PASSWORDS[1:]:
            settings[f"{at}.{one.lower()}.sasl.jaas.config"] = f"{module}.scram.ScramLoginModule required;"
        settings[f"{at}.oauthbearer.sasl.jaas.config"] = (
            f"{module}.oauthbearer.OAuthBearerLoginModule required;"
        )
        settings[f"{at}.oauthbearer.sasl.server.callback.handler.class"] = (
            f"{module}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    flags = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={Path(made.signer.jwks).as_uri()}"]
    names = (TLS, STRICT, EXPIRED, SASL, SASL_TLS)
    with node.running(settings=settings, listeners=names, flags=flags) as running:
        yield Secured(APACHE, running.listeners, (running.bootstrap_servers,))


def store(signed: Signed) -> str:
    """A key and its certificates in one file, in the form that Java reads."""
    key = forms.load_pem_private_key(Path(signed.keyfile).read_bytes(), None)
    octets = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    path = Path(signed.certfile).with_suffix(".store.pem")
    path.write_bytes(octets + Path(signed.certfile).read_bytes())
    return str(path)


def _let_in(server: Secured) -> None:
    """The topic, accounts and rights."""
    who = ResourceType.TOPIC, TOPIC, PatternType.LITERAL, "User:alice", "*"
    for address in server.owners:
        owner = dafka.broker.connect(address, 60)
        (made,) = owner.call("create_topics", {TOPIC: TopicSpec(1)}).values()
        (allowed,) = owner.call("create_acls", [Acl(*who, Operation.ALL, Permission.ALLOW)])
        for mechanism in ScramMechanism:
            salted = salted_password(mechanism.label, PASSWORD, SALT, 4096)
            accounts = [CredentialUpsertion(one, mechanism, 4096, SALT, salted) for one in ("alice", "bob")]
            outcomes = owner.call("alter_accounts", [], accounts)
            assert not any(one.error for one in (made, allowed, *outcomes.values()))
        until(lambda owner=owner: len(owner.call("describe_accounts")) == 2)
        owner.close()
