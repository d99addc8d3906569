"""The process that forks programs. ``forking`` starts it, with the number of a connected socket."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import io
import os
import pickle
import pkgutil
import socket
import sys
import threading
import time
import types
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import zmq

ROOT = Path(__file__).parents[1]
# What belongs to Spark and pytest costs more than the rest together, and few programs need it.
# With the console comes Flask, which leaves a handler of logging in each.
LEFT_OUT = ("dafka.console", "dafka.spark", "dafka.testing", "dafka.cli.__main__")


def import_ours() -> None:
    """Import what programs of tests import. It starts no thread, and no hub of gevent's."""
    import compat.kafka
    import dafka

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in (dafka, compat.kafka):
            _import_inside(package)


def _import_inside(package: types.ModuleType) -> None:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.name.startswith(LEFT_OUT):
            with suppress(ImportError):  # of a package that may be missing
                module = importlib.import_module(found.name)
                if found.ispkg:
                    _import_inside(module)


def serve(connection: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns it in the process that is to become the program."""
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 8, 3)
        if not head:
            os._exit(0)  # the tests have ended
        content = bytearray()
        while len(content) < int.from_bytes(head, "big"):
            content += connection.recv(1 << 20)
        waiting, ready = os.pipe()
        middle = os.fork()
        if not middle:
            program = os.fork()
            if program:
                os.write(connection.fileno(), program.to_bytes(8, "big"))
                os._exit(0)
            connection.close()
            os.close(ready)
            os.read(waiting, 1)  # returns when what stands between the tests and this process has ended
            os.close(waiting)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for stream in streams:
                os.close(stream)
            request: dict[str, Any] = pickle.loads(content)
            return request
        os.waitpid(middle, 0)
        os.close(waiting)
        os.close(ready)
        connection.sendall(b"x")
        for stream in streams:
            os.close(stream)


def become(folder: str, environment: dict[str, str], session: bool) -> None:
    """Set what a new process has of its own."""
    from dafka.broker import connecting

    if session:
        os.setsid()
    os.chdir(folder)
    connecting._STARTED_IN = os.getcwd()  # it was imported elsewhere
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    raw = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    for name, number in (("stdout", 1), ("stderr", 2)):
        buffer: Any = open(number, "wb", 0 if raw else -1, closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            buffer,
            errors="backslashreplace" if number == 2 else None,
            line_buffering=number == 2 or buffer.isatty(),
            write_through=raw,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.__stdin__ = sys.stdin


def execute(filters: list[str], kind: str, what: str, arguments: list[str], path: list[str]) -> None:
    """Run a program as ``__main__``."""
    for text in filters:
        action, _, category = text.partition("::")
        found = getattr(__builtins__, category, Warning) if category else Warning
        warnings.simplefilter(action, found)  # type: ignore[arg-type]
    first = {"-c": "", "-m": os.getcwd(), "": os.path.dirname(os.path.abspath(what))}[kind]
    own = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:] = [first, *own, *path]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if kind == "-m":
        spec = importlib.util.find_spec(what)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{what}.__main__")
        if spec is None or spec.loader is None:
            raise SystemExit(f"{sys.executable}: No module named {what}")
        code = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
        main.__spec__, main.__package__, main.__file__ = spec, spec.parent, spec.origin
        sys.argv = [str(spec.origin), *arguments]
    elif kind == "-c":
        code = compile(what, "<string>", "exec", dont_inherit=True)
        sys.argv = ["-c", *arguments]
    else:
        code = compile(Path(what).read_bytes(), what, "exec", dont_inherit=True)
        main.__file__ = what
        sys.argv = [what, *arguments]
    exec(code, main.__dict__)


def end(code: object) -> NoReturn:
    """End as the interpreter does, but for taking its modules apart.

    That would copy most pages of the process that forks: 80 ms of processor time for a program that takes 5.
    libzmq sends what waits when its contexts are taken apart; programs that have some end as ever.
    """
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        # What a program has frozen, its standard streams with it, is not among all objects.
        streams = [one for one in (sys.stdout, sys.stderr) if one is not None]
        left_open = streams + [one for one in gc.get_objects() if issubclass(type(one), _LEFT_OPEN)]
        if not any(issubclass(type(one), zmq.Context) for one in left_open):
            for file in left_open:
                if not file.closed:
                    file.flush()
            os._exit((code or 0) & 0xFF)
    except BaseException:
        pass  # the interpreter comes to the same, and says so
    raise SystemExit(code)


_LEFT_OPEN = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom, zmq.Context)


if __name__ == "__main__":
    plain = sys.path[1:]
    sys.path[:1] = [str(ROOT)]
    import_ours()
    gc.collect()
    gc.freeze()
    wanted = serve(socket.socket(fileno=int(sys.argv[1])))
    become(wanted["folder"], wanted["environment"], wanted["session"])
    code: object = None
    try:
        execute(*wanted["program"], plain)
    except SystemExit as exited:
        code = exited.code
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        inner = error.__traceback__ and error.__traceback__.tb_next  # not this frame and that of execute()
        error = error.with_traceback(inner and inner.tb_next)
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    end(code)
