"""Committed offsets of consumer groups, translated to where the records are in the destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafka.errors import KafkaError

from dafka.broker.interface.groups import CommittedOffset
from dafka.migrating.checkpoint import Progress, TopicPartition
from dafka.migrating.errors import MigrationError
from dafka.migrating.servers import Side


def copy_groups(
    source: Side, destination: Side, partitions: Mapping[TopicPartition, Progress], patterns: Sequence[str]
) -> dict[str, int]:
    """Commit in the destination what groups have committed in the source; offsets by group.

    Raises MigrationError if the destination refuses them, as for a group that has members there.
    """
    copied = {}
    for group in chosen_groups(source, patterns):
        try:
            committed = source.connection.call("fetch_offsets", group)
            offsets = {
                key: CommittedOffset(partitions[key].translate(position.offset), position.metadata)
                for key, position in committed.items()
                if key in partitions
            }
            if not offsets:
                continue
            outcomes = destination.connection.call("commit_offsets", group, offsets)
        except KafkaError as error:
            raise MigrationError(f"group {group}: {error}") from error
        errors = {error.__name__ for error in outcomes.values() if error is not None}
        if errors:
            raise MigrationError(
                f"{destination.name} refuses the offsets of group {group}: {', '.join(sorted(errors))}; "
                "has it members there already?"
            )
        copied[group] = len(offsets)
    return copied


def chosen_groups(source: Side, patterns: Sequence[str]) -> list[str]:
    """The groups that match one of the patterns. Raises MigrationError for a pattern without any, but "*"."""
    if not patterns:
        return []
    try:
        listed = source.connection.call("list_groups")
    except KafkaError as error:
        raise MigrationError(f"{source.name} does not list its groups: {error}") from error
    names = sorted(one.group for one in listed)
    for pattern in patterns:
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
            raise MigrationError(f"{source.name} has no group {pattern}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
