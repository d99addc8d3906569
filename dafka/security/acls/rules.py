"""The rules of one broker: access control lists, and what they allow.

A resource has the entries of its own name, those of every resource of its type (the literal name ``*``), and
those of its prefixes. Of these, an entry counts that is for the principal or for ``User:*``, and for the host
or for ``*``. An operation that one of them denies is denied; otherwise it is allowed if one of them allows
it. To allow READ, WRITE, DELETE or ALTER is to allow DESCRIBE, and ALTER_CONFIGS is DESCRIBE_CONFIGS, too; to
deny them is not.

The entries of a pattern are kept by principal and host, as two sets of operations, so a decision takes a few
lookups however many entries there are: two for the literal patterns, and one for each length of a prefix.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from dafka.security.acls.terms import (
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

EVERYBODY = "User:*"
"""The principal that everybody is."""

EVERYTHING = sum(1 << one for one in Operation if one > Operation.ALL)
"""Every operation, as a set: operation n is bit n."""

_ALL = 1 << Operation.ALL
_DESCRIBES = sum(1 << one for one in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER))
_DESCRIBES_CONFIGS = 1 << Operation.ALTER_CONFIGS

_DENIED = 16  # the bit from which on a set has what is denied; below is what is allowed
_ALLOWED = (1 << _DENIED) - 1

_Pattern = tuple[int, int, str]  # a resource type, a pattern type and a name
_Whom = tuple[str, str]  # a principal and a host


class Rules:
    """Access control lists, each of them once.

    Plain numbers and texts in tuples and dictionaries: collections of garbage pass over them.
    """

    def __init__(self, acls: Iterable[Acl | tuple[Any, ...]] = ()) -> None:
        self._patterns: dict[_Pattern, dict[_Whom, int]] = {}
        self._of: dict[tuple[int, str, str], dict[_Pattern, None]] = {}
        self._lengths: dict[int, Counter[int]] = {int(one): Counter() for one in ResourceType}
        for acl in acls:
            self.add(acl)

    def add(self, acl: Acl | tuple[Any, ...]) -> None:
        """Add an entry, or the tuple that equals it; one that is there already changes nothing."""
        kind, name, form, principal, host, operation, permission = acl
        kind, whom = int(kind), (principal, host)
        pattern = kind, int(form), name
        entries = self._patterns.get(pattern)
        if entries is None:
            entries = self._patterns[pattern] = {}
            if form == PatternType.PREFIXED:
                self._lengths[kind][len(name)] += 1
        entries[whom] = entries.get(whom, 0) | _bit(operation, permission)
        self._of.setdefault((kind, principal, host), {})[pattern] = None

    def remove(self, acl: Acl) -> None:
        """Remove an entry, if it is there."""
        kind, pattern, whom = int(acl.resource_type), _pattern(acl), (acl.principal, acl.host)
        entries = self._patterns.get(pattern, {})
        if whom not in entries:
            return
        entries[whom] &= ~_bit(acl.operation, acl.permission)
        if entries[whom]:
            return
        del entries[whom]
        key = kind, *whom
        mine = self._of[key]
        del mine[pattern]
        if not mine:
            del self._of[key]
        if not entries:
            del self._patterns[pattern]
            if acl.pattern is PatternType.PREFIXED:
                lengths = self._lengths[kind]
                lengths[len(acl.name)] -= 1
                if not lengths[len(acl.name)]:
                    del lengths[len(acl.name)]

    def operations(
        self, principal: str, hosts: Collection[str], kind: ResourceType, name: str, otherwise: int = 0
    ) -> int:
        """The operations that a principal may do to a resource from a host, as a set; ``hosts`` are the
        host's names.

        ``otherwise``: the operations allowed to everybody on a resource to which no entry applies.
        """
        found = 0
        whom = [(one, host) for one in (principal, EVERYBODY) for host in (*hosts, WILDCARD)]
        some = False
        for pattern in self._applying(kind, name):
            entries = self._patterns.get(pattern)
            if entries is None:
                continue
            some = True
            for one in whom:
                found |= entries.get(one, 0)
        return _implied(found & _ALLOWED) & ~_expanded(found >> _DENIED) if some else otherwise

    def _applying(self, kind: ResourceType, name: str) -> Iterator[_Pattern]:
        yield kind, PatternType.LITERAL, name
        if name != WILDCARD:
            yield kind, PatternType.LITERAL, WILDCARD
        for length in self._lengths[kind]:
            if length <= len(name):
                yield kind, PatternType.PREFIXED, name[:length]

    def may_any(
        self,
        principal: str,
        hosts: Collection[str],
        operation: Operation,
        kind: ResourceType,
        over: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    ) -> bool:
        """Whether there may be a resource of this type to which the principal may do this.

        As Kafka's ``authorizeByResourceType``: every resource is denied, or every one is allowed, or a
        pattern is allowed that no pattern denies as a whole. ``over`` is what goes through many entries.
        """
        bits = 1 << operation | _ALL
        denied: set[_Pattern] = set()
        allowed: list[_Pattern] = []
        for one in (principal, EVERYBODY):
            for host in (*hosts, WILDCARD):
                for pattern in over(list(self._of.get((kind, one, host), ()))):
                    sets = self._patterns.get(pattern, {}).get((one, host), 0)
                    if sets >> _DENIED & bits:
                        denied.add(pattern)
                    if sets & bits:
                        allowed.append(pattern)
        every = kind, PatternType.LITERAL, WILDCARD
        if every in denied:
            return False
        lengths = {len(name) for _, pattern, name in denied if pattern == PatternType.PREFIXED}
        for pattern in over(allowed):
            name = pattern[2]
            if pattern == every:
                return True
            literal = pattern[1] == PatternType.LITERAL
            if (literal and pattern in denied) or any(
                (kind, PatternType.PREFIXED, name[:length]) in denied
                for length in lengths
                if length <= len(name)
            ):
                continue
            return True
        return False


def _pattern(acl: Acl) -> _Pattern:
    return int(acl.resource_type), int(acl.pattern), acl.name


def _bit(operation: int, permission: int) -> int:
    shift = _DENIED if permission == Permission.DENY else 0
    return 1 << operation + shift


def hosts_of(address: str) -> tuple[str, ...]:
    """The names of a client's host in access control lists: as it is written, and as Java writes it.

    An IPv4 address within IPv6 is the IPv4 address, and a zone does not count.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return (address,)
    if isinstance(found, ipaddress.IPv4Address):
        return (str(found),)
    if found.ipv4_mapped is not None:
        return (str(found.ipv4_mapped),)
    java = ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":"))
    return tuple(dict.fromkeys((found.compressed, java)))


def _expanded(operations: int) -> int:
    return EVERYTHING if operations & _ALL else operations


def _implied(operations: int) -> int:
    """The operations that these allow, with those that they imply."""
    if operations & _ALL:
        return EVERYTHING
    if operations & _DESCRIBES:
        operations |= 1 << Operation.DESCRIBE
    if operations & _DESCRIBES_CONFIGS:
        operations |= 1 << Operation.DESCRIBE_CONFIGS
    return operations
