"""The options of accounts: how clients say who they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dafka.cli.numbers import Number
from dafka.hub.waits import LONGEST
from dafka.security.sasl.options import OAuthTokens, ServerSasl
from dafka.security.sasl.steps import MECHANISMS, OAUTHBEARER, SCRAM_MECHANISMS

Command = Callable[..., Any]


def sasl_options(command: Command) -> Command:
    """``--sasl-mechanisms`` and its siblings; the command gets them as ``sasl``, None if none is given."""

    @click.option(
        "--sasl-mechanisms",
        metavar="NAMES",
        callback=_mechanisms,
        help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, with commas.  "
        f"[default: {','.join(SCRAM_MECHANISMS)}]",
    )
    @click.option(
        "--sasl-max-session",
        type=Number(0, LONGEST),
        default=0.0,
        show_default=True,
        help="Seconds after which clients say again who they are; 0: never.",
    )
    @click.option("--sasl-jwks", metavar="FILE|URL", help="The keys that sign tokens, for OAUTHBEARER.")
    @click.option(
        "--sasl-audience", metavar="NAMES", help="Whom tokens are for, with commas.  [default: any]"
    )
    @click.option("--sasl-issuer", metavar="NAME", help="The issuer of tokens.  [default: any]")
    @click.option("--sasl-scopes", metavar="NAMES", help="Scopes that tokens need, with commas.")
    @click.option(
        "--sasl-subject-claim",
        default="sub",
        show_default=True,
        help="The claim of a token that names its user.",
    )
    @wraps(command)
    def with_sasl(
        *,
        sasl_mechanisms: str | None,
        sasl_max_session: float,
        sasl_jwks: str | None,
        sasl_audience: str | None,
        sasl_issuer: str | None,
        sasl_scopes: str | None,
        sasl_subject_claim: str,
        **options: Any,
    ) -> Any:
        tokens = None
        if sasl_jwks is not None:
            tokens = OAuthTokens(
                jwks=sasl_jwks,
                audience=_names(sasl_audience) or None,
                issuer=sasl_issuer,
                scopes=_names(sasl_scopes),
                subject_claim=sasl_subject_claim,
            )
        elif sasl_audience or sasl_issuer or sasl_scopes:
            raise click.UsageError("--sasl-audience, --sasl-issuer and --sasl-scopes need --sasl-jwks")
        sasl = None
        if sasl_mechanisms is not None or tokens is not None or sasl_max_session:
            mechanisms = _names(sasl_mechanisms) or (SCRAM_MECHANISMS if tokens is None else (OAUTHBEARER,))
            sasl = ServerSasl(mechanisms=mechanisms, max_session=sasl_max_session, tokens=tokens)
        return command(sasl=sasl, **options)

    return with_sasl


def _mechanisms(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    for one in _names(text):
        if one not in MECHANISMS:
            raise click.BadParameter(f"{one!r} is not one of {', '.join(MECHANISMS)}", ctx, param)
    return text


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(one.strip() for one in (text or "").split(",") if one.strip())
