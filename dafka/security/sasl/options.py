"""SASL, of the side that listens and the side that connects. Names are Kafka's and kafka-python's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dafka.security.errors import SaslError
from dafka.security.sasl.steps import MECHANISMS, OAUTHBEARER, SCRAM_MECHANISMS

Path = str | os.PathLike[str]

LONGEST_SKEW = 86_400
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class OAuthTokens:
    """Which tokens a broker accepts (JSON Web Tokens, RFC 7519).

    ``jwks``: the keys of the issuer, as a file or an ``https://`` address (a JSON Web Key Set). ``audience``
    (one of those in the token), ``issuer``: required values of these claims; None: any. ``scopes``: required
    in its ``scope_claim``. ``subject_claim``: the claim that names its user. ``clock_skew``: seconds by which
    a token may begin later than now; nobody is let in after its end.
    """

    jwks: Path
    audience: tuple[str, ...] | None = None
    issuer: str | None = None
    scopes: tuple[str, ...] = ()
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew: float = 30.0

    def __post_init__(self) -> None:
        where = os.fspath(self.jwks)
        if "://" in where and not where.startswith("https://"):
            raise SaslError(
                f"jwks={where!r} is a file or an https:// address: keys are not taken in clear text"
            )
        if not 0 <= self.clock_skew <= LONGEST_SKEW:  # with NaN all tokens would have begun
            raise SaslError(
                f"clock_skew is a number of seconds from 0 to {LONGEST_SKEW}, not {self.clock_skew!r}"
            )


@dataclass(frozen=True, kw_only=True)
class ServerSasl:
    """How the clients of a broker say who they are.

    ``mechanisms``: those that they may choose (``sasl.enabled.mechanisms``). ``max_session``: seconds after
    which they have to say it again, 0: never (``connections.max.reauth.ms``); a session never lasts longer
    than the token of OAUTHBEARER. ``failure_delay``: seconds until the answer to a failure
    (``connection.failed.authentication.delay.ms``). ``tokens``: for OAUTHBEARER.
    """

    mechanisms: tuple[str, ...] = SCRAM_MECHANISMS
    max_session: float = 0.0
    failure_delay: float = 0.1
    tokens: OAuthTokens | None = None

    def __post_init__(self) -> None:
        for one in self.mechanisms:
            if one not in MECHANISMS:
                raise SaslError(f"mechanisms: {one!r} is not one of {', '.join(MECHANISMS)}")
        if not self.mechanisms:
            raise SaslError(f"mechanisms is empty: give some of {', '.join(MECHANISMS)}")
        if (OAUTHBEARER in self.mechanisms) is (self.tokens is None):
            raise SaslError("mechanism OAUTHBEARER and tokens=OAuthTokens(...) need each other")
        if not 0 <= self.max_session <= 1e9:
            raise SaslError(f"max_session is a number of seconds from 0 on, not {self.max_session!r}")
        if not 0 <= self.failure_delay <= 5:
            raise SaslError(f"failure_delay is a number of seconds from 0 to 5, not {self.failure_delay!r}")


@dataclass(frozen=True, kw_only=True)
class ClientSasl:
    """How a client says who it is: ``mechanism``, and kafka-python's ``sasl_...`` options for it."""

    mechanism: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str) or not self.mechanism:
            raise SaslError(f"sasl_mechanism is one of {', '.join(MECHANISMS)}, not {self.mechanism!r}")

    def __hash__(self) -> int:
        return hash(self.mechanism)
