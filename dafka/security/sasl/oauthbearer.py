"""OAUTHBEARER (RFC 7628, KIP-255): a token that somebody has signed whom the broker trusts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from dafka.security.sasl.steps import AuthenticationError, Identity, Step

# n,a=NAME,^Aauth=Bearer TOKEN^Akey=value^A^A
_FIRST = re.compile(r"n,(?:a=(?P<name>[^,]*))?,\x01(?P<pairs>(?:[^\x01=]+=[^\x01]*\x01)+)\x01")
_REFUSED = (  # Kafka's words
    "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
)
_INVALID = json.dumps({"status": "invalid_token"}, separators=(",", ":"))


class OAuthExchange:
    """``identity_of(token)`` is whose token it is, and None if it is not valid."""

    def __init__(self, identity_of: Callable[[str], Identity | None]) -> None:
        self._identity_of = identity_of
        self._refused: AuthenticationError | None = None

    def respond(self, message: bytes) -> Step:
        if self._refused is not None:  # independent of the client's answer to the failure
            raise self._refused
        try:
            found = _FIRST.fullmatch(message.decode())
        except ValueError:
            raise AuthenticationError(_REFUSED) from None
        if found is None:
            raise AuthenticationError(_REFUSED)
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
        kind, _, token = pairs.get("auth", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise AuthenticationError(_REFUSED)
        identity = self._identity_of(token.strip())
        if identity is None or found["name"] not in (None, "", identity.name):
            self._refused = AuthenticationError(_INVALID, found["name"] or "")
            return Step(_INVALID.encode())
        return Step(b"", identity)
