"""How far a migration has come, in an SQLite file.

Batches are noted before they are produced, each with the offsets behind it on both sides, so that
the destination's end tells exactly how far a migration came that was killed (see ``copying.py``).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from dafka.migrating.errors import MigrationError
from dafka.protocol.json_text import read_json

TopicPartition = tuple[str, int]

SCHEMA = """
CREATE TABLE IF NOT EXISTS migration (source TEXT, destination TEXT);
CREATE TABLE IF NOT EXISTS topics (name TEXT PRIMARY KEY, created INTEGER);
CREATE TABLE IF NOT EXISTS partitions (
    topic TEXT, number INTEGER, source_start INTEGER, destination_start INTEGER, source INTEGER,
    destination INTEGER, producer_id INTEGER, epoch INTEGER, sequence_start INTEGER, planned TEXT,
    PRIMARY KEY (topic, number));
CREATE TABLE IF NOT EXISTS shifts (
    topic TEXT, number INTEGER, source INTEGER, destination INTEGER, PRIMARY KEY (topic, number, source));
"""


@dataclass
class Progress:
    """A partition: everything below ``source`` is copied, ``destination`` is where the next record goes.

    ``shifts`` are the places (source offset, destination offset) from which on the distance of the two is
    another one: markers of transactions, aborted and compacted records have offsets and are not copied.
    ``planned`` are the offsets (destination, source) behind each batch that is being produced.
    """

    topic: str
    number: int
    source_start: int
    destination_start: int
    source: int
    destination: int
    producer_id: int = -1
    epoch: int = -1
    sequence_start: int = 0  # the destination's offset that has the producer's sequence 0
    planned: list[tuple[int, int]] = field(default_factory=list)
    shifts: list[tuple[int, int]] = field(default_factory=list)
    saved: int = -1  # shifts in front of this offset of the source are in the file for good

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.number

    @property
    def count(self) -> int:
        """Records copied."""
        return self.destination - self.destination_start

    def place(self, source: int, destination: int) -> None:
        """Note that the record at one offset of the source has the other offset in the destination."""
        last = self.shifts[-1] if self.shifts else (self.source_start, self.destination_start)
        if source - destination != last[0] - last[1] and source > last[0]:
            self.shifts.append((source, destination))

    def catch_up(self, destination: int) -> bool:
        """Assume that the destination ends there; False if no planned batch ends there."""
        if destination != self.destination:
            source = dict(self.planned).get(destination)
            if source is None:
                return False
            self.destination, self.source = destination, source
        self.planned = []
        self.shifts = [place for place in self.shifts if place[0] < self.source]
        return True

    def translate(self, source: int) -> int:
        """A position in the source as one in the destination: of the next record that is to be read."""
        places = [(self.source_start, self.destination_start), *self.shifts]
        index = max(bisect_right(places, (source, 1 << 62)) - 1, 0)
        start, destination = places[index]
        limit = places[index + 1][1] if index + 1 < len(places) else self.destination
        return min(destination + max(source - start, 0), limit)


class Checkpoint:
    """The file. Its methods may be called from any thread."""

    def __init__(self, path: str, source: str, destination: str) -> None:
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=0)
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("BEGIN EXCLUSIVE")
            self._database.execute("COMMIT")
            self._database.executescript(SCHEMA)
            row = self._database.execute("SELECT source, destination FROM migration").fetchone()
        except sqlite3.OperationalError as error:
            raise MigrationError(f"{path} is in use, or cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            raise MigrationError(f"{path} is not a checkpoint of a migration: {error}") from error
        if row is None:
            self._database.execute("INSERT INTO migration VALUES (?, ?)", (source, destination))
        elif row != (source, destination):
            raise MigrationError(
                f"{path} belongs to a migration between other clusters, from {row[0]} to {row[1]}; this one "
                f"is from {source} to {destination}. Name another file with --checkpoint"
            )

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def topics(self) -> dict[str, bool]:
        """The topics that were begun, and whether the migration created them."""
        with self._lock:
            rows = self._database.execute("SELECT name, created FROM topics").fetchall()
        return {name: bool(created) for name, created in rows}

    def begin_topic(self, name: str, created: bool) -> None:
        """Noted before the topic is created, so that an empty one found later is known as our own."""
        with self._lock:
            self._database.execute("INSERT OR REPLACE INTO topics VALUES (?, ?)", (name, created))

    def partitions(self) -> dict[TopicPartition, Progress]:
        """Raises MigrationError for a file that is damaged."""
        with self._lock:
            rows = self._database.execute("SELECT * FROM partitions").fetchall()
            found: dict[TopicPartition, Progress] = {}
            for *values, planned in rows:
                one = Progress(*values)
                try:
                    one.planned = [(ours, theirs) for ours, theirs in read_json(planned)]
                except (ValueError, TypeError, AttributeError) as error:
                    raise MigrationError(f"the checkpoint is damaged: {error}") from error
                found[one.key] = one
            for topic, number, source, destination in self._database.execute(
                "SELECT topic, number, source, destination FROM shifts ORDER BY topic, number, source"
            ):
                found[topic, number].shifts.append((source, destination))
        for one in found.values():
            one.saved = one.source
        return found

    def save(self, progress: Iterable[Progress]) -> None:
        with self._lock:
            self._database.execute("BEGIN")
            for one in progress:
                self._database.execute(
                    "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(one.topic, one.number, one.source_start, one.destination_start, one.source),
                        *(one.destination, one.producer_id, one.epoch, one.sequence_start),
                        json.dumps(one.planned),
                    ),
                )
                self._database.execute(
                    "DELETE FROM shifts WHERE topic = ? AND number = ? AND source >= ?",
                    (one.topic, one.number, one.source),
                )
                self._database.executemany(
                    "INSERT OR REPLACE INTO shifts VALUES (?, ?, ?, ?)",
                    [(one.topic, one.number, *place) for place in one.shifts if place[0] >= one.saved],
                )
                one.saved = one.source
            self._database.execute("COMMIT")
