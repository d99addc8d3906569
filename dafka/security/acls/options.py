"""The options of access control lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dafka.security.errors import AclError


@dataclass(frozen=True, kw_only=True)
class ServerAcls:
    """That a broker checks what clients may do, as Kafka's StandardAuthorizer does.

    ``super_users`` (``super.users``): principals that may do everything, as ``User:admin``.
    ``allow_everyone_if_no_acl_found`` (``allow.everyone.if.no.acl.found``): whether everybody may do
    everything to what no access control list is about. Raises :class:`dafka.security.AclError`.
    """

    super_users: Iterable[str] = ()
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        given = self.super_users
        users = (given,) if isinstance(given, str) else tuple(given)
        for user in users:
            if not isinstance(user, str) or not user.strip().partition(":")[2]:
                raise AclError(f"super_users={given!r}: {user!r} is not a principal, as User:admin is one")
        object.__setattr__(self, "super_users", tuple(user.strip() for user in users))


def parse_super_users(text: str) -> tuple[str, ...]:
    """``User:alice;User:CN=bob,O=example``: with ``;``, because names in certificates have commas."""
    return tuple(one.strip() for one in text.split(";") if one.strip())
