"""Files that are not certificates or keys are named, with the reason."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from security.certificates import Authority

from dafka.security import ClientTls, PeerTls, ServerTls, TlsError
from dafka.security.contexts import of_client, of_peers, of_server


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"certfile='none\.pem' cannot be read: No such file"):
        of_server(ServerTls(certfile="none.pem"))
    with pytest.raises(TlsError, match=r"cafile='none\.pem' cannot be read"):
        of_client(ClientTls(cafile="none.pem"))


def test_a_file_with_something_else(tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    with pytest.raises(TlsError, match=r"other\.pem.*PEM form"):
        of_server(ServerTls(certfile=other))
    with pytest.raises(TlsError, match=r"other\.pem.*PEM form"):
        of_client(ClientTls(cafile=other))


def test_the_key_of_another_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.sign("one"), authority.sign("other")
    with pytest.raises(TlsError, match="the key is not that of the certificate"):
        of_server(ServerTls(certfile=one.certfile, keyfile=other.keyfile))


@pytest.mark.parametrize("password", [None, "wrong"])
def test_an_encrypted_key_without_its_password(tmp_path: Path, password: str | None) -> None:
    """Nobody is asked for it at the terminal."""
    signed = Authority(tmp_path).sign("one")
    locked = tmp_path / "locked.key"
    key = serialization.load_pem_private_key(Path(signed.keyfile).read_bytes(), None)
    pem = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"right")
    locked.write_bytes(key.private_bytes(serialization.Encoding.PEM, *pem))
    with pytest.raises(TlsError, match="the key is encrypted, and the password is wrong or missing"):
        of_server(ServerTls(certfile=signed.certfile, keyfile=locked, password=password))
    of_server(ServerTls(certfile=signed.certfile, keyfile=locked, password="right"))


def test_ciphers_that_openssl_does_not_know(tmp_path: Path) -> None:
    signed = Authority(tmp_path).sign("one")
    with pytest.raises(TlsError, match="ciphers='NONSENSE'"):
        of_server(ServerTls(certfile=signed.certfile, keyfile=signed.keyfile, ciphers="NONSENSE"))


def test_a_key_without_a_certificate(tmp_path: Path) -> None:
    signed = Authority(tmp_path).sign("one")
    with pytest.raises(TlsError, match="needs certfile"):
        of_client(ClientTls(keyfile=signed.keyfile))


def test_peers_show_certificates_both_of_them(tmp_path: Path) -> None:
    signed = Authority(tmp_path).sign("one")
    files = {"certfile": signed.certfile, "keyfile": signed.keyfile}
    for context in of_peers(PeerTls(**files, cafile=signed.certfile)):
        assert context.verify_mode == ssl.CERT_REQUIRED
    for change in ({}, {"cafile": ""}):
        with pytest.raises(TlsError, match="a CA that signs"):
            PeerTls(**files, **change)
    with pytest.raises(TlsError, match=r"capath='none' is not a folder"):
        of_peers(PeerTls(**files, capath="none"))


def test_anonymous_peers_show_none() -> None:
    for context in of_peers(None):
        assert context.verify_mode == ssl.CERT_NONE
        assert {cipher["name"] for cipher in context.get_ciphers()} >= {"AECDH-AES256-SHA"}
