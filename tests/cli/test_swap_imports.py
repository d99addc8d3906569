"""dafka swap-imports: a whole code base."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.tools import DAFKA, environment, refused
from cli.tools import run as dafka

pytest.importorskip("libcst")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A code base: 40 files that import kafka among other things, and some that do not."""
    package = tmp_path / "app"
    package.mkdir()
    (package / "__init__.py").touch()
    for number in range(40):
        (package / f"m{number}.py").write_text(f"import kafka\n\nX = {number}\n")
    (package / "plain.py").write_text("import json\n")
    (package / "stub.pyi").write_text("from kafka import KafkaProducer\n")
    return tmp_path


def run(*arguments: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = refused("swap-imports", "--jobs", "1", *map(str, arguments))
    assert done.returncode == expect, done.stderr
    return done


def contents(tree: Path) -> dict[str, str]:
    return {str(path.relative_to(tree)): path.read_text() for path in sorted(tree.rglob("*.py*"))}


def test_a_code_base_is_swapped_and_swapped_back(tree):
    before = contents(tree)
    assert "41 of 43 files changed" in dafka("swap-imports", str(tree), "--jobs", "2").stderr
    assert contents(tree)["app/m7.py"] == "from compat import kafka\n\nX = 7\n"
    assert "0 of 43 files changed" in run(tree).stderr
    assert "41 of 43 files changed" in run("--back", tree).stderr
    assert contents(tree) == before


def test_check_and_diff_write_nothing(tree):
    before = contents(tree)
    assert "app/m3.py would change" in run("--check", tree, expect=1).stdout
    diff = run("--diff", tree / "app" / "m3.py").stdout
    assert "-import kafka\n+from compat import kafka\n" in diff
    assert contents(tree) == before
    run(tree)
    run("--check", tree)
    assert run("--diff", tree).stdout == ""


def test_places_left_unchanged_are_reported_with_file_and_line(tree):
    (tree / "app" / "dynamic.py").write_text("import json\nNAME = 'kafka.KafkaProducer'\n")
    done = run(tree)
    assert f"{tree}/app/dynamic.py:2: left: the string 'kafka.KafkaProducer'" in done.stderr
    assert "1 places left" in done.stderr


def test_a_file_that_is_not_python_is_reported_and_the_others_are_swapped(tree):
    (tree / "app" / "old.py").write_text("import kafka\nprint kafka\n")
    done = run(tree, expect=2)
    assert f"{tree}/app/old.py:2: not Python" in done.stderr
    assert contents(tree)["app/m0.py"].startswith("from compat import kafka")


@pytest.mark.parametrize("place", ["kafka.py", "kafka/__init__.py", "src/kafka.py", "compat.py"])
def test_a_module_of_ones_own_under_that_name_is_not_kafka_python(tree, place):
    own = tree / place
    own.parent.mkdir(exist_ok=True)
    own.write_text("")
    before = contents(tree)
    done = run(tree)
    name = Path(place).parts[-1].split(".")[0].replace("__init__", "kafka")
    assert done.stderr.splitlines() == [
        f"left: the module {name!r} is {own} here; 41 imports in 41 files mean it",
        "0 of 44 files changed",
    ]
    assert f"{tree}/app/m0.py:1: left: the module {name!r} is {own} here" in run("-v", tree).stderr
    assert contents(tree) == before


def test_a_module_inside_a_package_is_not_in_the_way(tree):
    (tree / "app" / "kafka.py").write_text("from kafka import KafkaProducer\n")
    (tree / "docker" / "kafka").mkdir(parents=True)
    run(tree)
    assert contents(tree)["app/kafka.py"] == "from compat.kafka import KafkaProducer\n"


def test_a_kafka_below_packages_without_init_files_is_not_in_the_way(tree):
    own = tree / "src" / "space" / "instrumentation" / "kafka"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("import kafka\n")
    run(tree)
    assert (own / "__init__.py").read_text() == "from compat import kafka\n"


def test_environments_and_hidden_folders_are_left(tree):
    for folder in (".tox", "env", "lib/site-packages", "node_modules"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "x.py").write_text("import kafka\n")
    (tree / "env" / "pyvenv.cfg").touch()
    assert "41 of 43 files changed" in run(tree).stderr


def test_a_missing_path_is_an_error():
    assert "no such file" in run("/no/such/folder", expect=2).stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "65"])
def test_an_invalid_number_of_processes_is_an_error(tree, jobs):
    assert "Invalid value for '--jobs'" in run("--jobs", jobs, tree, expect=2).stderr


def test_it_ends_quietly_when_the_reader_of_the_differences_has_gone(tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("import kafka\n" * 5000)  # more than a pipe holds
    process = subprocess.Popen(
        [*DAFKA, "swap-imports", "--diff", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout.readline().startswith("--- ")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 1


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_the_script_runs_where_it_is_called(tree):
    done = subprocess.run(
        [ROOT / "scripts" / "swap_imports", "app"],
        cwd=tree,
        env=environment(PYTHON=sys.executable),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "41 of 43 files changed" in done.stderr
