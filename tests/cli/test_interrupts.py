"""Ctrl-C while a command is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from cli.tools import environment

from dafka.cli.interrupts import EndedByCtrlC

_AT_CLICK = """
import os, signal, sys
class Interrupting:  # Ctrl-C is pressed when the first package of another project is looked for
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
import dafka.cli
"""


def test_it_ends_the_program_without_a_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AT_CLICK], capture_output=True, timeout=200, env=environment()
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_other_handlers_and_other_threads_are_left_alone() -> None:
    def handler(*_: object) -> None:
        """Of a program that embeds this one."""

    before = signal.signal(signal.SIGINT, handler)
    try:
        with EndedByCtrlC():
            assert signal.getsignal(signal.SIGINT) is handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        found = []

        def elsewhere() -> None:
            with EndedByCtrlC():
                found.append(signal.getsignal(signal.SIGINT))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert found == [signal.default_int_handler]
        with EndedByCtrlC():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
