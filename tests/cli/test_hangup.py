"""SIGHUP of `dafka broker`: it is not the end of a service, and closing its terminal is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from cli.pseudo_terminal import PseudoTerminal
from cli.tools import DAFKA, LOOPBACK, address_of, produce, running
from timing import SECONDS, until

_LISTENS = re.compile(r"^broker: (\S+) in", re.MULTILINE)

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP here")


def listening(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Where a broker listens, when its log says so."""
    found: list[str] = []

    def said() -> str:
        return log.read_text() if log.exists() else ""

    until(lambda: found.extend(_LISTENS.findall(said())) or found, said, by=process)
    return found[0]


@pytest.mark.parametrize("times", [1, 3])
def test_a_broker_without_certificates_outlives_it(tmp_path: Path, times: int) -> None:
    """`systemctl reload` sends it; a service ended by it is not restarted, as this counts as a clean exit."""
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data")) as daemon:
        address = address_of(daemon)
        for number in range(times):
            daemon.send_signal(signal.SIGHUP)
            produce(address, "topic", b"%d" % number)
        assert daemon.poll() is None
        daemon.terminate()
        assert daemon.wait(SECONDS) == 0


def test_a_broker_ends_gracefully_when_its_terminal_is_closed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    shell = ["sh", "-c", f'exec "$@" 2>{log}', "sh", *DAFKA]
    command = [*shell, "broker", "-v", *LOOPBACK, "--data", str(tmp_path / "data")]
    terminal = PseudoTerminal(command)
    with terminal:
        listening(log, terminal.process)
        os.kill(terminal.process.pid, signal.SIGHUP)  # from somebody else: it has its terminal
        produce(listening(log, terminal.process), "topic", b"one")
        terminal.close()
        assert terminal.process.wait(SECONDS) == 0
    assert "accepted records are committed" in log.read_text()


def test_a_broker_that_was_started_with_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    shell = ["sh", "-c", f'exec nohup "$@" 2>{log} >{log}.output', "sh", *DAFKA]
    terminal = PseudoTerminal([*shell, "broker", *LOOPBACK, "--data", str(tmp_path / "data")])
    with terminal:
        listening(log, terminal.process)
        terminal.close()
        produce(listening(log, terminal.process), "topic", b"one")
        with pytest.raises(subprocess.TimeoutExpired):
            terminal.process.wait(0.2)
        terminal.process.terminate()
        assert terminal.process.wait(SECONDS) == 0
