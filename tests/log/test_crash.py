"""What was acknowledged survives SIGKILL at any instant: once, in order, nothing half-written.

``DAFKA_KILLS`` sets the number of kills; each round goes on with the folder the last one left.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from log import killed_writer
from log.messages import EVERYTHING

from dafka.log import Log

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("DAFKA_KILLS", "12"))


def write_and_kill(folder: Path, seed: int, durability: str) -> list[int]:
    """Run the writer for a random number of acknowledgements and kill it; the last numbers it said."""
    child = subprocess.Popen(
        [sys.executable, killed_writer.__file__, str(folder), str(seed), durability],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    acknowledged = b""
    for _ in range(random.Random(seed).randrange(1, 60)):
        acknowledged = child.stdout.readline()
    child.kill()  # the child is somewhere in its next rounds
    rest, _ = child.communicate()
    complete = rest[: rest.rfind(b"\n") + 1].splitlines()
    assert child.returncode == -9, "the writer ended by itself"
    return [int(word) for word in (complete or [acknowledged])[-1].split()]


@pytest.mark.timeout(60 + 5 * KILLS)
@pytest.mark.parametrize("durability", ["process", "power"])
def test_acknowledged_records_survive_sigkill(folder: Path, durability: str) -> None:
    for kill in range(KILLS // 2):
        *acknowledged, rounds = write_and_kill(folder, kill, durability)
        with Log(folder) as log:
            partitions = [log.partition(b"hello", b"%032d" % n) for n in range(killed_writer.PARTITIONS)]
            for number, partition in enumerate(partitions):
                assert partition.next_sequence >= acknowledged[number]
                _, contents = log.read(partition, 0, count=EVERYTHING, max_bytes=EVERYTHING)
                assert len(contents) == partition.next_sequence
                expected = [killed_writer.content(number, sequence) for sequence in range(len(contents))]
                assert contents == expected
            assert log.table("rounds").get("count") >= rounds
            # a round is there for all partitions or for none: at most one is beyond what was said
            assert log.table("rounds").get("count") <= rounds + 1
