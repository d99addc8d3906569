"""The crash harness: a writer is killed with SIGKILL at random moments, and what it left is checked.

    scripts/crash --kills 500

Two programs take turns: one writes to a log, the other to a broker, in which retention, compaction and the
deletion of topics go on. Each goes on with the folder that its last kill left. Checked after every kill: all
that was acknowledged is there once and in order, a round is there for all partitions or for none, what was
trimmed or deleted stays so, of each key the newest record is there at its offset (the newest committed one,
where there are transactions), table values and committed group offsets are no older than what was said and
not beyond what is there, ``verify`` finds no damage, and files of values are those of the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

import forking  # noqa: E402 - needs the path
from log import crash_broker, killed_broker  # noqa: E402
from log import killed_writer as writer  # noqa: E402
from log.expecting import Loss, Survived, expect, expect_undamaged  # noqa: E402
from log.messages import EVERYTHING  # noqa: E402

from dafka.log import Log, LogPartition  # noqa: E402
from dafka.protocol.batch_reader import decode_batch  # noqa: E402


def start(
    folder: Path, seed: int, durability: str, program: str = writer.__file__
) -> subprocess.Popen[bytes]:
    return forking.Popen(
        [sys.executable, program, str(folder), str(seed), durability],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))},
        stdout=subprocess.PIPE,
    )


def write_and_kill(
    folder: Path, seed: int, durability: str, program: str = writer.__file__
) -> dict[str, Any]:
    """Run the writer for a random number of rounds and kill it; returns its last line."""
    choice = random.Random(seed)
    child = start(folder, seed, durability, program)
    assert child.stdout is not None
    said = b""
    for _ in range(choice.randrange(1, 80)):
        said = child.stdout.readline() or said
    time.sleep(choice.random() * 0.01)  # it is somewhere in its next rounds
    child.kill()
    rest, _ = child.communicate()
    if child.returncode != -9:
        raise Loss(f"the writer ended by itself with status {child.returncode}")
    complete = rest[: rest.rfind(b"\n") + 1].splitlines()
    return json.loads((complete or [said])[-1])  # type: ignore[no-any-return]


def check(folder: Path, said: dict[str, Any]) -> Survived:
    """Reopen the log and compare it with what was said; raises Loss."""
    with Log(folder) as log:
        rounds, generation = (log.table("rounds").get(key) for key in ("count", "generation"))
        # a round is there as a whole or not at all: at most one is beyond what was said
        expect(said["rounds"] <= rounds <= said["rounds"] + 1, f"round {rounds}, {said['rounds']} was said")
        expect(said["generation"] <= generation <= said["generation"] + 1, f"generation {generation}")
        total = 0
        for number, partition in enumerate(writer.partitions(log)):
            first, end = partition.first_sequence, partition.next_sequence
            if number == writer.TEMPORARY and generation > said["generation"]:
                said["next"][number] = said["first"][number] = 0
            expect(end >= said["next"][number], f"{partition} ends at {end}, {said['next'][number]} was said")
            least = said["first"][number]
            expect(least <= first <= max(least, end - writer.KEPT), f"{partition} begins at {first}")
            at, contents = log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)
            expect(not contents or at == first, f"{partition} is read from {at} on")
            if number == writer.COMPACTED:
                total += check_compacted(over_gaps(log, partition), end)
                continue
            expect(len(contents) == end - first, f"{partition} has {len(contents)} messages")
            total += len(contents)
            expected = [writer.content(number, sequence, generation) for sequence in range(first, end)]
            expect(contents == expected, f"{partition} has other contents than were written")
    expect_undamaged(folder)
    return Survived(rounds, total)


def over_gaps(log: Log, partition: LogPartition) -> Iterator[tuple[int, bytes]]:
    """All messages with their sequences; compaction leaves gaps, and none that is short."""
    sequence = partition.first_sequence
    while sequence < partition.next_sequence:
        first, contents = log.read(partition, sequence, count=EVERYTHING, max_bytes=EVERYTHING)
        expect(first == sequence or first - sequence >= writer.GAP, f"{sequence} to {first - 1} is a gap")
        expect(bool(contents), f"{partition} ends at {sequence}")
        yield from enumerate(contents, first)
        sequence = first + len(contents)


def check_compacted(messages: Iterable[tuple[int, bytes]], end: int) -> int:
    """How many messages there are up to the sequence ``end``."""
    kept: dict[bytes, int] = {}
    count = 0
    for sequence, content in messages:
        count += 1
        columns = decode_batch(content)
        base = writer.RECORDS * sequence
        for offset, time_, key, value in zip(*columns[:4], strict=True):
            expect(base <= offset < base + writer.RECORDS, f"offset {offset} in message {sequence}")
            expect((key, value) == writer.keyed(offset) and time_ == sequence, f"offset {offset} has changed")
            kept[key] = offset
    newest = {writer.keyed(offset)[0]: offset for offset in range(writer.RECORDS * end)}
    for key, offset in newest.items():
        if writer.keyed(offset)[1] is not None:  # a tombstone may have gone
            expect(kept.get(key) == offset, f"{key!r} should be at {offset} and is at {kept.get(key)}")
    gone = kept.keys() - newest.keys()
    expect(not gone, f"keys that were never written: {gone}")
    for key, offset in kept.items():
        # a tombstone that has gone must not bring an older record to light
        expect(offset == newest[key], f"{key!r} is back at {offset} though {newest[key]} was written")
    return count


class Subject(NamedTuple):
    """What is killed, and what checks what it left."""

    program: str
    check: Callable[[Path, dict[str, Any]], Survived]


LOG = Subject(writer.__file__, check)
BROKER = Subject(killed_broker.__file__, crash_broker.check)
SUBJECTS = {"log": [LOG], "broker": [BROKER], "both": [LOG, BROKER]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", choices=SUBJECTS, default="both")
    parser.add_argument("--durability", choices=("process", "power"), default="process")
    parser.add_argument("--folders", type=int, default=10, help="begin with an empty folder so often")
    options = parser.parse_args()
    subjects = SUBJECTS[options.of]
    folders: list[Path | None] = [None] * len(subjects)
    survived = [Survived(0, 0)] * len(subjects)
    began, losses, rounds, messages = time.monotonic(), 0, 0, 0
    anew = max(1, options.kills // options.folders // len(subjects))
    for kill in range(options.kills):
        which, turn = kill % len(subjects), kill // len(subjects)
        subject, folder = subjects[which], folders[which]
        if folder is None or turn % anew == 0:
            if folder is not None:
                shutil.rmtree(folder)
            rounds += survived[which].rounds
            folder = folders[which] = Path(tempfile.mkdtemp())
        seed = options.seed * 1_000_000 + kill
        try:
            said = write_and_kill(folder, seed, options.durability, subject.program)
            survived[which] = subject.check(folder, said)
            messages += survived[which].messages
        except Exception as error:
            losses += 1
            name = Path(subject.program).stem
            print(f"{name}, seed {seed}: {type(error).__name__}: {error} ({folder} is kept)", flush=True)
            folders[which] = None
        if kill % 50 == 49:
            print(f"{kill + 1} kills, {losses} losses", flush=True)
    for folder in folders:
        if folder is not None:
            shutil.rmtree(folder)
    rounds += sum(last.rounds for last in survived)
    print(
        f"{options.kills} kills ({options.of}), durability {options.durability}: {rounds} rounds, "
        f"{messages} messages checked, {losses} losses, {time.monotonic() - began:.0f} s"
    )
    sys.exit(1 if losses else 0)


if __name__ == "__main__":
    main()
