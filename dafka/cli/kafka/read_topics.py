"""The topics that a command reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from dafka.broker.connecting import Connection


class ReadTopics:
    """The topics that are read: whether they are still there is looked up when no records come.

    A consumer waits for a deleted topic, and for a broker that was stopped, without a word. ``patient``: a
    broker that does not answer may come back.
    """

    def __init__(self, connection: Connection, names: Sequence[str], patient: bool) -> None:
        self.names = list(names)
        self._connection = connection
        self._patient = patient

    def check(self) -> None:
        """Raises click.ClickException for a topic that was deleted, and KafkaError."""
        try:
            found = self._connection.call("metadata", self.names).topics
        except KafkaError:
            if not self._patient:
                raise
            return
        gone = [name for name in self.names if found[name].error is UnknownTopicOrPartitionError]
        if gone:
            raise click.ClickException(f"topic {gone[0]} was deleted")
