"""Certificates of tests: signed by a CA, and self-signed ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

from dafka.overlay.node.connections.tls import Tls

PASSPHRASE = "12345"


def of_a_ca(folder: Path, ca: trustme.CA, name: str) -> Tls:
    """The files of an end with a certificate of a CA, which trusts that CA."""
    issued = ca.issue_cert(name)
    certificate, key, cafile = (folder / f"{name}.{kind}.pem" for kind in ("certificate", "key", "ca"))
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    ca.cert_pem.write_to_path(cafile)
    return Tls(certfile=str(certificate), keyfile=str(key), cafile=str(cafile))


def locked(tls: Tls) -> Tls:
    """The same with a key that needs a passphrase."""
    key = serialization.load_pem_private_key(Path(tls.keyfile).read_bytes(), None)
    path = Path(f"{tls.keyfile}.locked")
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSPHRASE.encode()),
        )
    )
    return replace(tls, keyfile=str(path), password=PASSPHRASE)
