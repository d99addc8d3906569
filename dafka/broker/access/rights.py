"""The rights of one client: the access control lists, asked for its principal and its host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from dafka.broker import limits
from dafka.broker.access.acls import AclTable
from dafka.hub.turns import Pace
from dafka.security.acls.rules import hosts_of
from dafka.security.acls.terms import OPERATIONS, Operation, ResourceType
from dafka.security.audit import audit

SECONDS = 60.0
"""Within this time a refusal that repeats is one line of the audit log."""

NAME_LENGTH = 255
"""So much of a name is in that line; a client may ask for one of megabytes."""


class Denials:
    """The refusals in the audit log: each of them once in a minute, and so many different ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = 0.0
        self._told: set[tuple[str, ...]] = set()
        self._left_out = 0

    def tell(self, principal: str, where: str, api: str, operation: str, kind: str, name: str) -> None:
        """A principal was refused to do something."""
        now = self._clock()
        if now >= self._ends:
            if self._left_out:
                audit.warning("%d refusals were left out before", self._left_out)
            self._ends = now + SECONDS
            self._told.clear()
            self._left_out = 0
        name = name[:NAME_LENGTH]
        line = principal, api, operation, kind, name
        if line in self._told:
            return
        if len(self._told) >= limits.DENIALS:
            self._left_out += 1
            return
        self._told.add(line)
        audit.warning(
            "%s from %s is refused %s: %s on %s %.255r", principal, where, api, operation, kind, name
        )


class Rights:
    """The rights of one client: ``principal`` at the address ``host``; ``where`` is its connection in words.
    Hub side.

    ``api`` is the API of its request. ``quiet`` denials are not written to the audit log: the answer only
    leaves something out.
    """

    def __init__(self, table: AclTable, denials: Denials, principal: str, host: str, where: str = "") -> None:
        self._table = table
        self._denials = denials
        self._principal = principal
        self._hosts = hosts_of(host)
        self._where = where or host

    @property
    def version(self) -> int:
        """Another number with every change of the lists."""
        return self._table.version

    def may(self, api: str, operation: Operation, kind: ResourceType, name: str, quiet: bool = False) -> bool:
        """Whether it may do this to a resource."""
        if self._table.operations(self._principal, self._hosts, kind, name) >> operation & 1:
            return True
        if not quiet:
            self._refuse(api, operation, kind, name)
        return False

    def allowed(
        self, api: str, operation: Operation, kind: ResourceType, names: Iterable[str], quiet: bool = False
    ) -> set[str]:
        """To which of these resources it may do this. May wait as a green thread if there are many."""
        return {name for name in Pace().over(names) if self.may(api, operation, kind, name, quiet)}

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether it may do this to any resource of a type. May wait as a green thread."""
        return self._table.may_any(self._principal, self._hosts, operation, kind)

    def operations(self, kind: ResourceType, names: Iterable[str]) -> dict[str, frozenset[Operation]]:
        """All that it may do to each resource. May wait as a green thread if there are many."""
        found = {}
        for name in Pace().over(names):
            bits = self._table.operations(self._principal, self._hosts, kind, name)
            found[name] = frozenset(one for one in OPERATIONS[kind] if bits >> one & 1)
        return found

    def _refuse(self, api: str, operation: Operation, kind: ResourceType, name: str) -> None:
        self._denials.tell(self._principal, self._where, api, operation.name, kind.name, name)
