"""The command: finds the files, rewrites them in several processes, and says what is left to decide."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rewriting import Note, NotPythonError, rewrite

SUFFIXES = (".py", ".pyi")
PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Dockerfile", ".git")
FEW_FILES = 32  # fewer files are not worth starting further processes


class Outcome(NamedTuple):
    """The result for one file."""

    path: Path
    changed: bool = False
    diff: str = ""
    notes: tuple[Note, ...] = ()
    error: Note | None = None


def main() -> int:
    """Exit status 0; 1 with --check if anything would change; 2 if a file could not be read as Python."""
    options = _parser().parse_args()
    missing = [str(path) for path in options.paths if not path.exists()]
    if missing:
        print(f"swap_imports: no such file or folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    tasks = [
        (path, options.back, options.diff, not (options.check or options.diff), own_module(path, root))
        for root in options.paths
        for path in sources(root)
    ]
    changed = left = failed = 0
    for outcome in _outcomes(tasks, options.jobs):
        sys.stdout.write(outcome.diff)
        if outcome.changed and options.check and not options.diff:
            print(f"{outcome.path} would change")
        for note in outcome.notes:
            print(f"{outcome.path}:{note.line}: {note.text}", file=sys.stderr)
        if outcome.error is not None:
            print(f"{outcome.path}:{outcome.error.line}: {outcome.error.text}", file=sys.stderr)
        changed += outcome.changed
        left += len(outcome.notes)
        failed += outcome.error is not None
    verb = "would change" if options.check or options.diff else "changed"
    summary = f"{changed} of {len(tasks)} files {verb}"
    if left:
        summary += f", {left} places left for you to decide"
    if failed:
        summary += f", {failed} files not read"
    print(f"swap_imports: {summary}", file=sys.stderr)
    return 2 if failed else int(options.check and changed > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="swap_imports",
        description="Rewrites a code base to import compat.kafka where it imported kafka (kafka-python).",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files, or folders")
    parser.add_argument("--back", action="store_true", help="from compat.kafka to kafka")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=_jobs, default=cores, metavar="N", help="processes to use")
    return parser


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"a number from 1 to 64, not {text!r}")
    return int(text)


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
        return None  # a package: what is in it is called by its full name
    for name in ("kafka", "compat"):
        for found in (folder / f"{name}.py", folder / name / "__init__.py"):
            if found.exists() and not (found.parent / "kafka" / "_mirror.py").exists():
                return f"the module {name!r} is {found} here"
    return None


Task = tuple[Path, bool, bool, bool, "str | None"]


def _outcomes(tasks: list[Task], jobs: int) -> Iterator[Outcome]:
    if len(tasks) < FEW_FILES or jobs < 2:
        yield from map(swap, tasks)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks))) as pool:
        yield from pool.map(swap, tasks, chunksize=8)


def swap(task: Task) -> Outcome:
    """Rewrite one file: (path, back, whether to make a diff, whether to write, own_module())."""
    path, back, with_diff, write, local = task
    try:
        source = path.read_bytes()
        rewritten = rewrite(source, back=back, local=local)
        changed = rewritten.source != source
        if changed and write:
            path.write_bytes(rewritten.source)
    except NotPythonError as error:
        return Outcome(path, error=Note(error.line, f"not Python: {error}"))
    except OSError as error:
        return Outcome(path, error=Note(0, str(error)))
    diff = _diff(path, source, rewritten.source) if changed and with_diff else ""
    return Outcome(path, changed, diff, tuple(rewritten.notes))


def _diff(path: Path, before: bytes, after: bytes) -> str:
    old, new = (
        source.decode("utf-8", "backslashreplace").splitlines(keepends=True) for source in (before, after)
    )
    lines = difflib.unified_diff(old, new, str(path), str(path))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the differences has gone, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
