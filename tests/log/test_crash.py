"""What was acknowledged survives SIGKILL at any instant, and a copy of the folder taken at any instant.

``DAFKA_KILLS`` sets the number of kills; the long form is ``scripts/crash --kills 500``.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from log.crash import BROKER, LOG, Subject, check, start, write_and_kill

KILLS = int(os.environ.get("DAFKA_KILLS", "8"))
COPIES = 5


@pytest.mark.timeout(300 + 5 * KILLS)
@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("subject", [LOG, BROKER], ids=["a log", "a broker"])
def test_acknowledged_records_survive_sigkill(folder: Path, subject: Subject, durability: str) -> None:
    for kill in range(KILLS // 4):
        subject.check(folder, write_and_kill(folder, kill, durability, subject.program))


def test_a_copy_taken_at_any_instant_holds_all_acknowledged_records(folder: Path, tmp_path: Path) -> None:
    choice = random.Random(7)
    child = start(folder, 7, "power")
    assert child.stdout is not None
    try:
        for number in range(COPIES):
            said = b""
            for _ in range(choice.randrange(5, 40)):
                said = child.stdout.readline()
            time.sleep(choice.random() * 0.01)
            child.send_signal(signal.SIGSTOP)  # the copy is of one instant, as a dying machine leaves it
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
            copy = tmp_path / f"copy {number}"
            shutil.copytree(folder, copy)
            os.set_blocking(child.stdout.fileno(), False)
            said += child.stdout.read() or b""
            os.set_blocking(child.stdout.fileno(), True)
            child.send_signal(signal.SIGCONT)
            check(copy, json.loads(said.splitlines()[-1]))
    finally:
        child.kill()
        child.communicate()
