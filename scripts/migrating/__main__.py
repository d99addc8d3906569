"""The command: copies, follows if asked to, translates group offsets, verifies, and says what it has done."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from kafka.errors import KafkaError
from tqdm import tqdm

from .checkpoint import Checkpoint, Progress, TopicPartition
from .copying import Copy, ends_of
from .errors import MigrationError
from .groups import copy_groups
from .servers import Side, opened
from .settings import finish
from .topics import chosen, prepare
from .verification import verify

DIFFERENT, FAILED, USAGE, INTERRUPTED = 1, 1, 2, 130


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: what is copied is noted."""


def main() -> int:
    """Exit status 0; 1 if it failed or the sides differ; 2 for a wrong command line; 130 if interrupted."""
    options = _parser().parse_args()
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING, format="migrate_topics: %(message)s"
    )
    for library in ("kafka", "dafka"):
        logging.getLogger(library).setLevel(logging.INFO if options.verbose else logging.ERROR)
    path = options.checkpoint or _checkpoint_name(options.source, options.destination)
    try:
        with ExitStack() as stack:
            return _migrate(options, path, stack)
    except (MigrationError, KafkaError) as error:
        print(f"migrate_topics: {error}", file=sys.stderr)
        return FAILED
    except Interrupted:
        print(f"migrate_topics: interrupted; the same command goes on, with {path}", file=sys.stderr)
        return INTERRUPTED


def _migrate(options: argparse.Namespace, path: str, stack: ExitStack) -> int:
    stop = stack.enter_context(_Signals())
    source = stack.enter_context(opened(options.source, config=options.source_config))
    destination = stack.enter_context(
        opened(options.destination, create=True, config=options.destination_config)
    )
    if source.cluster_id == destination.cluster_id:
        raise MigrationError("source and destination are the same cluster")
    checkpoint = Checkpoint(path, source.cluster_id, destination.cluster_id)
    stack.callback(checkpoint.close)
    topics = chosen(source, options.topic)
    partitions = prepare(source, destination, checkpoint, topics)
    before = sum(one.count for one in partitions.values())
    if before:
        print(f"{before:,} records were copied before, according to {path}")

    with stop.copying():
        _copy(options, source, destination, checkpoint, partitions, stop)
    count = sum(one.count for one in partitions.values())
    print(
        f"{count:,} records of {len(partitions)} partitions of {len(topics)} topics are in {destination.name}"
    )

    if options.group:
        copied = copy_groups(source, destination, partitions, options.group)
        print(f"{sum(copied.values())} offsets of {len(copied)} groups are translated")
    different = _verified(options.jobs, source, destination, partitions, stop) if options.verify else 0
    for problem in finish(source, destination, checkpoint, topics):
        print(f"migrate_topics: settings not taken over: {problem}", file=sys.stderr)
    return DIFFERENT if different else 0


def _copy(
    options: argparse.Namespace,
    source: Side,
    destination: Side,
    checkpoint: Checkpoint,
    partitions: Mapping[TopicPartition, Progress],
    stop: _Signals,
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
        copy.run(everything, ends, options.jobs)
        if options.follow and not stop.interrupted:
            _follow(copy, everything, options.jobs, stopping, stop, bar)
            ends = ends_of(source, keys)
            copy.run(everything, ends, options.jobs)
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
    stop: _Signals,
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
    stop: _Signals,
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
            f"migrate_topics: {one.topic}-{one.number} differs: {one.source.count:,} records, "
            f"{one.source.digest} in {source.name}; {one.destination.count:,} records, "
            f"{one.destination.digest} in {destination.name}. The source may have let go of records since",
            file=sys.stderr,
        )
    for name in sorted({one.topic for one in results}):
        mine = sorted((one for one in results if one.topic == name), key=lambda one: one.number)
        if all(one.equal for one in mine):
            counts = sum(one.source.count for one in mine)
            combined = _combined([one.source.digest for one in mine])
            print(f"verified {name}: {counts:,} records, checksum {combined} on both sides")
    return len(different)


def _combined(digests: Sequence[str]) -> str:
    """Of the partitions in their order, for the eye."""
    value = 0
    for digest in digests:
        value = (value * 31 + int(digest, 16)) % (1 << 128)
    return f"{value:032x}"


class _Signals:
    """Ctrl-C and SIGTERM end the copy after the batches under way, and all else at once; SIGUSR1 ends the
    following."""

    def __init__(self) -> None:
        self.interrupted = False
        self._copying = False
        self._stop: Callable[[], object] = lambda: None
        self._switch: Callable[[], object] = lambda: None

    @contextmanager
    def copying(self) -> Iterator[None]:
        self._copying = True
        try:
            yield
        finally:
            self._copying = False

    def then(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        if self.interrupted:
            stop()

    def on_switch(self, switch: Callable[[], object]) -> None:
        self._switch = switch

    def __enter__(self) -> _Signals:
        self._before = {
            number: signal.signal(number, self._received)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _received(self, number: int, frame: object) -> None:
        if number == signal.SIGUSR1:
            self._switch()
        elif self.interrupted or not self._copying:
            self.interrupted = True
            raise Interrupted
        else:
            self.interrupted = True
            self._stop()


def _bar(total: int, what: str) -> tqdm:
    return tqdm(total=total, desc=what, unit=" records", unit_scale=True, mininterval=0.5)


def _checkpoint_name(source: str, destination: str) -> str:
    names = (re.sub(r"[^\w.-]+", "_", name).strip("_") for name in (source, destination))
    return f"migration-{'-to-'.join(names)}.sqlite"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/migrate_topics",
        description="Copy topics with their partitions, keys, headers and timestamps from Apache Kafka to a "
        "Dafka broker, or back, each record once; compare counts and checksums afterwards. After an "
        "interruption, SIGKILL included, the same command goes on where it was.",
        epilog="SOURCE and DESTINATION are HOST:PORT (several with commas), or a folder: that of a Dafka "
        "broker which is not running, or in the destination's place a new one. Nothing else may write to the "
        "topics of the destination until the end. Aborted records are not copied; topics get the settings of "
        "the source's at the end.",
    )
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("destination", metavar="DESTINATION")
    repeated = {"action": "append", "default": [], "metavar": "NAME"}
    parser.add_argument(
        "--topic",
        **repeated,
        help="copy this topic, or those that match a pattern as orders-*; may be repeated; otherwise all",
    )
    parser.add_argument(
        "--group",
        **repeated,
        help="also translate the committed offsets of this group, or of those that match a pattern; may be "
        "repeated; '*' for all",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="keep copying until Enter is pressed or SIGUSR1 comes, then copy the rest and end",
    )
    parser.add_argument("--jobs", type=_jobs, default=4, metavar="N", help="at a time (4)")
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="where progress is noted (migration-SOURCE-to-DESTINATION.sqlite here)",
    )
    for side in ("source", "destination"):
        parser.add_argument(
            f"--{side}-config",
            metavar="FILE",
            help=f"Kafka's client properties for a {side} with TLS or accounts: security.protocol=SSL ...",
        )
    parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not compare afterwards")
    parser.add_argument("--verbose", action="store_true", help="say what is tried again")
    return parser


def _jobs(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= 64:
        raise argparse.ArgumentTypeError(f"a number from 1 to 64, not {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())
