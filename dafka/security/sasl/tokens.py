"""Whether a token is valid, and whose it is."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from dafka.protocol.json_text import check_depth
from dafka.security.errors import SaslError
from dafka.security.sasl.options import OAuthTokens
from dafka.security.sasl.steps import Identity

log = logging.getLogger(__name__)

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Those with a public key. ``none`` and those with a shared secret are not accepted."""

MOST_NAME = 255


class Keys(Protocol):
    """Where the keys are: :class:`dafka.security.sasl.jwks.KeySet`."""

    def key(self, name: str | None) -> Any | None:
        """The key with this id."""


class TokenCheck:
    """Checks tokens by ``options``. May wait for keys."""

    def __init__(self, options: OAuthTokens, keys: Keys) -> None:
        self._options = options
        self._keys = keys

    def identity(self, token: str) -> Identity | None:
        """The user of a token; None if it is not valid, with the reason in the log."""
        import jwt  # of the extra "security"

        options = self._options
        try:
            _check_depth(token)
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError(f"algorithm {algorithm!r}")
            key = self._keys.key(key_id)
            if key is None:
                raise jwt.InvalidKeyError("it is signed with an unknown key")
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=options.audience,
                issuer=options.issuer,
                leeway=options.clock_skew,
                options={
                    "require": ["exp", "iat", options.subject_claim],
                    "verify_aud": options.audience is not None,
                    "verify_sub": False,  # the claim may be another one, and is checked below
                },
            )
            name = claims[options.subject_claim]
            if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME:
                raise jwt.InvalidTokenError(f"{options.subject_claim} is not a name")
            missing = set(options.scopes) - _scopes(claims.get(options.scope_claim))
            if missing:
                raise jwt.InvalidTokenError(f"scope {', '.join(sorted(missing))} is missing")
            return Identity(name, float(claims["exp"]))
        except SaslError as error:
            log.error("no token can be checked: %s", error)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            log.debug("a token is refused: %s: %s", type(error).__name__, error)
        return None


def _check_depth(token: str) -> None:
    """Raise ValueError for a part that is nested too deep: PyJWT reads the header of anybody's token."""
    from jwt.utils import base64url_decode

    header, _, rest = token.partition(".")
    for part in (header, rest.rpartition(".")[0]):
        check_depth(base64url_decode(part))


def _scopes(claim: object) -> set[str]:
    if isinstance(claim, str):
        return set(claim.split())
    return {one for one in claim if isinstance(one, str)} if isinstance(claim, list) else set()
