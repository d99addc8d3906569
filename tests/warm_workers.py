"""Workers of pytest-xdist that are forked from one process that has imported the tests.

A worker that begins on its own imports pytest, its plugins, the packages and all test modules, which takes
two thirds of the processor time until its first test. One process does that for all of them, and forks the
workers, which go on as execnet has them go on: they collect what is imported by then.

execnet starts ``joining_worker.py`` in the place of each worker; it hands over its standard streams to the
process that forks, and ends when the worker does. Where that process has failed, it becomes a worker as ever.
Linux only: elsewhere nothing is changed.
"""

from __future__ import annotations

import gc
import os
import pickle
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

PROGRAM = __file__  # what imports and forks
PATIENCE = 60.0  # seconds that the workers may take to end, behind the last test
BEGUN = b"x"  # the first word of a worker to what stands in its place


def prepare(config: Any, specs: list[Any]) -> None:
    """Have the workers of a run forked: a hook of pytest-xdist that may change how they are started."""
    if sys.platform != "linux" or any(not is_plain(spec) for spec in specs):
        return
    import execnet

    address = f"dafka-tests-{os.getpid()}-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{address}")
        listener.listen(len(specs))
        process = subprocess.Popen(
            [sys.executable, PROGRAM, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
    assert process.stdin is not None
    arguments = [str(argument) for argument in config.invocation_params.args]
    seed = config.getoption("randomly_seed", None)
    if seed is not None:
        arguments.append(f"--randomly-seed={seed}")  # it is noted for --randomly-seed=last
    with suppress(BrokenPipeError):
        process.stdin.write(pickle.dumps((sys.path, arguments)))
        process.stdin.flush()

    def end() -> None:
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait()

    config.add_cleanup(end)
    joining = shlex.join([sys.executable, "-IS", str(Path(__file__).with_name("joining_worker.py")), address])
    specs[:] = [execnet.XSpec(f"{spec}//id={spec.id}//python={joining}") for spec in specs]


def is_plain(spec: Any) -> bool:
    """Whether it stands for a process on this machine, with the interpreter and in the folder of this one."""
    return {part for part in str(spec).split("//") if not part.startswith("execmodel=")} == {"popen"}


def import_tests(arguments: list[str]) -> None:
    """Collect the tests that these arguments name; what is wrong with them, the workers will say."""
    import pytest

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        pytest.main([*arguments, "--collect-only", "--numprocesses=0", "--dist=no"])
    gc.collect()
    gc.freeze()


def fork_workers(listener: socket.socket) -> tuple[socket.socket, list[int]]:
    """Fork for each connection; returns it in the worker, with the standard streams that it is to have."""
    workers: set[int] = set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the workers, and for what started them
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:  # the tests have ended
            end_workers(workers)
            os._exit(0)
        connection, _ = listener.accept()
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that libraries have started: they provide for forks
            child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            listener.close()
            return connection, streams
        workers.add(child)
        connection.close()
        for stream in streams:
            os.close(stream)


def end_workers(workers: set[int]) -> None:
    """Wait until they have ended, which they do by themselves. Those that hang are killed."""
    late = time.monotonic() + PATIENCE
    while workers and time.monotonic() < late:
        ended, _ = os.waitpid(-1, os.WNOHANG)
        workers.discard(ended)
        if not ended:
            time.sleep(0.01)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    sys.path[:], arguments = pickle.load(sys.stdin.buffer)
    import_tests(arguments)
    connection, streams = fork_workers(listener)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)

    import forking_server

    forking_server.become(os.getcwd(), dict(os.environ), session=False)
    connection.sendall(BEGUN)  # it stays open for as long as this process is there
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})  # what execnet has a new process do
    forking_server.end(0)


if __name__ == "__main__":
    main()
