"""SCRAM, with kafka-python's client on the other side."""

from __future__ import annotations

import pytest
from kafka.net.sasl.scram import ScramClient, xor_bytes

from dafka.security import credentials
from dafka.security.sasl.scram import ScramExchange
from dafka.security.sasl.steps import SCRAM_MECHANISMS, AuthenticationError


def credential_of(mechanism: str):
    salted = credentials.salted_password(mechanism, "right", b"s" * 32, 4096)
    known = credentials.credential(mechanism, salted, b"s" * 32, 4096)
    return lambda name: known if name == "alice" else credentials.stand_in(mechanism, name, b"k", 4096, 32)


def converse(mechanism: str, name: str, password: str):
    client, exchange = (
        ScramClient(name, password, mechanism),
        ScramExchange(mechanism, credential_of(mechanism)),
    )
    first = exchange.respond(client.first_message())
    assert first.identity is None
    client.process_server_first_message(first.reply)
    last = exchange.respond(client.final_message())
    client.process_server_final_message(last.reply)
    return last.identity


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_both_sides_prove_that_they_know_the_password(mechanism):
    assert converse(mechanism, "alice", "right").name == "alice"


class WithNonce(ScramClient):
    """Its last message has ``change(own part, whole nonce)`` for a nonce, and a proof for that."""

    def __init__(self, mechanism, change):
        super().__init__("alice", "right", mechanism)
        self._change = change

    def process_server_first_message(self, server_first_message):
        own = self.nonce
        super().process_server_first_message(server_first_message)
        whole = self.nonce
        self.nonce = self._change(own, whole)
        self.auth_message = self.auth_message[: -len(whole)] + self.nonce
        signature = self.hmac(self.stored_key, self.auth_message)
        self.client_proof = xor_bytes(self.client_key, signature)
        self.server_signature = self.hmac(self.server_key, self.auth_message)


def last_step(mechanism, change):
    client, exchange = WithNonce(mechanism, change), ScramExchange(mechanism, credential_of(mechanism))
    client.process_server_first_message(exchange.respond(client.first_message()).reply)
    step = exchange.respond(client.final_message())
    client.process_server_final_message(step.reply)
    return step.identity


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_librdkafka_before_2_6_has_its_part_of_the_nonce_twice(mechanism):
    assert last_step(mechanism, lambda own, whole: own + whole).name == "alice"


@pytest.mark.parametrize(
    "change",
    [
        lambda own, whole: own,
        lambda own, whole: b"",
        lambda own, whole: whole + b"x",
        lambda own, whole: whole[:-1],
    ],
    ids=["the client's", "none", "longer", "shorter"],
)
def test_a_nonce_without_the_servers_is_refused(change):
    with pytest.raises(AuthenticationError):
        last_step("SCRAM-SHA-256", change)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("nobody", "right")])
def test_an_unknown_user_and_a_wrong_password_fail_alike_at_the_last_step(mechanism, name, password):
    with pytest.raises(AuthenticationError) as refused:
        converse(mechanism, name, password)
    assert str(refused.value).endswith(f"invalid credentials with SASL mechanism {mechanism}")
    assert refused.value.name == name


@pytest.mark.parametrize(
    "messages",
    [
        [b""],
        [b"\xff"],
        [b"n,,n=alice"],
        [b"n,a=bob,n=alice,r=abc"],
        [b"p=tls-unique,,n=alice,r=abc"],
        [b"n,,m=x,n=alice,r=abc"],
        [b"n,,n=al=ice,r=abc"],
        [b"n,,n=alice,r=abc", b""],
        [b"n,,n=alice,r=abc", b"c=biws,r=abc,p=AAAA"],
        [b"n,,n=alice,r=abc", b"n,,n=alice,r=abc"],
    ],
)
def test_malformed_messages_fail_as_wrong_passwords_do(messages):
    exchange = ScramExchange("SCRAM-SHA-256", credential_of("SCRAM-SHA-256"))
    for message in messages[:-1]:
        exchange.respond(message)
    with pytest.raises(AuthenticationError, match="invalid credentials"):
        exchange.respond(messages[-1])
