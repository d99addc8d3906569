"""Copying the settings that were made for topics, as far as the destination accepts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dafka.broker.interface.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    Resource,
    ResourceType,
)
from dafka.broker.interface.outcome import Outcome
from dafka.migrating.checkpoint import Checkpoint
from dafka.migrating.errors import MigrationError
from dafka.migrating.servers import Side

Settings = Mapping[str, str]

# They are about the source's replicas, by their number or their brokers, and those are not copied.
ABOUT_REPLICAS = frozenset(
    (
        "min.insync.replicas",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    )
)


def settings_of(side: Side, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """The settings that were made for the topics themselves."""
    resources = {Resource(ResourceType.TOPIC, name): None for name in topics}
    if not resources:
        return {}
    described = side.connection.call("describe_configs", resources)
    found = {}
    for resource, answer in described.items():
        if answer.error is not None:
            raise MigrationError(f"{side.name}: settings of {resource.name}: {answer.error.__name__}")
        found[resource.name] = {
            entry.name: entry.value
            for entry in answer.entries
            if entry.source == ConfigSource.TOPIC and entry.value is not None
        }
    return found


def finish(source: Side, destination: Side, checkpoint: Checkpoint, topics: Iterable[str]) -> list[str]:
    """Give the topics that were made here the settings of the source's; returns those left out, in words."""
    created = checkpoint.topics()
    ours = [name for name in topics if created.get(name)]
    return [
        f"{name}: {problem}"
        for name, settings in settings_of(source, ours).items()
        for problem in _take_over(destination, name, settings)
    ]


def _take_over(destination: Side, topic: str, settings: Settings) -> list[str]:
    """Set what the destination accepts; returns the refused settings with their reasons."""
    problems = []
    taken: dict[str, str] = {}
    for key, value in sorted(settings.items()):
        if key in ABOUT_REPLICAS:
            problems.append(f"{key}={value}: it is about replicas, which are not copied")
        else:
            taken[key] = value
    outcome = _set(destination, topic, taken)
    if outcome.error is None:
        return problems
    wanted, taken = taken, {}
    for key, value in wanted.items():  # an unknown setting has all of them refused
        outcome = _set(destination, topic, {**taken, key: value}, validate_only=True)
        if outcome.error is None:
            taken[key] = value
        else:
            problems.append(f"{key}={value}: {outcome.detail or outcome.error.__name__}")
    outcome = _set(destination, topic, taken)
    if outcome.error is not None:
        problems.append(f"all others: {outcome.detail or outcome.error.__name__}")
    return problems


def _set(destination: Side, topic: str, settings: Settings, validate_only: bool = False) -> Outcome:
    resource = Resource(ResourceType.TOPIC, topic)
    changes = [ConfigChange(key, ConfigOperation.SET, value) for key, value in settings.items()]
    answers = destination.connection.call(
        "alter_configs", {resource: changes}, replace=True, validate_only=validate_only
    )
    outcome: Outcome = answers[resource]
    return outcome
