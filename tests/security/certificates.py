"""Certificates for tests: an authority, and what it has signed, as PEM files."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import trustme


class Signed(NamedTuple):
    """A certificate and its key."""

    certfile: str
    keyfile: str


class Authority:
    """An authority whose files lie in ``folder``; ``cafile`` is its own certificate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.cafile = str(folder / f"{name}.pem")
        self._authority.cert_pem.write_to_path(self.cafile)

    def sign(self, name: str, *identities: str, expired: bool = False) -> Signed:
        """A certificate for hosts or addresses, "127.0.0.1" by default; ``expired``: an hour ago."""
        now = datetime.now(timezone.utc)
        dates = {"not_before": now - timedelta(days=2), "not_after": now - timedelta(hours=1)}
        signed = self._authority.issue_cert(
            *(identities or ("127.0.0.1",)), common_name=name, **(dates if expired else {})
        )
        certfile, keyfile = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        signed.private_key_pem.write_to_path(str(keyfile))
        certfile.write_bytes(b"".join(one.bytes() for one in signed.cert_chain_pems))
        return Signed(str(certfile), str(keyfile))
