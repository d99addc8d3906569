"""Finds a Java for Spark on this machine. ``python -m dafka.spark.java`` prints its home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from glob import glob

from dafka.protocol.errors import DafkaError

OLDEST = 17  # needed by PySpark 4
_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
)
_SECONDS = 20


class JavaMissingError(DafkaError):
    """No Java was found on which Spark runs."""


def find_java() -> str:
    """The home of a Java that is new enough: JAVA_HOME's, the one on the path, or one in a usual place.

    Raises JavaMissingError.
    """
    old = []
    for home in _homes():
        version = java_version(home)
        if version is not None and version >= OLDEST:
            return home
        if version is not None:
            old.append(f"{home} is Java {version}")
    found = f" ({'; '.join(old)})" if old else ""
    raise JavaMissingError(
        f"Spark needs Java {OLDEST} or newer{found}: install one, on Debian and Ubuntu with "
        "apt-get install default-jre-headless, or say with JAVA_HOME where it is"
    )


def java_version(home: str) -> int | None:
    """The feature release of the Java in this home; None if it does not run."""
    try:
        done = subprocess.run(
            [os.path.join(home, "bin", "java"), "-version"], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr)
    if found is None:
        return None
    first = int(found[1])
    return int(found[2] or 0) if first == 1 else first  # Java 8 and older say 1.8


def _homes() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield home
    if java := shutil.which("java"):
        yield os.path.dirname(os.path.dirname(os.path.realpath(java)))
    for place in _PLACES:
        yield from sorted(glob(place), reverse=True)


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaMissingError as error:
        sys.exit(str(error))
