"""Answers about configurations of topics, groups and the broker."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from kafka.errors import InvalidRequestError, UnknownError, UnsupportedVersionError
from kafka.protocol.admin.configs import (
    AlterConfigsResponse,
    DescribeConfigsResponse,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesResponse,
)

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.admin import (
    BROKER_LOGGER,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    DescribedConfigs,
    Resource,
    ResourceType,
)
from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.outcome import Outcome
from dafka.broker.server.answers.naming import as_named, version_of
from dafka.broker.server.answers.sharing import once
from dafka.broker.server.context import Context

_OPERATIONS = tuple(ConfigOperation)
_LISTED = {*ResourceType, BROKER_LOGGER}
_Described = DescribeConfigsResponse.DescribeConfigsResult
_Entry = _Described.DescribeConfigsResourceResult


def describe_configs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    asked = [Resource(one.resource_type, one.resource_name) for one in request.resources]
    wanted = {
        Resource(one.resource_type, one.resource_name): one.configuration_keys for one in request.resources
    }
    if any(one.type not in _LISTED for one in wanted):  # as in Kafka, nothing of the request is answered
        outcome = DescribedConfigs(InvalidRequestError, [], "Unexpected resource type")
        found = dict.fromkeys(wanted, outcome)
    else:
        found = dict(broker.describe_configs(wanted))
    shown = once(partial(_entry, request))
    return DescribeConfigsResponse(
        throttle_time_ms=0,
        results=[
            _Described(
                error_code=error_code(described.error),
                error_message=error_message(described.error, described.detail),
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[shown(entry) for entry in described.entries],
            )
            for resource, described in ((one, found[one]) for one in as_named(asked))
        ],
    )


def _entry(request: Any, entry: ConfigEntry) -> Any:
    return _Entry(
        name=entry.name,
        value=None if entry.sensitive else entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            _Entry.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def alter_configs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Settings that are not in the request return to their defaults."""
    changes = {
        Resource(one.resource_type, one.resource_name): [
            ConfigChange(config.name, ConfigOperation.SET, config.value) for config in one.configs
        ]
        for one in request.resources
    }
    return _altered(broker, request, changes, AlterConfigsResponse, replace=True)


def incremental_alter_configs(broker: BrokerInterface, request: Any, context: Context) -> Any:
    changes = {
        Resource(one.resource_type, one.resource_name): [
            ConfigChange(config.name, config.config_operation, config.value) for config in one.configs
        ]
        for one in request.resources
    }
    return _altered(broker, request, changes, IncrementalAlterConfigsResponse, replace=False)


def _altered(
    broker: BrokerInterface,
    request: Any,
    changes: dict[Resource, list[ConfigChange]],
    response_class: Any,
    *,
    replace: bool,
) -> Any:
    asked = [Resource(one.resource_type, one.resource_name) for one in request.resources]
    twice = {one for one, count in Counter(asked).items() if count > 1}
    once_only = {one: some for one, some in changes.items() if one not in twice}
    forwarded = {one for one, some in once_only.items() if _is_forwarded(one, some)}
    fails = any(change.operation not in _OPERATIONS for one in forwarded for change in once_only[one])
    only_looked_at = fails or bool(request.validate_only)
    outcomes = dict(broker.alter_configs(once_only, replace=replace, validate_only=only_looked_at))
    if fails:  # as in Kafka the controller does nothing of what it gets, and says no more
        good = {one for one, outcome in outcomes.items() if outcome.error is None}
        outcomes.update(dict.fromkeys(good | forwarded, Outcome(UnknownError)))
    detail = "Each resource must appear at most once."
    outcomes.update(dict.fromkeys(twice, Outcome(InvalidRequestError, detail)))
    return response_class(
        throttle_time_ms=0,
        responses=[
            response_class.AlterConfigsResourceResponse(
                error_code=error_code(outcome.error),
                error_message=error_message(outcome.error, outcome.detail),
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, outcome in ((one, outcomes[one]) for one in asked)
        ],
    )


def _is_forwarded(resource: Resource, changes: list[ConfigChange]) -> bool:
    """Whether a change is such that in Kafka the controller looks at it first, and not the broker."""
    names = {change.name for change in changes}
    return (
        resource.type in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLIENT_METRICS)
        and len(names) == len(changes)
        and all(change.value is not None or change.operation == ConfigOperation.DELETE for change in changes)
    )


def list_config_resources(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """Version 0 lists client metrics only."""
    kinds = set(request.resource_types or _LISTED)
    if version_of(request) == 0:
        kinds = {ResourceType.CLIENT_METRICS}
    resource = ListConfigResourcesResponse.ConfigResource
    if not kinds <= _LISTED:
        return ListConfigResourcesResponse(
            throttle_time_ms=0, error_code=error_code(UnsupportedVersionError), config_resources=[]
        )
    found = broker.metadata(None if ResourceType.TOPIC in kinds else ())
    names: list[tuple[str, int]] = [(name, ResourceType.TOPIC) for name in sorted(found.topics)]
    if ResourceType.BROKER in kinds:
        names += [(str(node), ResourceType.BROKER) for node, _, _ in found.brokers]
    if BROKER_LOGGER in kinds:
        names += [(str(node), BROKER_LOGGER) for node, _, _ in found.brokers]
    names += [(name, ResourceType(kind)) for kind, name in broker.configured() if kind in kinds]
    return ListConfigResourcesResponse(
        throttle_time_ms=0,
        error_code=0,
        config_resources=[resource(resource_name=name, resource_type=int(kind)) for name, kind in names],
    )
