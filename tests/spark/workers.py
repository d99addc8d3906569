"""An interpreter for Spark's workers that has imported already: ``with interpreter() as python``.

Spark gives a process that it starts for a streaming query ten seconds to connect, and no setting alters that
("Python worker failed to connect back"). Its imports take half a second of processor time, which is more than
ten seconds on a very busy machine. ``python`` is a program for PYSPARK_PYTHON: it has a process beside the
tests fork the module of pyspark that Spark wants, hands on its signals and ends with it. A signal that ends
it ends the module, too. Other commands than ``python -m pyspark...`` are those of the interpreter of the
tests.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NEEDED = (
    "pandas",
    "pyarrow",
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
)

_CLIENT = """\
#!{python} -SE
import os, sys

if sys.argv[1:2] != ["-m"] or not sys.argv[2].startswith("pyspark."):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])

import json, signal, socket

server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
content = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(server, [len(content).to_bytes(4, "big")], [0, 1, 2])
server.sendall(content)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.sendall(bytes([number])))
status = server.recv(1)
os._exit(status[0] if status else 1)
"""


@contextmanager
def interpreter() -> Iterator[str]:
    """The path of the program, which is there as long as the context lasts."""
    # Not in a folder of pytest's: the name of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:
        address = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen(64)
            process = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                pass_fds=[listening.fileno()],
                stdin=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        program = Path(folder, "python")
        program.write_text(_CLIENT.format(python=sys.executable, address=address))
        program.chmod(0o755)
        try:
            yield str(program)
        finally:
            process.stdin.close()
            process.wait()


def main(number: str) -> None:
    """Fork for each client, until standard input is closed."""
    sys.path[:1] = [str(Path(__file__).parents[1])]  # not this folder
    from forking_server import end

    sys.path[:1] = [str(Path(__file__).parents[2])]
    import dafka.broker.connecting
    import dafka.spark

    ours = [one.name for one in pkgutil.iter_modules(dafka.spark.__path__, "dafka.spark.")]
    for name in (*_NEEDED, *ours):
        with suppress(ImportError):  # of another version of pyspark
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    wanted = _Server(socket.socket(fileno=int(number))).serve()
    if wanted is not None:
        end(_become(*wanted))


class _Server:
    """What clients ask for, in one thread."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: dict[int, socket.socket] = {}  # by the number of the process that is forked for each
        self._ended, ended = socket.socketpair()
        for one in (self._ended, ended):
            one.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ended.fileno())
        self._wakes = ended
        self._selector = selectors.DefaultSelector()
        for one in (0, listening, self._ended):
            self._selector.register(one, selectors.EVENT_READ)

    def serve(self) -> tuple[list[str], dict[str, str], str, list[int]] | None:
        """Returns None at the end, and in a forked process what it is to be."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    for child in self._clients:
                        os.kill(child, signal.SIGKILL)
                    return None
                if key.fileobj is self._ended:
                    self._reap()
                elif key.fileobj is self._listening:
                    client, _ = self._listening.accept()
                    wanted = self._fork(client)
                    if wanted is not None:
                        return wanted
                elif key.data in self._clients:
                    self._signal(key.data)

    def _fork(self, client: socket.socket) -> tuple[list[str], dict[str, str], str, list[int]] | None:
        head, streams, _, _ = socket.recv_fds(client, 4, 3)
        content = b""
        while len(content) < int.from_bytes(head, "big") and (more := client.recv(1 << 16)):
            content += more
        child = os.fork() if content else -1
        if child:
            for stream in streams:
                os.close(stream)
            if child > 0:
                self._clients[child] = client
                self._selector.register(client, selectors.EVENT_READ, child)
            return None
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (client, self._listening, self._ended, self._wakes, *self._clients.values()):
            one.close()
        self._selector.close()
        arguments, environment, folder = json.loads(content)
        return arguments, environment, folder, streams

    def _signal(self, child: int) -> None:
        with suppress(ProcessLookupError):
            said = self._clients[child].recv(1)
            os.kill(child, said[0] if said else signal.SIGKILL)
            if not said:
                self._selector.unregister(self._clients[child])

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._ended.recv(4096)
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                child, status = found
                client = self._clients.pop(child)
                with suppress(KeyError):
                    self._selector.unregister(client)
                with suppress(OSError):
                    client.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
                client.close()


def _become(arguments: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> object:
    """Run what a client asks for; the code that it ends with."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    own = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [folder, *filter(None, own)]
    sys.argv = arguments
    sys.modules.pop(arguments[0], None)  # it is run as __main__, and imported by nobody
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as exited:
        return exited.code
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
