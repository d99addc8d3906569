"""Ports for servers that have to know them before they listen, or listen at them again.

A port that was tried and let go belongs to nobody until its server listens: another process may try it
meanwhile, and be given it too. So a port is a process's own from the moment that it is handed out for as long
as the process lives, among all processes of this machine that take theirs here: a byte of one file stands for
each port, and its lock is held. The kernel gives the locks back when the process dies.

Ports lie outside those that the system chooses from, for outgoing connections and for port 0.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

FIRST = 10_000  # servers of other kinds have theirs below, most of them
LAST = 65_535
ENOUGH = 2_000  # ports; fewer are not looked for anywhere
CHOSEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FILE = "dafka-ports"
_lock = threading.Lock()
_chance = random.SystemRandom()  # another one in each process, whatever a test's seed is


def free_port() -> int:
    """A port of loopback where nobody listens, and that no other process gets here while this one lives."""
    with _lock:
        return _ports_of(os.getpid()).take()


class Ports:
    """Hands out the ports of ``span``, each once, held by locks on the file ``path``.

    When there is none left, those that this process has had are handed out again, the oldest first.
    """

    def __init__(self, path: Path, span: range) -> None:
        self._file = _opened(path)
        start = _chance.randrange(len(span))
        self._left = iter([*span[start:], *span[:start]])
        self._held: dict[int, None] = {}

    def take(self) -> int:
        for port in self._left:
            if self._is_ours(port) and is_free(port):
                self._held[port] = None
                return port
        for port in self._held:
            if is_free(port):
                del self._held[port]
                self._held[port] = None
                return port
        raise OSError("all ports are taken that servers may have here")

    def close(self) -> None:
        """Give all ports back."""
        os.close(self._file)

    def _is_ours(self, port: int) -> bool:
        """Lock the port's byte; whether no other process has done so."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except (BlockingIOError, PermissionError):  # which of the two is up to the system
            return False
        return True


def is_free(port: int) -> bool:
    """Whether no socket of IPv4 has the port, at any address."""
    with socket.socket() as tried:
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True


def span(chosen: tuple[int, int]) -> range:
    """The ports for servers, where the system chooses from the first to the last of ``chosen`` by itself."""
    lowest, highest = chosen
    for first in (FIRST, 1024):
        widest = max(range(first, lowest), range(max(first, highest + 1), LAST + 1), key=len)
        if len(widest) >= ENOUGH:
            return widest
    return range(FIRST, LAST + 1)  # it chooses from nearly all of them


def chosen_by_the_system() -> tuple[int, int]:
    """The first and the last port that the system chooses from by itself."""
    try:
        first, last = CHOSEN.read_text().split()
        return int(first), int(last)
    except (OSError, ValueError):
        return 16_000, LAST  # no Linux: macOS chooses from 49 152 on, others from lower ones


_owner = 0
_ports: Ports | None = None


def _ports_of(process: int) -> Ports:
    """A forked process does not inherit locks: it gets ports of its own."""
    global _owner, _ports
    if _ports is None or process != _owner:
        _owner, _ports = process, Ports(_place(), span(chosen_by_the_system()))
    return _ports


def _place() -> Path:
    """One file for the whole machine, wherever a process is told to keep its temporary files."""
    places = ("/tmp", "/var/tmp", tempfile.gettempdir())
    return Path(next(place for place in places if os.access(place, os.W_OK | os.X_OK))) / _FILE


def _opened(path: Path) -> int:
    """The file, made for all users if it is not there."""
    while True:
        with suppress(FileNotFoundError):
            return os.open(
                path, os.O_RDWR | os.O_CLOEXEC
            )  # systems refuse O_CREAT for files of others in /tmp
        try:
            made = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue  # another process was faster
        os.fchmod(made, 0o666)
        return made
