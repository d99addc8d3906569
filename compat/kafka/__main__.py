"""``python -m compat.kafka app.py``: runs a program with ``kafka`` answered by this facade.

The program is run as Python itself would run it: as ``__main__``, with its own arguments and ``sys.path``.
See :mod:`compat.kafka._install` for what it finds under ``kafka``. Only this process is changed; processes
that the program starts find kafka-python.
"""

from __future__ import annotations

import importlib.util
import io
import os
import pkgutil
import runpy
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from compat.kafka._install import install
from dafka.log import LogError
from dafka.log.folder import take_folder

USAGE = """\
usage: python -m compat.kafka [--embedded DIR] PROGRAM.py [ARGUMENT ...]
       python -m compat.kafka [--embedded DIR] -m MODULE [ARGUMENT ...]
       python -m compat.kafka [--embedded DIR] -c CODE [ARGUMENT ...]

Runs a program, a module or code with "kafka" answered by a broker inside the process.

  --embedded DIR  every bootstrap address means one broker with its data in DIR
                  (the same as DAFKA_EMBEDDED=DIR in the environment)
"""


class _CannotRun(Exception):
    """An error in the command line, described in one line."""


def main(arguments: list[str]) -> None:
    """Run the program of the arguments; its exceptions, SystemExit included, come through."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-h", "--help"):
            print(USAGE, end="")
            return
        name, equals, value = option.partition("=")
        if name == "--embedded":
            os.environ["DAFKA_EMBEDDED"] = _folder(value if equals else _value(option, rest))
        elif option == "-m":
            return _run_module(_value(option, rest), rest)
        elif option == "-c":
            return _run_code(_value(option, rest), rest)
        elif option == "--":
            break
        else:
            raise _CannotRun(f"unknown option {option}\n{USAGE}")
    if not rest:
        raise _CannotRun(f"no program to run\n{USAGE}")
    _run_file(rest[0], rest[1:])


def _value(option: str, rest: list[str]) -> str:
    if not rest:
        raise _CannotRun(f"{option} needs a value\n{USAGE}")
    return rest.pop(0)


def _folder(value: str) -> str:
    """The folder, made and seen to be a broker's or empty. The program opens it when it first wants to."""
    if not value:
        raise _CannotRun(f"--embedded needs a folder\n{USAGE}")
    path = os.path.abspath(os.path.expanduser(value))
    try:
        take_folder(path).release()
    except LogError as error:
        raise _CannotRun(f"--embedded {value}: {error}") from None
    return path


def _run_file(path: str, arguments: list[str]) -> None:
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or (os.path.exists(path) and path.endswith((".zip", ".pyz"))):
        importer = pkgutil.get_importer(path)
        if importer is None or importer.find_spec("__main__") is None:
            raise _CannotRun(f"can't find '__main__' module in {path!r}")
        install()
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise _CannotRun(f"can't open file {path!r}: {error.strerror}") from None
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    _execute(lambda: compile(source, path, "exec", dont_inherit=True), path, None)


def _run_module(name: str, arguments: list[str]) -> None:
    _set_first_path(os.getcwd())
    install()  # before the packages above the module are imported
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise _CannotRun(f"no module named {name!r} that can be run")
    sys.argv = [spec.origin or name, *arguments]
    code = spec.loader.get_code(spec.name)
    _execute(lambda: code, spec.origin, spec)


def _run_code(source: str, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments]
    _set_first_path("")
    _execute(lambda: compile(source, "<string>", "exec", dont_inherit=True), None, None)


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            return None
        raise


def _set_first_path(folder: str) -> None:
    # "python -m" has put the current folder there. With -P or -I nobody wants any of them.
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _execute(code: object, file: str | None, spec: ModuleSpec | None) -> None:
    """Run code as ``__main__``.

    The module stays in ``sys.modules`` when the code is through (runpy would take it out), because threads
    and exit handlers of the program still use its globals then.
    """
    program = ModuleType("__main__")
    program.__spec__ = spec
    program.__dict__["__builtins__"] = __builtins__
    if spec is not None:
        program.__loader__, program.__package__ = spec.loader, spec.parent
        program.__dict__["__cached__"] = spec.cached
    else:
        program.__package__ = None
    if file is not None:
        program.__file__ = file
    install()
    compiled = code() if callable(code) else code
    assert isinstance(compiled, CodeType)
    sys.modules["__main__"] = program
    exec(compiled, program.__dict__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except _CannotRun as error:
        print(f"python -m compat.kafka: {error}", file=sys.stderr)
        sys.exit(2)
