"""A migration: copy, follow if asked to, translate group offsets, verify, and say what was done."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tqdm import tqdm

from dafka.migrating.checkpoint import Checkpoint, Progress, TopicPartition
from dafka.migrating.copying import Copy, ends_of
from dafka.migrating.errors import MigrationError
from dafka.migrating.groups import chosen_groups, copy_groups
from dafka.migrating.servers import Side, opened
from dafka.migrating.settings import finish
from dafka.migrating.signals import Interrupted, Signals
from dafka.migrating.topics import chosen, prepare
from dafka.migrating.verification import verify


@dataclass(frozen=True)
class Migration:
    """A migration: topics, source and destination, and how they are copied.

    ``source`` and ``destination`` are ``HOST:PORT``, several of them with commas, or folders, and
    ``source_config`` and ``destination_config`` files of Kafka's client properties for them. ``topics`` and
    ``groups`` are names or patterns; without topics all are copied, without groups no offsets. ``jobs``
    partitions are copied at a time; ``checkpoint`` is the file that notes the progress.
    """

    source: str
    destination: str
    checkpoint: str
    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    follow: bool = False
    jobs: int = 4
    verify: bool = True
    source_config: str | None = None
    destination_config: str | None = None


def migrate(migration: Migration) -> int:
    """Do it, with words on standard output and progress on standard error; how many partitions differ.

    Raises MigrationError, and Interrupted after Ctrl-C or SIGTERM: the same migration goes on where it was.
    """
    with ExitStack() as stack:
        stop = stack.enter_context(Signals())
        source = stack.enter_context(opened(migration.source, config=migration.source_config))
        destination = stack.enter_context(
            opened(migration.destination, create=True, config=migration.destination_config)
        )
        if source.cluster_id == destination.cluster_id:
            raise MigrationError("source and destination are the same cluster")
        checkpoint = Checkpoint(migration.checkpoint, source.cluster_id, destination.cluster_id)
        stack.callback(checkpoint.close)
        return _migrate(migration, source, destination, checkpoint, stop)


def _migrate(
    migration: Migration, source: Side, destination: Side, checkpoint: Checkpoint, stop: Signals
) -> int:
    topics = chosen(source, migration.topics)
    chosen_groups(source, migration.groups)  # a wrong name is said before the copy
    partitions = prepare(source, destination, checkpoint, topics)
    before = sum(one.count for one in partitions.values())
    if before:
        print(f"{before:,} records were copied before, according to {migration.checkpoint}")

    with stop.copying():
        _copy(migration, source, destination, checkpoint, partitions, stop)
    count = sum(one.count for one in partitions.values())
    print(
        f"{count:,} records of {len(partitions)} partitions of {len(topics)} topics are in {destination.name}"
    )

    if migration.groups:
        copied = copy_groups(source, destination, partitions, migration.groups)
        print(f"{sum(copied.values())} offsets of {len(copied)} groups are translated")
    different = _verified(migration.jobs, source, destination, partitions, stop) if migration.verify else 0
    for problem in finish(source, destination, checkpoint, topics):
        print(f"settings not taken over: {problem}", file=sys.stderr)
    return different


def _copy(
    migration: Migration,
    source: Side,
    destination: Side,
    checkpoint: Checkpoint,
    partitions: Mapping[TopicPartition, Progress],
    stop: Signals,
) -> None:
    keys, everything = list(partitions), list(partitions.values())
    ends = ends_of(source, keys)
    with _bar(sum(max(ends[key] - partitions[key].source, 0) for key in keys), "copying") as bar:
        lock = threading.Lock()

        def copied(count: int) -> None:
            with lock:
                bar.update(count)

        stopping = threading.Event()
        copy = Copy(source, destination, checkpoint, copied, stopping)
        stop.then(stopping.set)
        copy.run(everything, ends, migration.jobs)
        if migration.follow and not stop.interrupted:
            _follow(copy, everything, migration.jobs, stopping, stop, bar)
            ends = ends_of(source, keys)
            copy.run(everything, ends, migration.jobs)
        if stop.interrupted:
            raise Interrupted
        # Markers of transactions and records that are gone have offsets and are not copied.
        bar.total = bar.n
        bar.refresh()


def _follow(
    copy: Copy,
    partitions: Sequence[Progress],
    jobs: int,
    stopping: threading.Event,
    stop: Signals,
    bar: tqdm,
) -> None:
    """Until Enter or SIGUSR1: the source's producers have been stopped, and clients are about to switch."""
    bar.write(
        "following; when the source's producers are stopped press Enter, or send SIGUSR1 to process "
        f"{os.getpid()}, to copy the rest and end",
        file=sys.stderr,
    )
    bar.total = None
    bar.set_description("following")
    stop.on_switch(stopping.set)
    threading.Thread(target=_read_line, args=(stopping.set,), daemon=True).start()
    copy.run(partitions, None, jobs)
    if not stop.interrupted:
        stopping.clear()


def _read_line(then: Callable[[], object]) -> None:
    if sys.stdin is not None and sys.stdin.readline():  # the end of input is not a wish
        then()


def _verified(
    jobs: int,
    source: Side,
    destination: Side,
    partitions: Mapping[TopicPartition, Progress],
    stop: Signals,
) -> int:
    """Prints what was compared; the number of partitions that differ."""
    with _bar(2 * sum(one.count for one in partitions.values()), "verifying") as bar:
        lock = threading.Lock()

        def read(count: int) -> None:
            if stop.interrupted:
                raise Interrupted  # in the threads that read, too
            with lock:
                bar.update(count)

        results = verify(source, destination, list(partitions.values()), jobs, read)
    different = [one for one in results if not one.equal]
    for one in different:
        print(
            f"{one.topic}-{one.number} differs: {one.source.records:,} records, "
            f"{one.source.digest} in {source.name}; {one.destination.records:,} records, "
            f"{one.destination.digest} in {destination.name}. The source may have let go of records since",
            file=sys.stderr,
        )
    for name in sorted({one.topic for one in results}):
        mine = sorted((one for one in results if one.topic == name), key=lambda one: one.number)
        if all(one.equal for one in mine):
            counts = sum(one.source.records for one in mine)
            combined = _combined([one.source.digest for one in mine])
            print(f"verified {name}: {counts:,} records, checksum {combined} on both sides")
    return len(different)


def _combined(digests: Sequence[str]) -> str:
    """The partitions' digests combined in their order, for the eye."""
    value = 0
    for digest in digests:
        value = (value * 31 + int(digest, 16)) % (1 << 128)
    return f"{value:032x}"


def _bar(total: int, what: str) -> tqdm:
    return tqdm(total=total, desc=what, unit=" records", unit_scale=True, mininterval=0.5)


def checkpoint_name(source: str, destination: str) -> str:
    """The file in which the progress of this migration is noted if none is named."""
    names = (re.sub(r"[^\w.-]+", "_", name).strip("_") for name in (source, destination))
    return f"migration-{'-to-'.join(names)}.sqlite"
