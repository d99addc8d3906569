"""The stored form of a password: SCRAM's keys (RFC 5802), from which it cannot be had back.

Passwords are taken as they are, without SASLprep, as Kafka and its clients do.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
"""Kafka's bounds."""

SALT_OCTETS = 32
LEAST_SALT_OCTETS, MOST_SALT_OCTETS = 1, 1024
"""Kafka has no bounds: librdkafka's own tests send four octets."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class ScramCredential(NamedTuple):
    """In the order in which scramp wants them."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


def key_octets(mechanism: str) -> int:
    """The length of a mechanism's keys."""
    return hashlib.new(_HASHES[mechanism]).digest_size


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password that a client sends to the broker (AlterUserScramCredentials). It is slow."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def credential(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """From a salted password."""
    name = _HASHES[mechanism]
    stored_key = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", name), iterations)


def is_password(mechanism: str, known: ScramCredential, password: str) -> bool:
    """Whether this is the password. It is slow."""
    salted = salted_password(mechanism, password, known.salt, known.iterations)
    found = credential(mechanism, salted, known.salt, known.iterations)
    return hmac.compare_digest(found.stored_key, known.stored_key)


def stand_in(mechanism: str, name: str, secret: bytes, iterations: int, salt_octets: int) -> ScramCredential:
    """For a name that has no credential: it looks like one, always the same, and no password matches it."""
    salt = b""
    while len(salt) < salt_octets:
        salt += hmac.digest(secret, f"{mechanism} {len(salt)} {name}".encode(errors="replace"), "sha256")
    size = key_octets(mechanism)
    return ScramCredential(
        salt[:salt_octets], secrets.token_bytes(size), secrets.token_bytes(size), iterations
    )
