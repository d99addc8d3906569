"""Choosing the topics to copy, and creating them in the destination."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafka.errors import KafkaError, TopicAlreadyExistsError

from dafka.broker.interface.broker import TopicSpec
from dafka.migrating.checkpoint import Checkpoint, Progress, TopicPartition
from dafka.migrating.copying import ends_of, starts_of
from dafka.migrating.errors import MigrationError
from dafka.migrating.servers import Side
from dafka.migrating.settings import settings_of

log = logging.getLogger(__name__)

# During the copy nothing may be deleted, and a batch that is encoded anew may be a little longer.
MEANWHILE = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
LONGER = 1 << 20
MAX_MESSAGE = "max.message.bytes"


def chosen(source: Side, patterns: Sequence[str]) -> dict[str, list[int]]:
    """Partitions of the topics that match one of the patterns; without any, of all but the broker's own."""
    topics = source.connection.call("metadata", None).topics
    found = {
        name: [partition.number for partition in topic.partitions]
        for name, topic in topics.items()
        if topic.error is None
        and (any(fnmatchcase(name, one) for one in patterns) if patterns else not name.startswith("__"))
    }
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in found):
            raise MigrationError(f"{source.name} has no topic {pattern}")
    return dict(sorted(found.items()))


def prepare(
    source: Side, destination: Side, checkpoint: Checkpoint, topics: Mapping[str, Sequence[int]]
) -> dict[TopicPartition, Progress]:
    """Make the topics that are missing, and begin the partitions that are not begun yet.

    Raises MigrationError for a topic that was there before with records in it, or has too few partitions.
    """
    known = checkpoint.topics()
    existing = destination.connection.call("metadata", list(topics)).topics
    configs = settings_of(source, topics)
    for name, numbers in topics.items():
        there = existing.get(name)
        if there is None or there.error is not None:
            if name in known and any(key[0] == name for key in checkpoint.partitions()):
                raise MigrationError(f"{name} was being copied and is no longer in {destination.name}")
            checkpoint.begin_topic(name, created=True)
            _create(destination, name, max(numbers) + 1, configs[name])
        else:
            if len(there.partitions) < len(numbers):
                raise MigrationError(
                    f"{name} has {len(there.partitions)} partitions in {destination.name} and "
                    f"{len(numbers)} in {source.name}; add the missing ones there"
                )
            if name not in known:
                checkpoint.begin_topic(name, created=False)

    progress = checkpoint.partitions()
    fresh = [(name, number) for name, numbers in topics.items() for number in numbers]
    fresh = [key for key in fresh if key not in progress]
    starts, ends = starts_of(source, fresh), ends_of(destination, fresh)
    first = starts_of(destination, fresh)
    for key in fresh:
        if ends[key] != first[key]:
            raise MigrationError(
                f"{key[0]}-{key[1]} has records in {destination.name} that this migration has not copied; "
                "delete the topic there, leave it out with --topic, or name the checkpoint that it belongs to"
            )
        progress[key] = Progress(*key, starts[key], ends[key], starts[key], ends[key])
    checkpoint.save([progress[key] for key in fresh])
    return {key: one for key, one in progress.items() if key[0] in topics}


def _create(destination: Side, name: str, partitions: int, configs: Mapping[str, str]) -> None:
    settings = dict(MEANWHILE)
    settings[MAX_MESSAGE] = str(int(configs.get(MAX_MESSAGE, LONGER)) + LONGER)
    try:
        answers = destination.connection.call("create_topics", {name: TopicSpec(partitions, settings)})
    except KafkaError as error:
        raise MigrationError(f"{name} cannot be created in {destination.name}: {error}") from error
    refused, detail = answers[name]
    if refused is not None and refused is not TopicAlreadyExistsError:
        raise MigrationError(f"{name} cannot be created in {destination.name}: {detail or refused.__name__}")
