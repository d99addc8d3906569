"""Accounts and access control lists, where the broker has them."""

from __future__ import annotations

from typing import Any

from kafka.errors import KafkaError, SecurityDisabledError

from dafka.broker.interface.access import ScramMechanism
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.routes import TEXT, Parameter, Routes
from dafka.security.acls.terms import Acl, AclFilter

routes = Routes()


@routes.add(
    "GET",
    "/access",
    "Accounts with their mechanisms, and who may do what; null where the broker has no such thing",
    Parameter("search", TEXT, "Only users, principals and resources with this in their names", default=""),
)
def get_access(desk: Desk, search: str) -> dict[str, Any]:
    accounts, acls = _accounts(desk), _acls(desk)
    users = None if accounts is None else [one for one in accounts if search in one["user"]]
    entries = None if acls is None else [one for one in acls if search in one.principal or search in one.name]
    return {
        "accounts": None if users is None else users[: limits.FOUND],
        "total_accounts": None if users is None else len(users),
        "acls": None if entries is None else [_row(one) for one in sorted(entries)[: limits.FOUND]],
        "total_acls": None if entries is None else len(entries),
    }


def _accounts(desk: Desk) -> list[dict[str, Any]] | None:
    try:
        found = desk.call("describe_accounts")
    except (KafkaError, NotImplementedError):
        return None
    return [
        {"user": user, "mechanisms": [_label(one) for one in sorted(account.iterations)]}
        for user, account in sorted(found.items())
        if account.error is None
    ]


def _label(mechanism: int) -> str:
    try:
        return ScramMechanism(mechanism).label
    except ValueError:
        return str(mechanism)


def _acls(desk: Desk) -> list[Acl] | None:
    try:
        found: list[Acl] = desk.call("describe_acls", AclFilter())
    except (SecurityDisabledError, NotImplementedError):
        return None
    return found


def _row(one: Acl) -> dict[str, Any]:
    return {
        "principal": one.principal,
        "permission": one.permission.name.lower(),
        "operation": one.operation.name.lower(),
        "resource": one.resource_type.name.lower(),
        "name": one.name,
        "pattern": one.pattern.name.lower(),
        "host": one.host,
    }
