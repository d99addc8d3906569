"""Imports topics of a Java server's folder into a broker, with their positions.

Each message keeps its position. So a whole topic is imported into a topic that does not exist yet. An import
that was interrupted goes on when it is called again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka.errors import KafkaError, PolicyViolationError

from dafka.broker.connecting import Connection
from dafka.broker.interface.broker import LATEST
from dafka.broker.interface.positions import PartitionPositions
from dafka.protocol.batch_writer import encode_columns
from dafka.protocol.errors import DafkaError
from dafka.protocol.raw import records_of_octets
from dafka.zper.settings import Settings
from dafka.zper.takeover.java_folder import JavaTopic
from dafka.zper.topics import ensure

_BATCH_OCTETS = 1024 * 1024
_BATCH_MESSAGES = 10_000


class ImportRefusedError(DafkaError):
    """A topic cannot be imported."""


class Imported(NamedTuple):
    """A topic that was imported."""

    topic: str
    messages: int
    """Without those of an earlier import."""
    first: int
    end: int
    left_out: int
    """Octets at the end that are not a whole message."""


def import_topic(connection: Connection, topic: JavaTopic, settings: Settings) -> Imported:
    """Import a topic. From any thread; raises ImportRefusedError, and what reading the folder raises."""
    return _Import(connection, topic, settings).run()


class _Import:
    def __init__(self, connection: Connection, topic: JavaTopic, settings: Settings) -> None:
        self._run = connection.hub.run
        self._broker = connection.broker
        self._topic = topic
        self._settings = settings

    def run(self) -> Imported:
        positions = self._run(self._open)
        first, position = self._topic.first, self._topic.first
        known = self._run(lambda: positions.end)
        count = 0
        for messages, modified in self._batches():
            octets = b"".join(messages)
            if position + len(octets) <= known:
                self._compare(positions, position, octets)
            elif position < known:
                raise self._refused(f"it has other messages before position {known}")
            else:
                self._run(self._write, positions, position, messages, modified)
                count += len(messages)
            position += len(octets)
        if position < known:
            raise self._refused(f"it has messages behind position {position}, which the folder has not")
        return Imported(self._topic.name, count, first, position, self._topic.left_out)

    def _open(self) -> PartitionPositions:
        name, broker = self._topic.name, self._broker
        begun = (name, 0) in broker.positions.partitions()
        ensure(broker, name, 0, self._settings)
        if not begun and broker.list_offsets({(name, 0): LATEST})[name, 0].offset > 0:
            raise self._refused("it exists, with messages of others")
        try:
            positions = broker.positions.open(name, 0, base=self._topic.first)
        except PolicyViolationError as error:
            raise self._refused(str(error)) from error
        positions.catch_up()
        return positions

    def _batches(self) -> Iterator[tuple[list[bytes], int]]:
        """Messages that fit into a record batch, of one file. The same ones at every import."""
        for messages, modified in self._topic.read(allow_empty=self._settings.allow_empty_message):
            begin = octets = 0
            for place, message in enumerate(messages):
                if place > begin and (
                    octets + len(message) > _BATCH_OCTETS or place - begin == _BATCH_MESSAGES
                ):
                    yield messages[begin:place], modified
                    begin, octets = place, 0
                octets += len(message)
            if messages:
                yield messages[begin:], modified

    def _write(
        self, positions: PartitionPositions, position: int, messages: list[bytes], modified: int
    ) -> None:
        key = self._topic.name, 0
        batch = encode_columns([modified] * len(messages), *records_of_octets(messages))
        try:
            produced = self._broker.produce({key: [batch]}, trusted=True)[key]
            if produced.error is not None:
                raise produced.error()
            assert produced.base_offset is not None
            at = positions.advance(produced.base_offset, list(map(len, messages)))
        except KafkaError as error:
            raise self._refused(f"messages from position {position} on: {error}") from error
        if at != position:
            raise self._refused(f"another program writes to it: position {position} has become {at}")

    def _compare(self, positions: PartitionPositions, position: int, octets: bytes) -> None:
        """An import that was interrupted has written the beginning."""
        while octets:
            there = self._run(positions.read, position, len(octets))
            if not there or not octets.startswith(there):
                raise self._refused(f"it has other messages at position {position}")
            octets = octets[len(there) :]
            position += len(there)

    def _refused(self, why: str) -> ImportRefusedError:
        return ImportRefusedError(f"topic {self._topic.name} cannot be imported: {why}")
