"""The files of a code base: which there are, whether their imports mean kafka-python, and how they change."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dafka.swapping.rewriting import Note, NotPythonError, rewrite

SUFFIXES = (".py", ".pyi")
PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Dockerfile", ".git")
FEW_FILES = 32  # fewer files are not worth starting further processes


class Outcome(NamedTuple):
    """The result for one file. ``own``: its notes that say no more than :attr:`Task.own` does."""

    path: Path
    changed: bool = False
    diff: str = ""
    notes: tuple[Note, ...] = ()
    own: tuple[Note, ...] = ()
    error: Note | None = None


class Task(NamedTuple):
    """One file to rewrite.

    ``back``: from ``compat.kafka`` to ``kafka``; ``with_diff``: the outcome has the difference; ``write``:
    the file is changed; ``own``: why its imports have to be left (:func:`own_module`).
    """

    path: Path
    back: bool
    with_diff: bool
    write: bool
    own: str | None


def sources(root: Path) -> Iterator[Path]:
    """A file itself, or the Python files below a folder; not those of environments and hidden folders."""
    if not root.is_dir():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in ("__pycache__", "node_modules", "site-packages")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield Path(folder, name)


def own_module(path: Path, root: Path) -> str | None:
    """Why a file's imports cannot be swapped: the code base has a top-level ``kafka`` or ``compat`` itself.

    Python looks where the file's outermost package is, or where the file is if it belongs to none, and
    where the program is started: in the folder given, or its ``src``. A file of the package ``kafka`` itself
    is an exception, unless a project begins above it: packages without ``__init__.py`` may come first
    (``opentelemetry/instrumentation/kafka``).
    """
    inside = folder = path.resolve().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        inside, folder = folder, folder.parent
    root = root.resolve()
    places = [root, root / "src"] if root.is_dir() else []
    if inside.name != "kafka" or any((folder / name).exists() for name in PROJECT):
        places.append(folder)
    return next((found for place in places if (found := _own_module(place)) is not None), None)


@cache
def _own_module(folder: Path) -> str | None:
    if (folder / "__init__.py").exists():
        return None  # a package: its modules are called by their full name
    for name in ("kafka", "compat"):
        for found in (folder / f"{name}.py", folder / name / "__init__.py"):
            if found.exists() and not (found.parent / "kafka" / "_mirror.py").exists():
                return f"the module {name!r} is {found} here"
    return None


def outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Rewrite files, many of them in ``jobs`` processes; the outcomes in the order of the tasks."""
    if len(tasks) < FEW_FILES or jobs < 2:
        yield from map(swap, tasks)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks))) as pool:
        yield from pool.map(swap, tasks, chunksize=8)


def swap(task: Task) -> Outcome:
    """Rewrite one file."""
    path = task.path
    try:
        source = path.read_bytes()
        rewritten = rewrite(source, back=task.back, local=task.own)
        changed = rewritten.source != source
        if changed and task.write:
            path.write_bytes(rewritten.source)
    except NotPythonError as error:
        return Outcome(path, error=Note(error.line, f"not Python: {error}"))
    except OSError as error:
        return Outcome(path, error=Note(0, str(error)))
    diff = _diff(path, source, rewritten.source) if changed and task.with_diff else ""
    own = tuple(note for note in rewritten.notes if note.text == f"left: {task.own}")
    return Outcome(path, changed, diff, tuple(note for note in rewritten.notes if note not in own), own)


def _diff(path: Path, before: bytes, after: bytes) -> str:
    old, new = (
        source.decode("utf-8", "backslashreplace").splitlines(keepends=True) for source in (before, after)
    )
    lines = difflib.unified_diff(old, new, str(path), str(path))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
