"""Apache Kafka's jars: named in ``jars.txt``, fetched from Maven Central, kept in ``.cache``.

Each line of ``jars.txt`` is ``group:artifact:version SHA-256``. A jar is taken only with that checksum, from
Maven's own local repository if it is there, otherwise from a repository of the standard layout:
``$DAFKA_MAVEN_REPOSITORY``, or what Maven's settings give as the mirror of ``central``, or Maven Central.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

CENTRAL = "https://repo1.maven.org/maven2"
SECONDS = 15.0  # without a byte from the repository until it counts as out of reach
LOCAL_REPOSITORY = Path.home() / ".m2" / "repository"
SETTINGS = Path.home() / ".m2" / "settings.xml"

HERE = Path(__file__).parent
LOCK = HERE / "jars.txt"
CACHE = Path(os.environ.get("DAFKA_CACHE") or HERE.parent.parent / ".cache") / "apache-kafka"


class UnavailableError(Exception):
    """Apache Kafka cannot be had here; the message says in one line what is missing."""


class Jar(NamedTuple):
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where repositories have it."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


def classpath(lock: Path | None = None) -> str:
    """Java's class path of all the jars; those not in the cache are fetched.

    ``lock`` is another list than Apache Kafka's. Raises UnavailableError if a jar cannot be fetched or is not
    what the list says.
    """
    lock = LOCK if lock is None else lock
    jars = locked(lock)
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = [jar for jar in jars if not (CACHE / jar.name).exists()]
    if missing:
        url = repository()
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda jar: _fetch(jar, url, lock), missing):
                pass
    return os.pathsep.join(str(CACHE / jar.name) for jar in jars)


def locked(lock: Path | None = None) -> list[Jar]:
    text = (LOCK if lock is None else lock).read_text()
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return [Jar(*coordinates.split(":"), sha256) for coordinates, sha256 in lines]


def version() -> str:
    """Of Apache Kafka."""
    return next(jar.version for jar in locked() if jar.artifact == "kafka_2.13")


def repository() -> str:
    """The base URL of the repository that is asked."""
    return (os.environ.get("DAFKA_MAVEN_REPOSITORY") or _mirror() or CENTRAL).rstrip("/")


def lock() -> None:
    """Writes ``jars.txt`` from ``pom.xml`` with Maven, which resolves what Kafka needs at run time."""
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    with tempfile.TemporaryDirectory() as folder:
        options = ["-DincludeScope=runtime", "-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), goal, *options], check=True)
        lines = sorted(_line(path, Path(folder)) for path in Path(folder).rglob("*.jar"))
    LOCK.write_text("# Made from pom.xml by `scripts/apache_kafka lock`.\n" + "\n".join(lines) + "\n")


def _line(path: Path, folder: Path) -> str:
    *group, artifact, version, _ = path.relative_to(folder).parts
    return f"{'.'.join(group)}:{artifact}:{version} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _mirror() -> str | None:
    try:
        settings = ElementTree.parse(SETTINGS).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for mirror in settings.findall("{*}mirrors/{*}mirror"):
        names = (mirror.findtext("{*}mirrorOf") or "").replace(" ", "").split(",")
        if {"*", "external:*", "central"} & set(names) and "!central" not in names:
            return (mirror.findtext("{*}url") or "").strip() or None
    return None


def _fetch(jar: Jar, url: str, lock: Path) -> None:
    data = _local(jar)
    if data is None:
        try:
            with urllib.request.urlopen(f"{url}/{jar.path}", timeout=SECONDS) as answer:
                data = answer.read()
        except (OSError, ValueError) as error:
            raise UnavailableError(f"{jar.name} cannot be fetched from Maven Central: {error}") from error
        if hashlib.sha256(data).hexdigest() != jar.sha256:
            raise UnavailableError(f"{jar.name} from {url} has not the SHA-256 that {lock.name} says")
    with tempfile.NamedTemporaryFile(dir=CACHE, delete=False) as file:
        file.write(data)
    os.replace(file.name, CACHE / jar.name)


def _local(jar: Jar) -> bytes | None:
    try:
        data = (LOCAL_REPOSITORY / jar.path).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == jar.sha256 else None
