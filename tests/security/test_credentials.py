"""What is kept of a password."""

from __future__ import annotations

from base64 import b64decode

import pytest

from dafka.security import credentials
from dafka.security.credentials import is_password, stand_in


def test_keys_are_those_of_rfc_7677():
    """The example of section 3: its signature follows from the server key, its proof from the stored key."""
    import hashlib
    import hmac

    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = credentials.salted_password("SCRAM-SHA-256", "pencil", salt, 4096)
    known = credentials.credential("SCRAM-SHA-256", salted, salt, 4096)
    message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(known.server_key, message, "sha256")
    assert signature == b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signed = hmac.digest(known.stored_key, message, "sha256")
    key = bytes(one ^ other for one, other in zip(proof, signed, strict=True))
    assert hashlib.sha256(key).digest() == known.stored_key


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_is_found_again_and_no_other_one(mechanism):
    salted = credentials.salted_password(mechanism, "right", b"s" * 32, 4096)
    known = credentials.credential(mechanism, salted, b"s" * 32, 4096)
    assert is_password(mechanism, known, "right")
    assert not is_password(mechanism, known, "wrong")
    assert b"right" not in b"".join([known.salt, known.stored_key, known.server_key])


def test_a_stand_in_looks_like_a_credential_and_stays_the_same():
    one, again = (stand_in("SCRAM-SHA-512", "nobody", b"secret", 8192, 40) for _ in range(2))
    assert (one.iterations, len(one.salt), len(one.stored_key)) == (8192, 40, 64)
    assert one.salt == again.salt != stand_in("SCRAM-SHA-512", "other", b"secret", 8192, 40).salt
    assert one.salt != stand_in("SCRAM-SHA-512", "nobody", b"else", 8192, 40).salt
