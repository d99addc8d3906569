"""A server takes up a new certificate while it runs, and keeps the old one if the new one is of no use."""

from __future__ import annotations

from pathlib import Path

import pytest
from security.certificates import Authority

from dafka.security import ServerTls, TlsError
from dafka.security.renewing import Renewed


def test_new_files_are_taken_up(tmp_path: Path, monkeypatch, caplog) -> None:
    monkeypatch.setattr("dafka.security.renewing.LOOK_SECONDS", 0)
    authority = Authority(tmp_path)
    signed = authority.sign("server")
    renewed = Renewed(ServerTls(certfile=signed.certfile, keyfile=signed.keyfile))
    first = renewed.context
    assert renewed.context is first
    authority.sign("server")
    second = renewed.context
    assert second is not first
    Path(signed.certfile).write_text("half a certificate")
    for _ in range(3):
        assert renewed.context is second
    assert caplog.text.count("the certificate from before stays in use") == 1
    authority.sign("server")
    assert renewed.context is not second


def test_the_user_that_a_certificate_names_by_the_rules(tmp_path):
    signed = Authority(tmp_path).sign("server")
    shown = {"subject": ((("commonName", "alice"),),)}
    rules = Renewed(ServerTls(**signed._asdict(), principal_rules="RULE:CN=(a.*)/$1/U"))
    assert rules.principal(shown) == "User:ALICE"
    assert rules.principal(None) == rules.principal({}) == "User:ANONYMOUS"
    with pytest.raises(TlsError, match="no rule says who 'CN=bob' is"):
        rules.principal({"subject": ((("commonName", "bob"),),)})
