"""scripts/apache_kafka: its message where it cannot run, and that it runs where it can."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from ports import free_port

from scripts.apache import jars

ROOT = Path(__file__).resolve().parents[2]
COMMAND = str(ROOT / "scripts" / "apache_kafka")
SECONDS = 250.0
UNAVAILABLE = 77
JAR = b"not really a jar"


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *arguments],
        env={**os.environ, "PYTHON": sys.executable, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.fixture
def unreachable(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has no jars and nothing to fetch them from."""
    port = free_port()
    return {
        "HOME": str(tmp_path),
        "DAFKA_CACHE": str(tmp_path / "cache"),
        "DAFKA_MAVEN_REPOSITORY": f"http://127.0.0.1:{port}/maven2",
    }


@pytest.fixture
def one_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One jar is wanted; returned is where the repository that is asked would have it."""
    path = tmp_path / "repository" / "org" / "example" / "streams" / "1.2" / "streams-1.2.jar"
    path.parent.mkdir(parents=True)
    lock = tmp_path / "jars.txt"
    lock.write_text(f"# comment\norg.example:streams:1.2 {hashlib.sha256(JAR).hexdigest()}\n")
    monkeypatch.setattr(jars, "LOCK", lock)
    monkeypatch.setattr(jars, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(jars, "LOCAL_REPOSITORY", tmp_path / "local")
    monkeypatch.setenv("DAFKA_MAVEN_REPOSITORY", (tmp_path / "repository").as_uri())
    return path


def test_without_maven_central_run_exits_with_77_and_one_line(unreachable: dict[str, str]) -> None:
    answer = command("run", **unreachable)
    assert answer.returncode == UNAVAILABLE
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert "cannot be fetched from Maven Central" in line


def test_without_java_run_exits_with_77_and_one_line(tmp_path: Path, one_jar: Path) -> None:
    cache = tmp_path / "cache" / "apache-kafka"
    cache.mkdir(parents=True)
    for line in (ROOT / "scripts" / "apache" / "jars.txt").read_text().splitlines()[1:]:
        _, artifact, version = line.split()[0].split(":")
        (cache / f"{artifact}-{version}.jar").touch()
    answer = command("run", DAFKA_CACHE=str(tmp_path / "cache"), JAVA_HOME=str(tmp_path))
    assert answer.returncode == UNAVAILABLE
    assert "there is no Java here" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def test_a_jar_is_fetched_once_and_checked(one_jar: Path) -> None:
    one_jar.write_bytes(JAR)
    (path,) = jars.classpath().split(os.pathsep)
    assert Path(path).read_bytes() == JAR
    one_jar.unlink()
    assert jars.classpath() == path


def test_a_jar_with_another_checksum_is_not_taken(one_jar: Path, tmp_path: Path) -> None:
    one_jar.write_bytes(JAR + b"?")
    with pytest.raises(jars.UnavailableError, match="SHA-256"):
        jars.classpath()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_jar_in_mavens_local_repository_is_not_fetched(one_jar: Path, tmp_path: Path) -> None:
    local = tmp_path / "local" / one_jar.relative_to(tmp_path / "repository")
    local.parent.mkdir(parents=True)
    local.write_bytes(JAR)
    assert Path(jars.classpath()).read_bytes() == JAR


@pytest.mark.parametrize(
    ("mirror_of", "taken"),
    [("central", True), ("*", True), ("external:*", True), ("*,!central", False), ("snapshots", False)],
)
def test_the_mirror_in_mavens_settings_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror_of: str, taken: bool
) -> None:
    monkeypatch.delenv("DAFKA_MAVEN_REPOSITORY", raising=False)
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors><mirror>'
        f"<mirrorOf>{mirror_of}</mirrorOf><url>https://mirror.example/maven/</url></mirror></mirrors></settings>"
    )
    monkeypatch.setattr(jars, "SETTINGS", settings)
    assert jars.repository() == ("https://mirror.example/maven" if taken else jars.CENTRAL)


def test_every_jar_has_its_checksum_and_all_kafka_artifacts_one_version() -> None:
    locked = jars.locked()
    assert all(len(jar.sha256) == 64 for jar in locked)
    assert {jar.version for jar in locked if jar.group == "org.apache.kafka"} == {jars.version()}
    assert len({jar.name for jar in locked}) == len(locked)


@pytest.fixture
def made_up_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with all jars and a Java that does nothing; its process id is in "pid"."""
    cache = tmp_path / "cache" / "apache-kafka"
    cache.mkdir(parents=True)
    for jar in jars.locked():
        (cache / jar.name).touch()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "-version) echo 'openjdk version \"21\"' >&2 ;;\n"
        "*StorageTool*) ;;\n"
        f'*) echo $$ >{tmp_path}/pid; echo "Kafka Server started"; exec sleep 600 ;;\n'
        "esac\n"
    )
    java.chmod(0o755)
    return {"JAVA_HOME": str(tmp_path), "DAFKA_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not tell a process that its parent died"
)
def test_java_does_not_outlive_the_process_that_runs_it(tmp_path: Path, made_up_java: dict[str, str]) -> None:
    with subprocess.Popen(
        [COMMAND, "run"],
        env={**os.environ, "PYTHON": sys.executable, **made_up_java},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"127.0.0.1:")
        java = int((tmp_path / "pid").read_text())
        assert _runs(java)
        process.kill()
    try:
        deadline = time.monotonic() + SECONDS
        while _runs(java):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        with suppress(ProcessLookupError):
            os.kill(java, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_APACHE_KAFKA"), reason="starts a JVM; set DAFKA_TEST_APACHE_KAFKA=1"
)
@pytest.mark.parametrize("ending", ["end of input", "SIGTERM"])
def test_a_node_answers_at_the_address_on_the_first_line_and_leaves_nothing_behind(
    tmp_path: Path, ending: str
) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [COMMAND, "run", "--set", "num.partitions=3"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address and process.wait(SECONDS) == UNAVAILABLE:
            pytest.skip(process.stderr.read() if process.stderr else "")
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
        if ending == "SIGTERM":
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
        out, error = process.communicate(timeout=SECONDS)
        assert (process.returncode, out, error) == (0, "", "")
        with pytest.raises(OSError):
            socket.create_connection((host, int(port)), timeout=SECONDS)
        assert list(tmp_path.glob("apache-kafka-*")) == []
    finally:
        process.kill()
        process.communicate()
