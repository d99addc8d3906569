"""A server takes up a new certificate while it runs, and keeps the old one if the new one is of no use."""

from __future__ import annotations

from pathlib import Path

from security.certificates import Authority

from dafka.security import ServerTls
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
