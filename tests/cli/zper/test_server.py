"""dafka zper run, start and stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.tools import run, running
from ports import free_port
from timing import until

from compat.kafka import KafkaConsumer
from dafka import Consumer, Tower
from dafka.cli.zper import pid_file as pid_files
from dafka.zper import Reader, Writer

ROLES = ("writer", "reader", "ack", "relay", "controller")


class Server:
    """A configuration with free ports, and the commands about it."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.file = folder / "server.properties"
        self.ports = {role: free_port() for role in (*ROLES, "kafka")}
        binds = [
            f"{role}.bind = tcp://127.0.0.1:{port}" for role, port in self.ports.items() if role in ROLES
        ]
        self.file.write_text("\n".join([f'base_dir = "{folder}/data"  # a comment', *binds, *lines]))
        self.pid_file = folder / "data.pid"
        self.log_file = folder / "data.log"

    def address(self, role: str) -> str:
        return f"tcp://127.0.0.1:{self.ports[role]}"

    def do(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return run("zper", command, str(self.file), *options)

    @property
    def pid(self) -> int | None:
        return pid_files.pid_of(self.pid_file)


@contextmanager
def stopped(server: Server) -> Iterator[Server]:
    """Ends what a test has started."""
    try:
        yield server
    finally:
        if pid_files.is_held(server.pid_file) and (pid := server.pid) is not None:
            os.kill(pid, signal.SIGKILL)
            pid_files.wait_until_released(server.pid_file, 100.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with stopped(Server(tmp_path)) as made:
        yield made


def test_start_returns_when_zper_serves_and_stop_when_it_is_gone(server: Server) -> None:
    started = server.do("start")
    assert (started.returncode, started.stdout) == (0, "")
    assert f"writer {server.address('writer')}" in started.stderr
    assert f"process {server.pid}, its pid in {server.pid_file}" in started.stderr
    with Writer("events", server.address("writer"), timeout=100) as writer:
        writer.send(b"kept")
    stopped = server.do("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert not server.pid_file.exists()
    assert server.do("start").returncode == 0
    with Reader("events", server.address("reader"), timeout=100) as reader:
        assert [message.frames for message in reader] == [[b"kept"]]
    assert server.do("stop").returncode == 0


def test_stop_flushes_what_was_taken(tmp_path: Path) -> None:
    """What has not come yet when the server is stopped is neither answered nor stored."""
    lines = ("flush_interval = 3600000", "flush_messages = 1000000")
    with stopped(Server(tmp_path, *lines)) as server:
        for wait in (0.1, 1.0, 10.0, 100.0):
            assert server.do("start").returncode == 0
            with Writer("events", server.address("writer"), mode=1, timeout=100) as writer:
                for number in range(100):
                    writer.send(b"%d" % number)
                time.sleep(wait)
                stop = server.do("stop")
                assert (stop.returncode, stop.stderr) == (0, "")
                response = writer.response(0.0 if wait < 10 else 10.0)
                writer.close(0.0)
            assert server.do("start").returncode == 0
            with Reader("events", server.address("reader"), timeout=100) as reader:
                stored = len(list(reader))
            assert server.do("stop").returncode == 0
            if stored and response is not None:
                return
            assert response is None
    pytest.fail("the server has taken nothing")


def test_a_second_start_is_refused_and_names_the_first(server: Server) -> None:
    assert server.do("start").returncode == 0
    again = server.do("start")
    assert again.returncode == 1
    assert f"a server runs already: process {server.pid} holds {server.pid_file}" in again.stderr
    assert server.do("run").stderr == again.stderr
    assert server.do("stop").returncode == 0


def test_a_start_that_fails_says_why(server: Server) -> None:
    with socket.create_server(("127.0.0.1", server.ports["relay"])):
        failed = server.do("start")
    assert failed.returncode == 1
    assert "the server has not started" in failed.stderr
    assert str(server.ports["relay"]) in failed.stderr
    assert not pid_files.is_held(server.pid_file)


def test_stop_without_a_server_is_an_error_also_when_a_pid_file_is_left_over(server: Server) -> None:
    assert "no server runs" in server.do("stop").stderr
    server.pid_file.write_text(f"{os.getpid()}\n")  # the pid belongs to another process by now
    stop = server.do("stop")
    assert (stop.returncode, "no server runs" in stop.stderr) == (1, True)
    assert not server.pid_file.exists()


def test_a_server_that_was_killed_can_be_started_again(server: Server) -> None:
    assert server.do("start").returncode == 0
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert pid_files.wait_until_released(server.pid_file, 100.0)
    # The system may close the file with the lock before the sockets, and give their ports to others.
    until(lambda: server.do("start").returncode == 0)
    assert server.pid != pid
    assert server.do("stop").returncode == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_run_serves_until_a_signal_and_says_where(server: Server, signum: int) -> None:
    with running("zper", "run", str(server.file)) as process:
        until(lambda: server.pid == process.pid, "it serves", by=process)
        process.send_signal(signum)
        _, said = process.communicate(timeout=200)
    assert process.returncode == 0
    for role in ROLES:
        assert f"{role} {server.address(role)}" in said
    assert f"data in {server.file.parent}/data" in said
    assert not server.pid_file.exists()


def test_warnings_about_the_file_are_said(tmp_path: Path) -> None:
    lines = ("flush_mesages = 5", "decoder = true", "writer.workers = 3")
    with stopped(Server(tmp_path, *lines)) as server:
        said = server.do("start").stderr
        assert "'flush_mesages' is unknown (the nearest known key is 'flush_messages')" in said
        assert "without effect here" in said and "decoder, writer.workers" in said
        assert server.do("stop").returncode == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("flush_messages = many", "line 7: flush_messages = 'many': a whole number of 1 or more"),
        ("writer.replica.sync = 1", "writer_replica_sync=1"),
        ("max_message = 99999999999", "max_message=99999999999"),
    ],
)
def test_a_wrong_value_ends_every_command_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    failed = Server(tmp_path, line).do("run")
    assert failed.returncode in (1, 2)
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_dafka_node_reads_what_was_written(server: Server) -> None:
    with Tower() as tower, Consumer(["events"], tower=tower, offset_reset="earliest") as consumer:
        takes, gives = tower.addresses
        assert server.do("start", "--sub", takes, "--pub", gives).returncode == 0
        with Writer("events", server.address("writer"), timeout=100) as writer:
            writer.send(b"id", b"value")
        record = until(lambda: consumer.poll(0.1))[0]
        assert (record.key, record.value) == (b"id", b"value")
        assert server.do("stop").returncode == 0
    assert "give both or none" in server.do("run", "--sub", takes).stderr


def test_a_kafka_client_reads_what_was_written(server: Server) -> None:
    port = server.ports["kafka"]
    assert server.do("start", "--listen", f"127.0.0.1:{port}").returncode == 0
    with Writer("events", server.address("writer"), timeout=100) as writer:
        writer.send(b"id", b"value")
    consumer = KafkaConsumer(
        "events",
        bootstrap_servers=f"127.0.0.1:{port}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=100_000,
    )
    record = next(iter(consumer))
    assert (record.key, record.value) == (b"id", b"value")
    consumer.close()
    assert server.do("stop").returncode == 0
