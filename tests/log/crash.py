"""The crash harness: a writer is killed with SIGKILL at random moments, and what it left is checked.

    scripts/crash --kills 500

Each round goes on with the folder that the last one left. Checked after every kill: all that was acknowledged
is there once and in order, a round is there for all partitions or for none, what was trimmed or deleted stays
so, of each key the newest record is there at its offset, table values are no older than what was
acknowledged, and ``verify`` finds no damage.
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
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from log import killed_writer as writer  # noqa: E402 - needs the path
from log.messages import EVERYTHING  # noqa: E402

from dafka.log import Log  # noqa: E402
from dafka.log.verify import verify  # noqa: E402
from dafka.protocol.batch_reader import decode_batch  # noqa: E402


class Loss(AssertionError):
    """Something that was promised is not there."""


class Survived(NamedTuple):
    rounds: int
    messages: int


def start(folder: Path, seed: int, durability: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, writer.__file__, str(folder), str(seed), durability],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )


def write_and_kill(folder: Path, seed: int, durability: str) -> dict[str, Any]:
    """Run the writer for a random number of rounds and kill it; what it said last."""
    choice = random.Random(seed)
    child = start(folder, seed, durability)
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
            expect(len(contents) == end - first, f"{partition} has {len(contents)} messages")
            expect(not contents or at == first, f"{partition} is read from {at} on")
            total += len(contents)
            if number == writer.COMPACTED:
                check_compacted(contents)
                continue
            expected = [writer.content(number, sequence, generation) for sequence in range(first, end)]
            expect(contents == expected, f"{partition} has other contents than were written")
    damages = [damage for seen in verify(folder) for damage in seen.damages]
    expect(not damages, f"verify: {damages}")
    return Survived(rounds, total)


def check_compacted(contents: list[bytes]) -> None:
    kept: dict[bytes, int] = {}
    for sequence, content in enumerate(contents):
        columns = decode_batch(content)
        base = writer.RECORDS * sequence
        for offset, time_, key, value in zip(*columns[:4], strict=True):
            expect(base <= offset < base + writer.RECORDS, f"offset {offset} in message {sequence}")
            expect((key, value) == writer.keyed(offset) and time_ == sequence, f"offset {offset} has changed")
            kept[key] = offset
    newest = {writer.keyed(offset)[0]: offset for offset in range(writer.RECORDS * len(contents))}
    for key, offset in newest.items():
        if writer.keyed(offset)[1] is not None:  # a tombstone may have gone
            expect(kept.get(key) == offset, f"{key!r} should be at {offset} and is at {kept.get(key)}")
    gone = kept.keys() - newest.keys()
    expect(not gone, f"keys that were never written: {gone}")
    for key, offset in kept.items():
        # a tombstone that has gone must not bring an older record to light
        expect(offset == newest[key], f"{key!r} is back at {offset} though {newest[key]} was written")


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Loss(what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durability", choices=("process", "power"), default="process")
    parser.add_argument("--folders", type=int, default=10, help="begin with an empty folder so often")
    options = parser.parse_args()
    began, losses, rounds, messages = time.monotonic(), 0, 0, 0
    folder, survived = Path(), Survived(0, 0)
    for kill in range(options.kills):
        if kill % max(1, options.kills // options.folders) == 0 or not folder.name:
            rounds += survived.rounds
            shutil.rmtree(folder, ignore_errors=True) if folder.name else None
            folder, survived = Path(tempfile.mkdtemp()), Survived(0, 0)
        seed = options.seed * 1_000_000 + kill
        try:
            survived = check(folder, write_and_kill(folder, seed, options.durability))
            messages += survived.messages
        except Exception as error:
            losses += 1
            print(f"seed {seed}: {type(error).__name__}: {error} ({folder} is kept)", flush=True)
            rounds += survived.rounds
            folder, survived = Path(tempfile.mkdtemp()), Survived(0, 0)
        if kill % 50 == 49:
            print(f"{kill + 1} kills, {losses} losses", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{options.kills} kills, durability {options.durability}: {rounds + survived.rounds} rounds, "
        f"{messages} messages checked, {losses} losses, {time.monotonic() - began:.0f} s"
    )
    sys.exit(1 if losses else 0)


if __name__ == "__main__":
    main()
