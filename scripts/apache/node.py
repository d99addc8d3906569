"""One KRaft node, broker and controller in one process, on loopback."""

from __future__ import annotations

import base64
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from .jars import UnavailableError, classpath
from .ports import free_port

LEAST_JAVA = 17
START_SECONDS = 120.0
STOP_SECONDS = 20.0
STARTED = "Kafka Server started"

# Kafka's own start script's, but for the heap.
FLAGS = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Xshare:auto",
]
LOGGING = """
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
logger.started.name=kafka.server.KafkaRaftServer
logger.started.level=info
"""
# One node has one replica of everything, its own topics included; all else is Kafka's default.
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class StartError(Exception):
    """Apache Kafka did not start; the message has what it printed."""


class Node:
    """A node of Apache Kafka with its data in ``folder``; a context manager that starts and stops it.

    ``settings`` are Kafka's own, on top of its defaults; ``heap`` is Java's -Xmx and -Xms, ``flags`` are
    further ones of Java. ``listeners`` are the names of more listeners than PLAINTEXT, and :attr:`listeners`
    has all their addresses. Raises UnavailableError where there is no Java or no jars, StartError if Kafka
    does not come up.
    """

    def __init__(
        self,
        folder: Path,
        *,
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        listeners: Sequence[str] = (),
        flags: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        self._classpath = classpath()
        self._java = [java(), *FLAGS, f"-Xmx{heap}", f"-Xms{heap}", *flags, "-cp", self._classpath]
        self._process: subprocess.Popen[bytes] | None = None
        controller, *ports = (free_port() for _ in range(2 + len(listeners)))
        self.listeners = {
            name: f"127.0.0.1:{port}" for name, port in zip(("PLAINTEXT", *listeners), ports, strict=True)
        }
        self.bootstrap_servers = self.listeners["PLAINTEXT"]
        doors = {**self.listeners, "CONTROLLER": f"127.0.0.1:{controller}"}
        self._properties = folder / "server.properties"
        (folder / "log4j2.properties").write_text(LOGGING)
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": ",".join(f"{name}://{address}" for name, address in doors.items()),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(folder / "data"),
            **ALONE,
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        if not (folder / "data" / "meta.properties").exists():
            self._format()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node is not running"
        return self._process.pid

    def start(self) -> None:
        """Returns when it has registered itself and answers clients.

        On Linux it ends with the thread that calls this, also where the process is killed.
        """
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which stops the node
                preexec_fn=_end_with_parent,
            )
        give_up = time.monotonic() + START_SECONDS
        while STARTED not in self.log.read_text(errors="replace"):
            if self._process.poll() is not None or time.monotonic() > give_up:
                self.kill()
                raise StartError(
                    f"Apache Kafka did not start:\n{self.log.read_text(errors='replace')[-4000:]}"
                )
            time.sleep(0.005)

    def stop(self) -> None:
        """In an orderly way; killed when that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """With SIGKILL, for tests that want it dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Node:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [*self._java, logging, main, *arguments]

    def _format(self) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = self._command("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}")
        answer = subprocess.run(
            [*command, "-c", str(self._properties)], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if answer.returncode:
            raise StartError(
                f"Apache Kafka's storage could not be formatted:\n{answer.stdout}{answer.stderr}"
            )


@contextmanager
def running(
    *,
    heap: str = "512m",
    settings: Mapping[str, str] | None = None,
    listeners: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> Iterator[Node]:
    """A node in a temporary folder that goes away with it."""
    with (
        tempfile.TemporaryDirectory(prefix="apache-kafka-", ignore_cleanup_errors=True) as folder,
        Node(Path(folder), heap=heap, settings=settings, listeners=listeners, flags=flags) as node,
    ):
        yield node


def java() -> str:
    """The Java to use, new enough; raises UnavailableError without one."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise UnavailableError(f"there is no Java here; Apache Kafka needs Java {LEAST_JAVA} or newer")
    answer = subprocess.run([found, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) < LEAST_JAVA:
        raise UnavailableError(f"{found} is too old; Apache Kafka needs Java {LEAST_JAVA} or newer")
    return found


_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PARENT_DEATH_SIGNAL = 1


def _end_with_parent() -> None:
    """Runs in the child: without it, a killed parent would leave the node running."""
    if _prctl is not None:
        _prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
