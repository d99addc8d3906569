"""Tokens of WebSocket clients that may connect (``Authorization: Bearer TOKEN``, RFC 6750)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

from dafka.hub.pool import Aside
from dafka.security.sasl.options import OAuthTokens

Tokens = Iterable[str] | Path | OAuthTokens
"""The tokens themselves; a file with one in each line, which may change; or who signs them."""

Check = Callable[[str], bool]

LEAST_OCTETS = 16
"""Of a token that is shared: what is shorter can be guessed."""

_ASIDE = Aside(1)  # where signatures are checked, and where keys are waited for


def check_of(tokens: Tokens) -> Check:
    """Whether a token is one of these. It may wait as a green thread.

    Raises ValueError, OSError, and :class:`~dafka.security.SaslError` for options that cannot be used.
    """
    if isinstance(tokens, OAuthTokens):
        from dafka.security.sasl.jwks import KeySet
        from dafka.security.sasl.tokens import TokenCheck

        signed = TokenCheck(tokens, KeySet(tokens.jwks))
        return lambda token: bool(token) and _ASIDE.run(signed.identity, token) is not None
    if isinstance(tokens, str):
        raise TypeError("tokens is a list of tokens, a pathlib.Path of a file, or OAuthTokens; not text")
    return _File(tokens) if isinstance(tokens, Path) else _Known(tokens)


class _Known:
    """Tokens, looked for by a digest with a key that nobody else has: how long that takes tells nothing."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._key = secrets.token_bytes(32)
        self._digests = frozenset(map(self._digest, map(checked, tokens)))

    def __call__(self, token: str) -> bool:
        return self._digest(token) in self._digests

    def _digest(self, token: str) -> bytes:
        return blake2b(token.encode("utf-8", "surrogateescape"), key=self._key).digest()


class _File:
    """A file of tokens, blank lines and comments (``#``); one that cannot be used any more allows nobody."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: object = None
        self._known = _Known(())
        self._read()

    def __call__(self, token: str) -> bool:
        try:
            self._read()
        except (OSError, ValueError):
            self._signature, self._known = None, _Known(())
        return self._known(token)

    def _read(self) -> None:
        found = os.stat(self._path)
        signature = found.st_mtime_ns, found.st_ino, found.st_size
        if signature != self._signature:
            lines = (line.strip() for line in self._path.read_text().splitlines())
            self._known = _Known(line for line in lines if line and not line.startswith("#"))
            self._signature = signature


def checked(token: str) -> str:
    """The token. Raises ValueError, which does not show it."""
    if len(token) < LEAST_OCTETS or not all("!" <= letter <= "~" for letter in token):
        raise ValueError(f"a token has at least {LEAST_OCTETS} letters of ASCII and no blanks")
    return token


def bearer(header: str | None) -> str:
    """The token in an ``Authorization`` header; empty without one."""
    scheme, _, token = (header or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
