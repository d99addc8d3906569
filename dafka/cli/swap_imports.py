"""``dafka swap-imports``: rewrites a code base to import compat.kafka in kafka-python's place, and back."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import click

CORES = min(os.cpu_count() or 1, 64)


@click.command("swap-imports")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--back", is_flag=True, help="From compat.kafka to kafka.")
@click.option("--check", is_flag=True, help="Write nothing; the exit status is 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=CORES, help="Processes at work.", show_default="cores"
)
@click.option(
    "-v", "--verbose", is_flag=True, help="List each import that is left because of a module of your own."
)
def swap_imports(
    paths: tuple[Path, ...], back: bool, check: bool, diff: bool, jobs: int, verbose: bool
) -> None:
    """Rewrite the files PATH, and all Python files below the folders PATH, to import compat.kafka.

    Everything else in a file stays as it is. Names that may mean kafka-python but cannot be decided from the
    source are left, and named with file and line. The exit status is 2 if a file could not be read as Python.
    """
    try:
        from dafka.swapping.files import Task, outcomes, own_module, sources
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise click.ClickException("libcst is missing: pip install 'dafka[swap]'") from error
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise click.UsageError(f"no such file or folder: {', '.join(missing)}")
    tasks = [
        Task(path, back, diff, not (check or diff), own_module(path, root))
        for root in paths
        for path in sources(root)
    ]
    changed = left = failed = 0
    places, files = Counter[str](), Counter[str]()  # of imports that are left, by the reason
    for task, outcome in zip(tasks, outcomes(tasks, jobs), strict=True):
        click.echo(outcome.diff, nl=False)
        if outcome.changed and check and not diff:
            click.echo(f"{outcome.path} would change")
        if outcome.own and task.own is not None:
            places[task.own] += len(outcome.own)
            files[task.own] += 1
        shown = (*outcome.notes, *(outcome.own if verbose else ()))
        for note in sorted(shown) if outcome.error is None else (outcome.error,):
            click.echo(f"{outcome.path}:{note.line}: {note.text}", err=True)
        changed += outcome.changed
        left += len(outcome.notes)
        failed += outcome.error is not None
    for reason, count in places.items():
        click.echo(f"left: {reason}; {count} imports in {files[reason]} files mean it", err=True)
    click.echo(
        _summary(changed, len(tasks), "would change" if check or diff else "changed", left, failed), err=True
    )
    sys.exit(2 if failed else int(check and changed > 0))


def _summary(changed: int, files: int, verb: str, left: int, failed: int) -> str:
    summary = f"{changed} of {files} files {verb}"
    if left:
        summary += f", {left} places left for you to decide"
    if failed:
        summary += f", {failed} files not read"
    return summary
