"""Java's client of all ages since 0.11 does with this broker what it does with Apache Kafka 4.

Kafka 4 has dropped protocols from before 2.1 (KIP-896). The parts that clients of 0.11 need are still there.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from clients.adapters.client import SECONDS
from clients.conftest import LONG, MakeTopic

from scripts.apache import jars, node

pytestmark = [
    pytest.mark.skipif(not os.environ.get(LONG), reason=f"fetches old versions; set {LONG}=1"),
    pytest.mark.timeout(600),
]

PROGRAM = Path(__file__).parent / "OldClient.java"
LOCK = jars.HERE / "clients.txt"
VERSIONS = re.findall(r"kafka-clients:(\S+)", LOCK.read_text())
FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
OF_ALL_CLIENTS = re.compile(r"(slf4j-api|lz4-java|snappy-java|zstd-jni)-")

DONE = {
    "cluster": "1",
    "topics": "true",
    "produce": "20",
    "produce once": "20",
    "consume": "40",
    "group": "40 committed 40",
    "transactions": "60",
}


@functools.lru_cache(maxsize=1)
def libraries() -> dict[str, str]:
    """The class path of each version. Raises UnavailableError."""
    shared = [one for one in jars.classpath().split(os.pathsep) if OF_ALL_CLIENTS.match(Path(one).name)]
    clients = jars.classpath(LOCK).split(os.pathsep)
    return {
        version: os.pathsep.join([one for one in clients if one.endswith(f"-{version}.jar")] + shared)
        for version in VERSIONS
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_does_all_that_it_can(
    servers: str, new_topic: MakeTopic, version: str, tmp_path: Path
) -> None:
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler here")
    try:
        paths = libraries()
    except jars.UnavailableError as error:
        pytest.skip(str(error))
    oldest = paths[VERSIONS[0]]
    subprocess.run(["javac", "-cp", oldest, "-d", tmp_path, PROGRAM], check=True, timeout=SECONDS)
    command = [node.java(), *FLAGS, "-cp", f"{tmp_path}:{paths[version]}", PROGRAM.stem, servers, new_topic()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5 * SECONDS)
    assert dict(line.split("\t") for line in done.stdout.splitlines()) == DONE, done.stderr[-2000:]
