"""Certificates' names and rules that map them, beside Apache Kafka's own code: DAFKA_TEST_APACHE_KAFKA=1."""

from __future__ import annotations

import base64
import os
import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from clients.adapters.java import principals, tools_missing
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID as Oid

from dafka.security.principals import mapped, parse_rules, subject

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
        reason="fetches Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
    ),
    pytest.mark.xdist_group("apache"),
]


def certificate(*names: tuple[Any, str]) -> x509.Certificate:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(kind, text) for kind, text in names])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256())


NAMES = [
    certificate(
        (Oid.COUNTRY_NAME, "DE"), (Oid.ORGANIZATION_NAME, "Acme, Inc."), (Oid.COMMON_NAME, "kafka-01.Example")
    ),
    certificate((Oid.DOMAIN_COMPONENT, "org"), (Oid.DOMAIN_COMPONENT, "example"), (Oid.USER_ID, "Alice")),
    certificate(
        (Oid.STATE_OR_PROVINCE_NAME, "B"),
        (Oid.LOCALITY_NAME, "X"),
        (Oid.STREET_ADDRESS, "S 1"),
        (Oid.ORGANIZATIONAL_UNIT_NAME, 'a"b;c<d>e+f'),
        (Oid.COMMON_NAME, "#one "),
    ),
    certificate((Oid.EMAIL_ADDRESS, "a@b"), (Oid.SERIAL_NUMBER, "7" * 200), (Oid.COMMON_NAME, "x")),
    certificate((Oid.COMMON_NAME, " \u00fcml\u00e4ut = x")),
]
RULES = [
    "DEFAULT",
    "RULE:^CN=(.*?),O=(.*?),.*$/$1@$2/",
    "RULE:^CN=(.*?),.*$/$1/L,RULE:^UID=(.*?),.*$/$1/U",
    "RULE:.*CN=([a-z]*).*/$1$2/,DEFAULT",
    "RULE:CN=kafka/x/",
    "RULE:^.*DC=(.*?),DC=(.*?)$/$2.$1/U",
]


@pytest.mark.parametrize("rules", RULES)
def test_certificates_mean_the_same_principals(rules: str, tmp_path: Path) -> None:
    if tools_missing():
        pytest.skip(str(tools_missing()))
    found: list[tuple[str, str | None]] = []
    for one in NAMES:
        path = tmp_path / "one.pem"
        path.write_bytes(one.public_bytes(Encoding.PEM))
        decoded = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
        name = subject(decoded, one.public_bytes(Encoding.DER))
        found.append((name, mapped(parse_rules(rules), name)))
    theirs = principals(rules, [base64.b64encode(one.public_bytes(Encoding.DER)).decode() for one in NAMES])
    assert found == theirs
