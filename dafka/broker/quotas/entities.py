"""Entities: whom a quota can be for, and which of many counts for a client.

A quota is for a user, a client id, or a user with a client id. Each of them may be a name or the default of
all that have no quota of their own. For each key, the first of eight counts that has the key (Kafka's
documentation, "Quotas"):

    1  user and client id           4  default user and client id       7  client id
    2  user and default client id   5  both defaults                    8  default client id
    3  user                         6  default user

Clients share what is allowed as far as the quota does not tell them apart: a quota of level 3 or 6 is for all
clients of a user together, one of level 7 or 8 for all users of a client id, the others for each pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dafka.broker.interface.quotas import Entity, Match, QuotaFilter

USER, CLIENT_ID = "user", "client-id"
KINDS = (USER, CLIENT_ID)
NAME_OCTETS = 255

Quotas = Mapping[Entity, Mapping[str, float]]


class InvalidEntityError(ValueError):
    """No quota can be for this."""


class Counting(NamedTuple):
    """The quota that counts: its value, and the name of what those share to whom it applies."""

    limit: float
    shared: tuple[str | None, str | None]


def entity(given: Sequence[tuple[str, str | None]]) -> Entity:
    """The entity in its usual order. Raises InvalidEntityError."""
    if not given:
        raise InvalidEntityError("Invalid empty client quota entity")
    names: dict[str, str | None] = {}
    for kind, name in given:
        if kind not in KINDS:
            raise InvalidEntityError(f"Unhandled client quota entity type {kind[:40]!r}: {', '.join(KINDS)}")
        if kind in names:
            raise InvalidEntityError(f"Invalid client quota entity: {kind} is in it twice")
        if name is not None and not 0 < len(name.encode(errors="replace")) <= NAME_OCTETS:
            raise InvalidEntityError(f"the name of a {kind} has 1 to {NAME_OCTETS} octets")
        names[kind] = name
    return tuple((kind, names[kind]) for kind in KINDS if kind in names)


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
