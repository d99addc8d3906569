"""What comes of each method of Kafka's Admin: ``EveryMethod.java`` run against a broker, in comparable words.

python tests/clients/admin/outcomes.py HOST:PORT      # prints the outcomes as they are recorded
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from scripts.apache import jars, node  # noqa: E402

PROGRAM = HERE / "EveryMethod.java"
SECONDS = 300
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
MARK = "="

Outcomes = dict[str, str]
"""By "METHOD CASE WHAT" with tabs."""

_LEFT_OUT = [
    (r"127\.0\.0\.1:\d+", "HOST"),
    (rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/[\w./-]+", "FOLDER"),
    # Some ids have letters only, as names have; the last one of 16 octets in base64 is one of four.
    # Those that are Kafka's own begin with zeros, and stay.
    (r"(?<![\w.-])(?:(?=[\w-]*[\d_-])[\w-]{22}|(?!A{10})[A-Za-z]{21}[AQgw])(?![\w.-])", "ID"),
    (r"\w{8}-\w{4}-\w{4}-\w{4}-\w{12}", "UUID"),
    (r"\b\d{13}\b", "TIME"),
    (r"\b\d{10,12}\b", "OCTETS"),
    # Numbers of a log of metadata, of this node, and of how often a group was looked at.
    (r"\b(\w*Epoch|highWatermark|logEndOffset|port|leaderId|replicaId|nodeId)=\d+", r"\1=N"),
]


def outcomes(servers: str) -> Outcomes:
    """Run the program. Raises RuntimeError if it comes to no end, UnavailableError without Java."""
    libraries = jars.classpath()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["javac", "-nowarn", "-Xlint:none", "-cp", libraries, "-d", folder, str(PROGRAM)],
            check=True,
            timeout=SECONDS,
            stderr=subprocess.DEVNULL,
        )
        done = subprocess.run(
            [
                node.java(),
                *FLAGS,
                "-cp",
                f"{folder}:{libraries}",
                PROGRAM.stem,
                f"bootstrap.servers={servers}",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    if done.returncode:
        raise RuntimeError(
            f"{PROGRAM.name} ended with {done.returncode}:\n{done.stderr}\n{done.stdout[-4000:]}"
        )
    lines = (line.split("\t") for line in done.stdout.splitlines() if line.startswith(f"{MARK}\t"))
    return {"\t".join(words[1:4]): comparable(words[4]) for words in lines}


def comparable(outcome: str) -> str:
    """An outcome without what differs from run to run."""
    for pattern, word in _LEFT_OUT:
        outcome = re.sub(pattern, word, outcome)
    return outcome


def recorded(text: str) -> Outcomes:
    """Outcomes as a file has them; lines that begin with "#" are remarks."""
    lines = (line.rsplit("\t", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return dict(lines)


if __name__ == "__main__":
    for case, outcome in outcomes(sys.argv[1]).items():
        print(f"{case}\t{outcome}")
