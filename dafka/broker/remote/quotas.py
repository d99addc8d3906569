"""The part of a remote broker about quotas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.outcome import Outcome
from dafka.broker.interface.quotas import DescribedQuotas, Entity, QuotaChanges, QuotaFilter, QuotaInterface
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.controller import ask_controller


class RemoteQuotas(QuotaInterface):
    """The quotas of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def describe_quotas(self, filters: Sequence[QuotaFilter], strict: bool = False) -> DescribedQuotas:
        """Raises KafkaError: the cluster cannot be asked."""
        part = DescribeClientQuotasRequest.ComponentData
        components = [
            part(entity_type=kind, match_type=int(match), match=name) for kind, match, name in filters
        ]
        response = self._cluster.ask_any(DescribeClientQuotasRequest(components=components, strict=strict))
        return DescribedQuotas(
            error_of(response.error_code),
            {
                tuple((part.entity_type, part.entity_name) for part in one.entity): {
                    value.key: value.value for value in one.values
                }
                for one in response.entries or ()
            },
            response.error_message or "",
        )

    def alter_quotas(self, altered: Sequence[QuotaChanges], validate_only: bool = False) -> list[Outcome]:
        entry: Any = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    ops=[
                        entry.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in changes
                    ],
                )
                for entity, changes in altered
            ],
            validate_only=validate_only,
        )
        keys = [_in_order(entity) for entity, _ in altered]
        outcomes = ask_controller(self._cluster, request, keys, _by_entity)
        return [outcomes[key] for key in keys]


def _by_entity(response: Any) -> dict[Entity, Any]:
    return {
        _in_order([(part.entity_type, part.entity_name) for part in one.entity]): one
        for one in response.entries
    }


def _in_order(entity: Sequence[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(entity, key=lambda one: one[0]))
