"""A program at a terminal: its screen, keys that are pressed, windows that change their size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence

import pyte
from cli.tools import environment

SECONDS = 200.0


def _take_terminal() -> None:
    """Begin as a program in a window does, also when the tests were started with nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class PseudoTerminal:
    """A program that was started with a terminal of its own; to be used in ``with``."""

    def __init__(self, command: Sequence[str], columns: int = 100, lines: int = 30, **variables: str) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self._master, slave = pty.openpty()
        self._resize(slave, columns, lines)
        self.before = termios.tcgetattr(slave)
        self._slave = slave  # kept open, so that its state can be read when the program has ended
        self._open = [self._master, slave]
        everything = environment(TERM="xterm-256color", **variables)  # a size in it would hide the window's
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={name: value for name, value in everything.items() if name not in ("COLUMNS", "LINES")},
            preexec_fn=_take_terminal,
        )

    @property
    def shown(self) -> str:
        """The lines of the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, true: Callable[[str], object] | str) -> str:
        """Wait until this text is shown, or this is true of what is shown."""
        is_true = (lambda shown: true in shown) if isinstance(true, str) else true
        deadline = time.monotonic() + SECONDS
        while not is_true(self.shown):
            assert time.monotonic() < deadline, self.shown
            assert self._read(0.1) or self.process.poll() is None, self.shown
        return self.shown

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self._screen.resize(lines, columns)
        self._resize(self._master, columns, lines)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def ended(self) -> int:
        """Wait until the program has ended; its status."""
        deadline = time.monotonic() + SECONDS
        while self._read(0.1) or self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown
        return self.process.returncode

    def close(self) -> None:
        """Close the window."""
        for descriptor in self._open:
            os.close(descriptor)
        self._open = []

    @property
    def after(self) -> list[object]:
        """The settings of the terminal now; ``before`` are those at the start."""
        return termios.tcgetattr(self._slave)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        octets = os.read(self._master, 65536)
        self.written += octets
        self._stream.feed(octets)
        return True

    @staticmethod
    def _resize(descriptor: int, columns: int, lines: int) -> None:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.kill()
        self.process.wait()
        self.close()
