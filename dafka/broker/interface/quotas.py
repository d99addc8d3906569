"""The part of the broker interface about quotas: how much clients may send, read and have computed.

See :mod:`dafka.broker.interface.broker` for what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Outcome

Entity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: kinds ("user", "client-id") with names; a name of None is the default of its kind."""


class QuotaChange(NamedTuple):
    """The new value of a quota; None removes it."""

    key: str
    value: float | None


class QuotaChanges(NamedTuple):
    """The changes for one entity."""

    entity: Entity
    changes: Sequence[QuotaChange]


class Match(IntEnum):
    """Which names of a kind a filter finds; Kafka's numbers (DescribeClientQuotasRequest)."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(NamedTuple):
    """A condition on the entity's name of this kind."""

    kind: str
    match: int
    name: str | None = None


class DescribedQuotas(NamedTuple):
    """Quotas by entity and key, or why they cannot be described."""

    error: Error | None
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    detail: str = ""


class QuotaInterface(ABC):
    """How much clients may send, read and have computed."""

    @abstractmethod
    def describe_quotas(self, filters: Sequence[QuotaFilter], strict: bool = False) -> DescribedQuotas:
        """The entities that all filters find; ``strict``: those that have no further kind.

        Errors: InvalidRequestError, UnsupportedVersionError (a kind that is not known).
        """

    @abstractmethod
    def alter_quotas(self, altered: Sequence[QuotaChanges], validate_only: bool = False) -> list[Outcome]:
        """Change quotas, or only check the changes; for each entity all of it or nothing.

        Errors: InvalidRequestError (entity, key or value), PolicyViolationError (too many),
        KafkaStorageError.
        """
