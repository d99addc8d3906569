"""The encoded attributes of a certificate's subject."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID as Oid

from dafka.security.errors import TlsError
from dafka.security.principals import subject
from dafka.security.subject_octets import attributes


def certificate(*parts: list[tuple[Any, str]]) -> bytes:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(*one) for one in some]) for some in parts]
    )
    issuer = x509.Name([x509.NameAttribute(Oid.ORGANIZATION_NAME, "i" * 300)])
    builder = x509.CertificateBuilder(issuer, name, key.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_attributes_have_numbers_and_octets():
    made = certificate(
        [(Oid.COUNTRY_NAME, "DE")], [(Oid.EMAIL_ADDRESS, "a@b")], [(Oid.ORGANIZATION_NAME, "x" * 200)]
    )
    assert attributes(made) == [
        [("2.5.4.6", b"\x13\x02DE")],
        [("1.2.840.113549.1.9.1", b"\x16\x03a@b")],
        [("2.5.4.10", b"\x0c\x81\xc8" + b"x" * 200)],
    ]


def test_a_subject_has_attributes_without_a_short_name_as_java_writes_them():
    made = certificate([(Oid.COUNTRY_NAME, "DE")], [(Oid.EMAIL_ADDRESS, "a@b")], [(Oid.COMMON_NAME, "x")])
    shown = {"subject": ((("countryName", "DE"),), (("emailAddress", "a@b"),), (("commonName", "x"),))}
    assert subject(shown, made) == "CN=x,1.2.840.113549.1.9.1=#1603614062,C=DE"


@pytest.mark.parametrize("octets", [b"", b"0", b"0\x03", b"0\x820", b"0\x000\x00", bytes(100)])
def test_other_octets_are_refused(octets):
    with pytest.raises(TlsError):
        attributes(octets)
