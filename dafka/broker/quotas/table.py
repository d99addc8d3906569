"""The quotas of a broker, in the log's table ``quotas``.

A row is named by its entity as JSON (``[["user","alice"],["client-id",null]]``) and has values by key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Any

from gevent.lock import BoundedSemaphore
from kafka.errors import (
    InvalidRequestError,
    KafkaStorageError,
    PolicyViolationError,
    UnsupportedVersionError,
)

from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.quotas import (
    DescribedQuotas,
    Entity,
    Match,
    QuotaChange,
    QuotaChanges,
    QuotaFilter,
    QuotaInterface,
)
from dafka.broker.limits import QUOTA_ROUND, QUOTAS_KEPT
from dafka.broker.quotas.entities import IP, KINDS, InvalidEntityError, entity, is_found
from dafka.broker.quotas.hosts import Hosts
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogError, shapes
from dafka.log.repeating import bounded_logger
from dafka.protocol.json_text import read_json

log = bounded_logger(__name__)

QUOTAS = "quotas"
PRODUCED, FETCHED, REQUESTED = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATED, CONNECTED = "controller_mutation_rate", "connection_creation_rate"
KEYS = (PRODUCED, FETCHED, REQUESTED, MUTATED)
ADDRESS_KEYS = (CONNECTED,)
_WHOLE = {PRODUCED: ("LONG", 2.0**63), FETCHED: ("LONG", 2.0**63), CONNECTED: ("INT", 2.0**31 - 1)}


class _RefusedError(Exception):
    """Why quotas cannot be changed as asked."""

    def __init__(self, error: type, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Outcome(error, detail)


class QuotaTable(QuotaInterface):
    """The quotas of one broker. Hub side."""

    def __init__(self, hub: Hub, log: Log, writer: Writer) -> None:
        self._hub = hub
        self._writer = writer
        table = log.table(QUOTAS, shapes.RowShape(_is_key, lambda _, value: _is_row(value)))
        self.quotas: dict[Entity, dict[str, float]] = {
            _parsed(key): dict(value) for key, value in table.items()
        }
        self._addresses: dict[str, dict[Entity, None]] = {}  # quotas of their own; the last one counts
        self._placed: dict[Entity, str] = {}  # the address under which each is there
        self._hosts = Hosts()
        for one in self.quotas:
            self._find_address(one)
        unknown = [one for one in self.quotas if _host(one) and one not in self._placed]
        if unknown:
            hub.spawn(self._look_up, unknown)
        self._keys = Counter(key for one in self.quotas.values() for key in one)
        self._changing = BoundedSemaphore(1)

    def has(self, key: str) -> bool:
        """Whether anybody has a quota of this key."""
        return self._keys[key] > 0

    def of_address(self, known: str) -> Mapping[str, float]:
        """The quotas of an address, as sockets write it."""
        entities = self._addresses.get(known)
        return self.quotas.get(((IP, None),) if entities is None else next(reversed(entities)), {})

    def describe_quotas(self, filters: Sequence[QuotaFilter], strict: bool = False) -> DescribedQuotas:
        kinds = [one.kind for one in filters]
        for kind, match, name in filters:
            if not kind:
                return DescribedQuotas(InvalidRequestError, detail="Invalid empty entity type.")
            if kind not in KINDS:
                return DescribedQuotas(
                    UnsupportedVersionError, detail=f"Unsupported entity type {kind[:40]!r}"
                )
            if kinds.count(kind) > 1:
                detail = f"Entity type {kind} cannot appear more than once in the filter."
                return DescribedQuotas(InvalidRequestError, detail=detail)
            if match not in list(Match) or (match == Match.EXACT) is (name is None):
                detail = f"the filter for {kind} has match type {match} and the name {name!r}"
                return DescribedQuotas(InvalidRequestError, detail=detail)
        if IP in kinds and len(kinds) > 1:
            detail = "Invalid entity filter component combination: ip stands alone."
            return DescribedQuotas(InvalidRequestError, detail=detail)
        every = Pace().over(list(self.quotas.items()))
        found = {one: dict(has) for one, has in every if is_found(one, filters, strict)}
        return DescribedQuotas(None, found)

    def alter_quotas(self, altered: Sequence[QuotaChanges], validate_only: bool = False) -> list[Outcome]:
        return run_to_completion(self._hub, self._alter, altered, validate_only)

    def _alter(self, altered: Sequence[QuotaChanges], validate_only: bool) -> list[Outcome]:
        outcomes: list[Outcome] = []
        seen: set[Entity] = set()
        with self._changing:
            self._hosts.look_up(filter(None, (_host(one.entity) for one in altered)))
            pace = Pace()
            for some in in_pieces(altered, QUOTA_ROUND):
                outcomes += self._alter_some(some, validate_only, seen)
                pace.rest()
        return outcomes

    def _alter_some(
        self, altered: Sequence[QuotaChanges], validate_only: bool, seen: set[Entity]
    ) -> list[Outcome]:
        """``seen``: the entities that the request has altered so far."""
        outcomes = []
        new: dict[Entity, dict[str, float]] = {}
        for given, changes in Pace().over(altered, every=16):
            try:
                changed, row = self._checked(given, changes, seen, len(new))
            except _RefusedError as refused:
                outcomes.append(refused.outcome)
            else:
                seen.add(changed)
                new[changed] = row
                outcomes.append(Outcome(None))
        if new and not validate_only:
            try:
                self._write(new)
            except LogError as error:
                log.error("quotas could not be changed: %s", error)
                failed = Outcome(KafkaStorageError, str(error))
                return [one if one.error else failed for one in outcomes]
        return outcomes

    def _checked(
        self, given: Entity, changes: Sequence[QuotaChange], seen: Collection[Entity], new: int
    ) -> tuple[Entity, dict[str, float]]:
        """The entity in its usual order, and all of its quotas after these changes."""
        try:
            changed = entity(given)
        except InvalidEntityError as error:
            raise _RefusedError(InvalidRequestError, str(error)) from error
        host = _host(changed)
        if host and not self._hosts.address(host):
            detail = f"{host} is not a valid IP or resolvable host."
            raise _RefusedError(InvalidRequestError, detail)
        if changed in seen:
            raise _RefusedError(InvalidRequestError, "an entity is altered twice in the same request")
        row = dict(self.quotas.get(changed, {}))
        altered: set[str] = set()
        for key, value in Pace().over(changes):
            if key in altered:
                raise _RefusedError(InvalidRequestError, f"{key[:40]} is altered twice for the same entity")
            altered.add(key)
            if value is None:
                row.pop(key, None)
                continue
            if key not in _keys(changed):
                raise _RefusedError(InvalidRequestError, f"Invalid configuration key {key[:40]!r}")
            problem = _problem(key, value)
            if problem:
                raise _RefusedError(InvalidRequestError, problem)
            row[key] = float(value)
        if row and changed not in self.quotas and len(self.quotas) + new >= QUOTAS_KEPT:
            raise _RefusedError(PolicyViolationError, f"there are quotas for {QUOTAS_KEPT} entities already")
        return changed, row

    def _write(self, new: Mapping[Entity, dict[str, float]]) -> None:
        self._writer.put_and_wait({(QUOTAS, _key(one)): row or None for one, row in new.items()})
        for one, row in new.items():
            self._keys.subtract(self.quotas.pop(one, ()))
            if row:
                self.quotas[one] = row
                self._keys.update(row)
            self._find_address(one)

    def _find_address(self, one: Entity) -> None:
        host = _host(one)
        if not host:
            return
        before = self._placed.pop(one, "")
        if before:
            entities = self._addresses[before]
            del entities[one]
            if not entities:
                del self._addresses[before]
        known = self._hosts.address(host)
        if one not in self.quotas:
            self._hosts.forget(host)
        elif known:
            self._placed[one] = known
            self._addresses.setdefault(known, {})[one] = None

    def _look_up(self, unknown: Sequence[Entity]) -> None:
        """Find the addresses of names that had quotas when the broker started."""
        with self._changing:
            self._hosts.look_up(map(_host, unknown))
            for one in Pace().over(unknown):
                self._find_address(one)
                if one in self.quotas and one not in self._placed:
                    log.warning("%s has a quota without effect: no address of it is known", _host(one))


def _host(one: Entity) -> str:
    """The address, or the name of a host, that an entity is for; "" if it is for something else."""
    return next((name for kind, name in one if kind == IP and name is not None), "")


def _keys(one: Entity) -> Sequence[str]:
    return ADDRESS_KEYS if one[0][0] == IP else KEYS


def _problem(key: str, value: float) -> str:
    if not isfinite(value) or value <= 0:
        return f"Quota {key} must be greater than 0"
    if key not in _WHOLE:
        return ""
    kind, most = _WHOLE[key]
    if value > most:
        return f"Proposed value for {key} is too large for a {kind}."
    return f"{key} cannot be a fractional value." if value % 1.0 > 1e-6 else ""


def _key(one: Entity) -> str:
    return json.dumps(one, separators=(",", ":"))


def _parsed(key: str) -> Entity:
    return entity([(kind, name) for kind, name in read_json(key)])


def _is_key(key: str) -> bool:
    try:
        given = read_json(key)
        if type(given) is not list or not all(
            type(one) is list and len(one) == 2 and type(one[0]) is str and type(one[1]) in (str, type(None))
            for one in given
        ):
            return False
        return _key(_parsed(key)) == key
    except ValueError:
        return False


def _is_row(value: Any) -> bool:
    return (
        type(value) is dict
        and bool(value)
        and all(
            key in (*KEYS, *ADDRESS_KEYS) and type(one) is float and not _problem(key, one)
            for key, one in value.items()
        )
    )
