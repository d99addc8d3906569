"""Programs in Python as processes that need not import first, for tests that start many.

Starting an interpreter and importing a broker takes half a second of processor time, and forking a process
that has done so a few milliseconds. ``Popen`` is ``subprocess.Popen``: it starts a child of this process,
with arguments, environment, folder, standard streams, signals and exit code of its own. Tests of starting
itself (what is imported, and when) take ``subprocess``.

    with forking.Popen([sys.executable, "-m", "dafka.cli", "tower"], stdout=subprocess.PIPE) as process:
        ...

How: a process beside this one imports what is ours. It forks a child that forks the program and ends; in this
moment the program becomes a child of this process (PR_SET_CHILD_SUBREAPER, Linux only). Elsewhere, and for
other commands than ``python [-W ...] (-c CODE | -m MODULE | FILE) ...``, ``Popen`` starts processes as ever.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

PR_SET_CHILD_SUBREAPER = 36
_ORDINARY = {"bufsize", "cwd", "encoding", "env", "errors", "start_new_session", "stderr", "stdin", "stdout"}
_ORDINARY |= {"text", "universal_newlines"}


class Program(NamedTuple):
    """A command line of Python's, taken apart."""

    warnings: list[str]
    kind: str  # "-c", "-m" or "" for a file
    what: str
    arguments: list[str]


def program_of(command: object) -> Program | None:
    """None if it is another command, or has options that need an interpreter of its own."""
    if not isinstance(command, list | tuple) or not command or command[0] != sys.executable:
        return None
    rest = [os.fspath(argument) for argument in command[1:]]
    warnings = []
    while len(rest) > 1 and rest[0] == "-W":
        warnings.append(rest[1])
        del rest[:2]
    if rest and rest[0].startswith("-m") and rest[0] != "-m":
        rest[:1] = ["-m", rest[0][2:]]
    kind = rest.pop(0) if rest and rest[0] in ("-c", "-m") else ""
    if not rest or (not kind and rest[0].startswith("-")):
        return None
    return Program(warnings, kind, rest[0], rest[1:])


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """``subprocess.Popen`` whose Python programs are forked."""

    def __init__(self, args: Any, **options: Any) -> None:
        self._program = None
        if sys.platform == "linux" and options.keys() <= _ORDINARY:
            self._program = program_of(args)
        self._session = bool(options.get("start_new_session"))
        super().__init__(args, **options)

    def _execute_child(  # type: ignore[no-untyped-def]
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest
    ) -> None:
        if self._program is None:
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)
            return
        pipes = rest[3:9]  # ours and the program's ends of standard input, output and errors; -1 is inherited
        streams = [own if end == -1 else end for own, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = _forked(
            {
                "program": tuple(self._program),
                "folder": os.path.abspath(os.getcwd() if cwd is None else os.fspath(cwd)),
                "environment": dict(os.environ if env is None else env),
                "session": self._session,
            },
            streams,
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)


def run(
    command: Any, *, input: Any = None, capture_output: bool = False, timeout: float | None = None,
    check: bool = False, **options: Any,
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """``subprocess.run``."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Popen(command, **options) as process:
        try:
            output, errors = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


_one_at_a_time = threading.Lock()


def _forked(request: dict[str, Any], streams: list[int]) -> int:
    """The number of the new process, which is a child of this one."""
    with _one_at_a_time:
        server = _server(os.getpid())
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            content = pickle.dumps(request)
            socket.send_fds(server, [len(content).to_bytes(8, "big")], streams)
            server.sendall(content)
            number = server.recv(8, socket.MSG_WAITALL)
            ended = server.recv(1)  # the processes between the program and us
            if not ended:
                raise ChildProcessError(
                    "the process that forks has gone; its last words are on standard error"
                )
            return int.from_bytes(number, "big")
        finally:
            prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@functools.lru_cache(maxsize=1)
def _server(owner: int) -> socket.socket:
    """The connection to the process that forks, which ends when this process does."""
    ours, theirs = socket.socketpair()
    with theirs:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forking_server.py")), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
        )
    atexit.register(ours.close)
    return ours
