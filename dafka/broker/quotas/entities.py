"""The entities that a quota can be for, and which of many quotas counts for a client.

A quota is for a user, a client id, a user with a client id, or an address. Each of them may be a name or the
default of all that have no quota of their own. For each key of users and client ids, the first of eight
counts that has the key (Kafka's documentation, "Quotas"):

    1  user and client id           4  default user and client id       7  client id
    2  user and default client id   5  both defaults                    8  default client id
    3  user                         6  default user

Clients share what is allowed as far as the quota does not tell them apart: a quota of level 3 or 6 is for all
clients of a user together, one of level 7 or 8 for all users of a client id, the others for each pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from dafka.broker.interface.quotas import Entity, Match, QuotaFilter

USER, CLIENT_ID, IP = "user", "client-id", "ip"
KINDS = (USER, CLIENT_ID, IP)
NAME_OCTETS = 255

Quotas = Mapping[Entity, Mapping[str, float]]


class InvalidEntityError(ValueError):
    """No quota can be for this."""


class Counting(NamedTuple):
    """The quota that counts: its value, and the name of the allowance that its clients share."""

    limit: float
    shared: tuple[str | None, str | None]


def entity(given: Sequence[tuple[str, str | None]]) -> Entity:
    """The entity in its usual order; the last name of a kind counts. Raises InvalidEntityError."""
    names = dict(given)
    if not names:
        raise InvalidEntityError("Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in KINDS:
            raise InvalidEntityError(f"Unhandled client quota entity type: {kind[:40]}")
        if name == "":
            raise InvalidEntityError(f"Empty {kind} not supported")
        if name is not None and len(name.encode(errors="replace")) > NAME_OCTETS:
            raise InvalidEntityError(f"the name of a {kind} has {NAME_OCTETS} octets at most")
    if IP in names and len(names) > 1:
        raise InvalidEntityError("Invalid quota entity combination: ip stands alone")
    return tuple((kind, names[kind]) for kind in KINDS if kind in names)


def address(name: str | None) -> str:
    """The address that an entity of this name is for, as sockets write it; "" if it is the name of a host.

    As in Kafka, the network interface of an IPv6 address (``fe80::1%eth0``) makes no difference. Of names of
    hosts only localhost is known without looking it up (:mod:`dafka.broker.quotas.hosts`).
    """
    if name is not None and name.lower() == "localhost":
        return "127.0.0.1"
    try:
        found = ip_address(name or "")
    except ValueError:
        return ""
    return str(getattr(found, "ipv4_mapped", None) or found).partition("%")[0]


def counting(quotas: Quotas, key: str, user: str, client_id: str) -> Counting | None:
    """The quota of this key that counts for a client; None: there is none."""
    for whose in (user, None):
        for client in (client_id, None):
            found = quotas.get(((USER, whose), (CLIENT_ID, client)))
            if found is not None and key in found:
                return Counting(found[key], (user, client_id))
        found = quotas.get(((USER, whose),))
        if found is not None and key in found:
            return Counting(found[key], (user, None))
    for client in (client_id, None):
        found = quotas.get(((CLIENT_ID, client),))
        if found is not None and key in found:
            return Counting(found[key], (None, client_id))
    return None


def is_found(one: Entity, filters: Sequence[QuotaFilter], strict: bool) -> bool:
    """Whether all filters find an entity; ``strict``: and it has no kind beyond theirs."""
    names = dict(one)
    if strict and len(names) != len(filters):
        return False
    return all(
        kind in names and (match == Match.ANY or names[kind] == (name if match == Match.EXACT else None))
        for kind, match, name in filters
    )
