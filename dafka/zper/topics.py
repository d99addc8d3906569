"""The topics that ZPER's clients name: created when one writes to them, with one partition."""

from __future__ import annotations

from kafka.errors import (
    KafkaStorageError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import BrokerInterface, TopicSpec
from dafka.broker.interface.groups import Error
from dafka.broker.interface.positions import PartitionPositions
from dafka.broker.limits import BATCH_MAX_BYTES
from dafka.protocol.errors import DafkaError
from dafka.zper.settings import Settings

HOUR_MS = 3_600_000


class TopicRefusedError(DafkaError):
    """Nothing can be written to this topic; ``cause`` is a word for counting."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause = cause
        super().__init__(detail)


def open_partition(broker: BrokerInterface, name: str, number: int, settings: Settings) -> PartitionPositions:
    """The positions of a partition that can be written to; its topic is created if there is none.

    Waits as a green thread. Raises :class:`TopicRefusedError`; KafkaStorageError and LogError if it cannot be
    written at present.
    """
    try:
        ensure(broker, name, number, settings)
        return broker.positions.open(name, number)
    except PolicyViolationError:
        detail = f"topic {name!r} is compacted, and messages would lose their positions"
        raise TopicRefusedError("compacted", detail) from None
    except UnknownTopicOrPartitionError:
        raise TopicRefusedError("topic", f"topic {name!r} was deleted at this moment") from None


def ensure(broker: BrokerInterface, name: str, number: int, settings: Settings) -> None:
    """Create the topic if there is none. Waits as a green thread. Raises :class:`TopicRefusedError`."""
    known = broker.metadata([name]).topics[name]
    if known.error is UnknownTopicOrPartitionError and number == 0:
        error: Error | None = broker.create_topics({name: TopicSpec(1, configs(settings))})[name].error
        if error in (None, TopicAlreadyExistsError):
            return
        if error is KafkaStorageError:
            raise KafkaStorageError(f"topic {name!r} cannot be created now")
        raise TopicRefusedError("topic", f"topic {name!r} cannot be created: {_words(error)}")
    if known.error is UnknownTopicOrPartitionError:
        raise TopicRefusedError("partition", f"there is no topic {name!r} whose partition {number} could be")
    if known.error is not None:
        raise TopicRefusedError("topic", f"topic {name!r}: {_words(known.error)}")
    if number >= len(known.partitions):
        count = len(known.partitions)
        raise TopicRefusedError("partition", f"topic {name!r} has {count} partitions, and no number {number}")
    if not known.partitions[number].writable:
        raise TopicRefusedError("partition", f"only a native producer writes partition {number} of {name!r}")


def configs(settings: Settings) -> dict[str, str]:
    """The configuration of a topic that a ZPER client creates."""
    hours = settings.retain_hours
    return {
        "retention.ms": str(-1 if hours == -1 else min(hours * HOUR_MS, 2**63 - 1)),
        # Of a message of many small frames, or of one that has its first frame twice.
        "max.message.bytes": str(min(2 * settings.max_message + 1024 * 1024, BATCH_MAX_BYTES)),
    }


def _words(error: Error | None) -> str:
    return "" if error is None else f"{error.__name__} ({error.description})"
