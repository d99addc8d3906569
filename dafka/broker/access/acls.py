"""Access control lists: the log's table ``acls``, and what they decide.

A row is named by a digest of the entry and has its fields, so an entry is there once. The rules are those of
:mod:`dafka.security.acls.rules`. The rights of a principal to a resource are computed once and cached until
the lists change. Every change raises :attr:`AclTable.version`, which tells waiting requests to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from gevent.lock import BoundedSemaphore
from kafka.errors import InvalidRequestError, KafkaStorageError, PolicyViolationError

from dafka.broker import limits
from dafka.broker.interface.access import AclInterface, DeletedAcls
from dafka.broker.interface.outcome import Outcome
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogError, shapes
from dafka.log.repeating import bounded_logger
from dafka.security.acls.matching import Filters
from dafka.security.acls.options import ServerAcls
from dafka.security.acls.rules import EVERYTHING, Rules
from dafka.security.acls.terms import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    why_none,
)

log = bounded_logger(__name__)

ACLS = "acls"

_LOOKED_AT_ONCE = 16  # entries, each of which a thousand filters may take

_Decision = tuple[str, tuple[str, ...], ResourceType, str]


class AclTable(AclInterface):
    """The access control lists of one broker. Hub side."""

    def __init__(self, hub: Hub, log: Log, writer: Writer, options: ServerAcls) -> None:
        self._hub = hub
        self._writer = writer
        self._super_users = frozenset(options.super_users)
        self._otherwise = EVERYTHING if options.allow_everyone_if_no_acl_found else 0
        table = log.table(ACLS, shapes.RowShape(shapes.any_key, _is_acl))
        # Plain tuples, which equal their Acl: collections of garbage pass over them.
        self._known = dict.fromkeys(tuple(value) for _, value in Pace().over(table.items()))
        self._rules = Rules(Pace().over(self._known))
        self._decisions: dict[_Decision, int] = {}
        self._any: dict[tuple[str, tuple[str, ...], Operation, ResourceType], bool] = {}
        self._changing = BoundedSemaphore(1)
        self.version = 0

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._known)

    # -- decisions ------------------------------------------------------------------------------

    def operations(self, principal: str, hosts: tuple[str, ...], kind: ResourceType, name: str) -> int:
        """The operations that a principal may do to a resource; see :mod:`dafka.security.acls.rules`."""
        key = principal, hosts, kind, name
        found = self._decisions.get(key)
        if found is None:
            if principal in self._super_users:
                return EVERYTHING
            if len(self._decisions) >= limits.ACL_DECISIONS:
                self._decisions.clear()
            found = self._rules.operations(*key, self._otherwise)
            if 4 * len(name) <= limits.ACL_OCTETS:  # a client may name megabytes
                self._decisions[key] = found
        return found

    def may_any(
        self, principal: str, hosts: tuple[str, ...], operation: Operation, kind: ResourceType
    ) -> bool:
        """Whether a principal may do this to any resource of a type. May wait as a green thread."""
        if self.operations(principal, hosts, kind, "hardcode") >> operation & 1:
            return True  # that name is Kafka's
        key = principal, hosts, operation, kind
        found = self._any.get(key)
        if found is None:
            version = self.version
            found = self._rules.may_any(*key, over=Pace().over)
            if version == self.version:
                if len(self._any) >= limits.ACL_DECISIONS:
                    self._any.clear()
                self._any[key] = found
        return found

    # -- the interface --------------------------------------------------------------------------

    def describe_acls(self, wanted: AclFilter) -> list[Acl]:
        if wanted.is_unknown:
            raise InvalidRequestError("The AclBindingFilter must not contain UNKNOWN elements.")
        return self._taken(wanted)

    def _taken(self, wanted: AclFilter) -> list[Acl]:
        only = wanted.only
        if only is not None:
            return [only] if only in self._known else []
        rows = Pace().over(list(self._known))
        return [acl for acl in map(_read, rows) if wanted.takes(acl) and acl in self._known]

    def create_acls(self, acls: Sequence[Acl]) -> list[Outcome]:
        return run_to_completion(self._hub, self._create, acls)

    def _create(self, acls: Sequence[Acl]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        with self._changing:
            pace = Pace()
            for some in in_pieces(acls, limits.ACL_ROUND):
                outcomes += self._create_some(some)
                pace.rest()
        return outcomes

    def _create_some(self, acls: Sequence[Acl]) -> list[Outcome]:
        found: dict[Acl, Outcome] = {}
        new: list[Acl] = []
        for acl in acls:
            detail = why_none(acl) or _too_long(acl)
            if detail:
                found[acl] = Outcome(InvalidRequestError, detail)
            elif acl in self._known or acl in found:
                found[acl] = Outcome(None)
            elif len(self._known) + len(new) >= limits.ACLS_KEPT:
                detail = f"there are {limits.ACLS_KEPT} entries of access control lists already"
                found[acl] = Outcome(PolicyViolationError, detail)
            else:
                found[acl] = Outcome(None)
                new.append(acl)
        failed = self._write(new, True) if new else None
        if failed is not None:
            found.update(dict.fromkeys(new, failed))
        return [found[acl] for acl in acls]

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        return run_to_completion(self._hub, self._delete, filters)

    def _delete(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        if sum(one.only is None for one in Pace().over(filters)) > limits.ACL_FILTERS:
            words = f"{limits.ACL_FILTERS} filters of a request, at most, match more than one entry"
            return [DeletedAcls(PolicyViolationError, (), words) for _ in filters]
        with self._changing:
            taken = _Taken(len(filters))
            refused = self._take(filters, taken)
            if refused is not None:
                return [refused for _ in filters]
            gone, failed = self._delete_some(list(taken.meant))
            return [
                _outcome(None if one.is_unknown else some, gone, failed)
                for one, some in Pace().over(zip(filters, taken.by_filter, strict=True), every=1)
            ]

    def _take(self, filters: Sequence[AclFilter], taken: _Taken) -> DeletedAcls | None:
        """Find what each of the filters takes; the refusal if it is too much. The entries must not change
        meanwhile."""
        pace = Pace()
        several: list[int] = []
        for number, one in enumerate(pace.over(filters)):
            only = one.only
            if only is None:
                several.append(number)
            elif only in self._known:
                taken.add(only, number)
        found = Filters([filters[number] for number in several], pace.over)
        for row in pace.over(self._known, every=_LOOKED_AT_ONCE):
            if taken.refusal is not None:
                break
            acl = None
            for number in found.taking(row):
                acl = acl or _read(row)
                taken.add(acl, several[number])
        return taken.refusal

    def _delete_some(self, meant: list[Acl]) -> tuple[set[Acl], Outcome | None]:
        """Delete them; those that are gone, and the error that the others were left for."""
        gone: set[Acl] = set()
        pace = Pace()
        for some in in_pieces(meant, limits.ACL_ROUND):
            failed = self._write(some, False)
            if failed is not None:
                return gone, failed
            gone.update(some)
            pace.rest()
        return gone, None

    def _write(self, some: Iterable[Acl], add: bool) -> Outcome | None:
        """Commit, and apply it to the rules; returns the error, None if there was none."""
        try:
            self._writer.put_and_wait({(ACLS, _key(acl)): _row(acl) if add else None for acl in some})
        except LogError as error:
            log.error("access control lists could not be changed: %s", error)
            return Outcome(KafkaStorageError, str(error))
        for acl in some:
            if add:
                self._known[tuple(_row(acl))] = None
                self._rules.add(acl)
            else:
                del self._known[acl]
                self._rules.remove(acl)
        self.version += 1
        self._decisions.clear()
        self._any.clear()
        return None


class _Taken:
    """The entries that a request's filters take: those of each filter, and all of them."""

    def __init__(self, filters: int) -> None:
        self.by_filter: list[list[Acl]] = [[] for _ in range(filters)]
        self.meant: dict[Acl, None] = {}
        self._listed = 0

    def add(self, acl: Acl, number: int) -> None:
        """The filter of this number takes an entry."""
        self.by_filter[number].append(acl)
        self.meant[acl] = None
        self._listed += 1

    @property
    def refusal(self) -> DeletedAcls | None:
        """The refusal of the request if they are too many."""
        if len(self.meant) > limits.ACLS_DELETED:
            words = f"Cannot remove more than {limits.ACLS_DELETED} acls in a single delete operation."
            return DeletedAcls(InvalidRequestError, (), words)
        if self._listed > limits.ACLS_LISTED:
            words = f"the filters of a request take {limits.ACLS_LISTED} entries at most, counted for each"
            return DeletedAcls(PolicyViolationError, (), words)
        return None


