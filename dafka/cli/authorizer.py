"""The options of access control lists: whether what clients do is checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dafka.security.acls.options import ServerAcls, parse_super_users

Command = Callable[..., Any]


def authorizer_options(command: Command) -> Command:
    """``--authorizer`` and its siblings; the command gets them as ``acls``, None without ``--authorizer``."""

    @click.option(
        "--authorizer/--no-authorizer",
        default=False,
        show_default=True,
        help="Whether clients may do only what access control lists allow (dafka acl).",
    )
    @click.option(
        "--super-users",
        metavar="PRINCIPALS",
        help="Principals that may do everything: User:admin;User:CN=ops,O=example, with semicolons.",
    )
    @click.option(
        "--allow-everyone-if-no-acl-found/--deny-everyone-if-no-acl-found",
        default=False,
        show_default=True,
        help="Whether a resource without any access control list is open to everybody.",
    )
    @wraps(command)
    def with_authorizer(
        *, authorizer: bool, super_users: str | None, allow_everyone_if_no_acl_found: bool, **options: Any
    ) -> Any:
        acls = None
        if authorizer:
            acls = ServerAcls(
                super_users=parse_super_users(super_users or ""),
                allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
            )
        elif super_users or allow_everyone_if_no_acl_found:
            raise click.UsageError("--super-users and --allow-everyone-if-no-acl-found need --authorizer")
        return command(acls=acls, **options)

    return with_authorizer
