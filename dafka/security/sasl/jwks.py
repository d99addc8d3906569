"""The keys that sign tokens: a JSON Web Key Set (RFC 7517) in a file or at an https address.

Questions here may wait for a server, so they are asked in a thread.
"""

from __future__ import annotations

import os
import threading
import time
import urllib.request
from typing import Any

from dafka.protocol.json_text import read_json
from dafka.security.errors import SaslError

REFRESH_SECONDS = 3600.0
"""Keys at an address are read again after this time (sasl.oauthbearer.jwks.endpoint.refresh.ms)."""

UNKNOWN_SECONDS = 10.0
"""For a token with an unknown key they are read again, at most this often: anybody can send such tokens."""

READ_SECONDS = 10.0
MOST_OCTETS = 1 << 20


class KeySet:
    """The keys at ``where``. Raises :class:`SaslError` if they cannot be had now."""

    def __init__(self, where: str | os.PathLike[str]) -> None:
        self._where = os.fspath(where)
        self._is_address = "://" in self._where
        self._reading = threading.Lock()
        self._keys: dict[str | None, Any] = {}
        self._read_at = 0.0
        self._state: object = None
        if not self._is_address:
            self._refresh("")

    def key(self, name: str | None) -> Any | None:
        """The key with this id (``kid``); without an id the only one there is. None: there is no such key."""
        with self._reading:
            if self._is_due(name):
                self._refresh_or_keep()
            if name is None and len(self._keys) == 1:
                return next(iter(self._keys.values()))
            return self._keys.get(name)

    def _is_due(self, name: str | None) -> bool:
        age = time.monotonic() - self._read_at
        if not self._is_address:
            return _identity(self._where) != self._state
        if not self._read_at or age > REFRESH_SECONDS:
            return True
        return name not in self._keys and age > UNKNOWN_SECONDS

    def _refresh_or_keep(self) -> None:
        try:
            self._refresh("; those from before stay in use")
        except SaslError:
            if not self._keys:
                raise

    def _refresh(self, otherwise: str) -> None:
        self._read_at = time.monotonic()
        self._state = None if self._is_address else _identity(self._where)
        try:
            self._keys = _keys(self._fetch() if self._is_address else self._read())
        except (OSError, ValueError) as error:
            raise SaslError(f"the keys at {self._where!r} cannot be read: {error}{otherwise}") from error

    def _read(self) -> bytes:
        with open(self._where, "rb") as file:
            return file.read(MOST_OCTETS + 1)

    def _fetch(self) -> bytes:
        with urllib.request.urlopen(self._where, timeout=READ_SECONDS) as answer:
            if not answer.geturl().startswith("https://"):  # it was sent on
                raise ValueError(f"it leads to {answer.geturl()!r}, which is not https")
            return bytes(answer.read(MOST_OCTETS + 1))


def _keys(content: bytes) -> dict[str | None, Any]:
    from jwt import PyJWKSet
    from jwt.exceptions import PyJWTError

    if len(content) > MOST_OCTETS:
        raise ValueError(f"more than {MOST_OCTETS} octets")
    try:
        found = PyJWKSet.from_dict(read_json(content))
    except (PyJWTError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"not a set of keys that can be used: {error}") from error
    # A key for both signing and checking would let everybody who checks tokens make some.
    public = [one for one in found.keys if one.key_type != "oct" and one.public_key_use in (None, "sig")]
    if not public:
        raise ValueError("there is no public key for signatures in it")
    return {one.key_id: one for one in public}


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