def _outcome(taken: list[Acl] | None, gone: set[Acl], failed: Outcome | None) -> DeletedAcls:
    """What a filter is answered that took these; entries that several took are in the answer of each."""
    if taken is None:
        return DeletedAcls(InvalidRequestError, (), "Unknown elements in the filter.")
    if failed is None or not taken:
        return DeletedAcls(None, taken)
    left = [acl for acl in taken if acl not in gone]
    if not left:
        return DeletedAcls(None, taken)
    return DeletedAcls(failed.error, [acl for acl in taken if acl in gone], failed.detail, left)


def _too_long(acl: Acl) -> str:
    if 4 * (len(acl.name) + len(acl.principal) + len(acl.host)) <= limits.ACL_OCTETS:
        return ""
    for what, text in (("name", acl.name), ("principal", acl.principal), ("host", acl.host)):
        if len(text.encode(errors="replace")) > limits.ACL_OCTETS:
            return f"a {what} has {limits.ACL_OCTETS} octets at most"
    return ""


def _key(acl: Acl) -> str:
    kind, name, pattern, principal, host, operation, permission = acl
    text = (
        f"{kind:d} {pattern:d} {operation:d} {permission:d} {len(name)} {len(host)} {name} {host} {principal}"
    )
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _row(acl: Acl) -> list[Any]:
    return [field if type(field) is str else int(field) for field in acl]


_MEMBERS = [{int(one): one for one in kind} for kind in (ResourceType, PatternType, Operation, Permission)]
_TYPES = [int, str, int, str, str, int, int]


def _read(row: Sequence[Any]) -> Acl:
    """The inverse of :func:`_row`. Raises KeyError."""
    kind, name, pattern, principal, host, operation, permission = row
    kinds, patterns, operations, permissions = _MEMBERS
    return Acl(
        kinds[kind],  # type: ignore[arg-type]
        name,
        patterns[pattern],  # type: ignore[arg-type]
        principal,
        host,
        operations[operation],  # type: ignore[arg-type]
        permissions[permission],  # type: ignore[arg-type]
    )


def _is_acl(key: str, value: Any) -> object:
    if type(value) is not list or list(map(type, value)) != _TYPES:
        return False
    try:
        acl = _read(value)
    except KeyError:
        return False
    return key == _key(acl) and not (why_none(acl) or _too_long(acl))
