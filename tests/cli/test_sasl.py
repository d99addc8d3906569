"""The options of accounts."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from dafka.cli.sasl import sasl_options
from dafka.security import OAuthTokens, ServerSasl


def parsed(*arguments: str) -> Any:
    found: list[Any] = []

    @click.command()
    @sasl_options
    def command(sasl: ServerSasl | None) -> None:
        found.append(sasl)

    ended = CliRunner().invoke(command, arguments)
    return found[0] if not ended.exit_code else ended.output or str(ended.exception)


@pytest.mark.parametrize(
    ("arguments", "sasl"),
    [
        ([], None),
        (["--sasl-mechanisms", "PLAIN, SCRAM-SHA-512"], ServerSasl(mechanisms=("PLAIN", "SCRAM-SHA-512"))),
        (["--sasl-max-session", "60"], ServerSasl(max_session=60)),
        (
            ["--sasl-jwks", "keys.json", "--sasl-audience", "a,b", "--sasl-scopes", "c"],
            ServerSasl(
                mechanisms=("OAUTHBEARER",),
                tokens=OAuthTokens(jwks="keys.json", audience=("a", "b"), scopes=("c",)),
            ),
        ),
    ],
)
def test_options(arguments, sasl):
    assert parsed(*arguments) == sasl


def test_options_that_do_not_go_together_are_refused_with_the_reason():
    assert "need --sasl-jwks" in parsed("--sasl-issuer", "us")
    assert "'GSSAPI' is not one of" in parsed("--sasl-mechanisms", "GSSAPI")
