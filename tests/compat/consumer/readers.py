"""Consumers that poll in threads of their own, as members of one group, for tests of what a group does."""

from __future__ import annotations

import threading
import time
from typing import Any

from compat.kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from compat.kafka.errors import CommitFailedError, RebalanceInProgressError


class Recorder(ConsumerRebalanceListener):
    """Notes what a member is told, in one list that several may share."""

    def __init__(self, calls: list[Any] | None = None, name: str = "") -> None:
        self.calls: list[Any] = [] if calls is None else calls
        self.name = name

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._note("revoked", revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._note("assigned", assigned)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._note("lost", lost)

    def _note(self, what: str, partitions: set[TopicPartition]) -> None:
        self.calls.append((self.name, what, set(partitions), threading.get_ident()))

    def told(self) -> list[tuple[str, set[int]]]:
        """What this one was told, with the partitions' numbers."""
        mine = [call for call in self.calls if call[0] == self.name]
        return [(what, {partition.partition for partition in some}) for _, what, some, _ in mine]


class Reader:
    """A consumer and the thread that polls it; it commits each batch, and only then has it ``read`` it."""

    def __init__(self, consumer: KafkaConsumer, delay: float = 0.0) -> None:
        self.consumer = consumer
        self.read: list[int] = []
        self.error: Exception | None = None
        self._delay = delay
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                batches = self.consumer.poll(50)
                time.sleep(self._delay)
                if batches and self._committed():
                    self.read += [int(one.value) for records in batches.values() for one in records]
        except Exception as error:
            self.error = error

    def _committed(self) -> bool:
        try:
            self.consumer.commit()
        except (CommitFailedError, RebalanceInProgressError):
            return False
        return True

    def stop(self) -> None:
        """Stop polling."""
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def leave(self) -> None:
        """Stop polling, and leave the group."""
        self.stop()
        self.consumer.close()

    def crash(self) -> None:
        """Stop polling and heartbeats without leaving, as a process that dies."""
        self.stop()
        silence(self.consumer)


def silence(consumer: KafkaConsumer) -> None:
    """End a consumer's heartbeats."""
    member: Any = consumer._member
    consumer._client.call(member.session._stop_heart)


def settled(consumers: list[KafkaConsumer], partitions: int) -> bool:
    """Whether these are the members of one stable generation that share so many partitions."""
    metadata = [consumer.group_metadata() for consumer in consumers]
    assignments = [consumer.assignment() for consumer in consumers]
    return (
        {one.state for one in metadata} == {"<stable>"}
        and len({one.generation_id for one in metadata}) == 1
        and sum(map(len, assignments)) == len(set().union(*assignments)) == partitions
    )
