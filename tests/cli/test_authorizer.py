"""The options of access control lists."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from dafka.cli.authorizer import authorizer_options
from dafka.security import ServerAcls


def parsed(*arguments: str) -> Any:
    found: list[Any] = []

    @click.command()
    @authorizer_options
    def command(acls: ServerAcls | None) -> None:
        found.append(acls)

    ended = CliRunner().invoke(command, arguments)
    return found[0] if not ended.exit_code else ended.output or str(ended.exception)


@pytest.mark.parametrize(
    ("arguments", "acls"),
    [
        ([], None),
        (["--authorizer"], ServerAcls()),
        (
            ["--authorizer", "--super-users", "User:a;User:CN=b,O=c"],
            ServerAcls(super_users=("User:a", "User:CN=b,O=c")),
        ),
        (
            ["--authorizer", "--allow-everyone-if-no-acl-found"],
            ServerAcls(allow_everyone_if_no_acl_found=True),
        ),
    ],
)
def test_options_are_read(arguments, acls):
    assert parsed(*arguments) == acls


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--super-users", "User:a"], "need --authorizer"),
        (["--allow-everyone-if-no-acl-found"], "need --authorizer"),
        (["--authorizer", "--super-users", "admin"], "'admin' is not a principal"),
    ],
)
def test_options_that_do_not_go_together_are_named(arguments, words):
    assert words in parsed(*arguments)
