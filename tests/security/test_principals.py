"""Principals from certificates: Kafka's rules (KIP-371)."""

from __future__ import annotations

import pytest

from dafka.security import TlsError
from dafka.security.principals import mapped, parse_rules, subject

NAME = "CN=kafka-01.Example,OU=Service Users,O=Acme\\, Inc.,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", NAME),
        ("", NAME),
        ("RULE:^CN=(.*?),OU=Service Users.*$/$1/", "kafka-01.Example"),
        ("RULE:^CN=(.*?),OU=Service Users.*$/$1/L", "kafka-01.example"),
        ("RULE:^CN=(.*?),.*$/$1/U, DEFAULT", "KAFKA-01.EXAMPLE"),
        ("RULE:^CN=nobody$/x/,RULE:^CN=([^.]*).*$/$1@acme/", "kafka-01@acme"),
        ("RULE:^CN=nobody$/x/,DEFAULT", NAME),
        ("RULE:CN=kafka/x/", None),  # a rule matches the whole name
        (r"RULE:.*/a\/b/", "a/b"),
        ("RULE:.*/$3/", None),  # there is no such group
        ("RULE:CN=(kafka).*/$1-$3/", "kafka-$3"),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules, name):
    assert mapped(parse_rules(rules), NAME) == name


DEEP = f"RULE:{'(' * 5000}/x/"


@pytest.mark.parametrize(
    "rules", ["RULE:", "RULE:(/x/", "default", "RULE:a/b/X", "RULE:a/b", DEEP], ids=lambda one: one[:30]
)
def test_anything_but_a_rule_is_named(rules):
    with pytest.raises(TlsError, match="principal_rules="):
        parse_rules(rules)


def test_a_subject_is_written_as_by_rfc_2253():
    certificate = {
        "subject": (
            (("countryName", "DE"),),
            (("organizationName", "Acme, Inc."),),
            (("commonName", "#one=1 "), ("userId", "1")),
        )
    }
    assert subject(certificate) == "CN=\\#one\\=1\\ +UID=1,O=Acme\\, Inc.,C=DE"
    assert subject({}) == ""
