"""Workers of pytest-xdist that are forked are workers as any others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import warm_workers

CONFTEST = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parent)!r})


def pytest_xdist_setupnodes(config, specs):
    import warm_workers

    {{more}}
    warm_workers.prepare(config, specs)
"""
TESTS = """
import os
import sys
from pathlib import Path

import pytest

IMPORTED = os.getpid()
TOLD = Path(__file__).parent / "told"


@pytest.mark.parametrize("number", range(8))
def test_it(number, worker_id, tmp_path_factory):
    with open(TOLD, "a") as told:
        folder = tmp_path_factory.getbasetemp().name
        print(worker_id, os.getpid(), IMPORTED, os.environ["PYTEST_XDIST_WORKER"], folder, file=told)
    print("from the first on", flush=True)
    os.write(2, b"standard error\\n")
    if number == 5:
        {end}
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")


def told(folder: Path, *, end: str = "pass", more: str = "", code: int = 0) -> tuple[list[list[str]], str]:
    """What each test tells of its worker, and what the run says. One of the tests ends as ``end`` has it."""
    (folder / "conftest.py").write_text(CONFTEST.format(more=more))
    (folder / "test_it.py").write_text(TESTS.format(end=end))
    command = [sys.executable, "-m", "pytest", "--numprocesses", "2", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == code, done.stdout + done.stderr
    return [line.split() for line in (folder / "told").read_text().splitlines()], done.stdout


def test_workers_have_what_one_process_has_imported_and_the_rest_of_their_own(tmp_path):
    lines, said = told(tmp_path)
    assert "8 passed" in said
    workers = {name: process for name, process, *_ in lines}
    assert workers.keys() == {"gw0", "gw1"}
    assert len(set(workers.values())) == 2
    assert {variable for _, _, _, variable, _ in lines} == workers.keys()
    assert {folder for *_, folder in lines} == {"popen-gw0", "popen-gw1"}
    (importer,) = {imported for _, _, imported, _, _ in lines}
    assert importer not in workers.values()


def test_a_worker_that_dies_is_noticed_and_replaced(tmp_path):
    lines, said = told(tmp_path, end="os._exit(3)", code=1)
    assert "worker 'gw" in said and "crashed while running 'test_it.py::test_it[5]'" in said
    assert "1 failed, 7 passed" in said
    assert "replacing crashed worker gw" in said
    assert len(lines) == 8
    assert len({imported for _, _, imported, *_ in lines}) == 1


def test_the_output_of_a_failed_test_is_shown(tmp_path):
    _, said = told(tmp_path, end="assert not IMPORTED", code=1)
    assert "Captured stdout call" in said and "from the first on" in said
    assert "Captured stderr call" in said and "standard error" in said
    assert "assert not " in said  # rewritten


def test_workers_begin_on_their_own_where_nothing_can_be_forked(tmp_path):
    lines, said = told(tmp_path, more="warm_workers.PROGRAM = '/dev/null'")
    assert "8 passed" in said
    assert all(process == imported for _, process, imported, *_ in lines)


@pytest.mark.parametrize(
    ("spec", "is_plain"),
    [("popen", True), ("execmodel=main_thread_only//popen", True), ("popen//python=python3.13", False),
     ("popen//chdir=elsewhere", False), ("ssh=host", False)],
)  # fmt: skip
def test_only_workers_like_this_process_are_forked(spec, is_plain):
    assert warm_workers.is_plain(spec) is is_plain
