"""Real processes. `scripts/overlay_ring` runs as many nodes and rounds as wanted."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from overlay.processes.network import missing
from overlay.processes.ring import NODE, ROOT, WAIT, run


@pytest.mark.timeout(240)
def test_a_ring_whose_nodes_are_killed_and_restarted_goes_on_and_nobody_hears_twice():
    run(size=4, rounds=1, seed=1)


@pytest.mark.timeout(240)
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_network_that_loses_packets_loses_and_doubles_no_messages():
    run(size=3, rounds=0, seed=1, loss=0.05)


@pytest.mark.parametrize("end", ["ctrl-c", "input"])
def test_a_node_ends_at_once_when_its_user_wants_it(end):
    process = subprocess.Popen(
        [sys.executable, str(NODE), "1", "127.0.0.1:0", "127.0.0.1:9"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT)},
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("127.0.0.1:")
        if end == "ctrl-c":
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == (0 if end == "input" else -signal.SIGINT)
    assert errors.count("Traceback") <= (0 if end == "input" else 1), errors
