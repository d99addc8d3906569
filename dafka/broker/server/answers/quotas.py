"""Answers about quotas of clients."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin.client_quotas import AlterClientQuotasResponse, DescribeClientQuotasResponse

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.quotas import QuotaChange, QuotaChanges, QuotaFilter
from dafka.broker.server.context import Context

_Altered = AlterClientQuotasResponse.EntryData
_Described = DescribeClientQuotasResponse.EntryData


def describe_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The quotas that a filter finds."""
    filters = [QuotaFilter(one.entity_type, one.match_type, one.match) for one in request.components]
    found = broker.describe_quotas(filters, request.strict)
    return DescribeClientQuotasResponse(
        throttle_time_ms=0,
        error_code=error_code(found.error),
        error_message=error_message(found.error, found.detail) if found.error else "",
        entries=None
        if found.error
        else [
            _Described(
                entity=[_Described.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[_Described.ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in found.quotas.items()
        ],
    )


def alter_client_quotas(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Change quotas, each entity by itself."""
    altered = [
        QuotaChanges(
            tuple({one.entity_type: one.entity_name for one in entry.entity}.items()),
            [QuotaChange(one.key, None if one.remove else one.value) for one in entry.ops],
        )
        for entry in request.entries
    ]
    outcomes = broker.alter_quotas(altered, request.validate_only)
    by_entity = {one.entity: outcome for one, outcome in zip(altered, outcomes, strict=True)}
    return AlterClientQuotasResponse(
        throttle_time_ms=0,
        entries=[
            _Altered(
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail) if outcome.error else None,
                entity=[_Altered.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, outcome in by_entity.items()
        ],
    )
