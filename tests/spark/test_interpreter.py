"""The Python of Spark's workers: missing packages are named before anything runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dafka.spark import interpreter, register
from dafka.spark.interpreter import InterpreterError, check_workers


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """An interpreter without any package."""
    program = tmp_path / "python3"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture(autouse=True)
def asked_anew() -> None:
    interpreter._check.cache_clear()


def session_of(executable: str, *shipped: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=executable, _python_includes=[*shipped]))


def test_the_interpreter_of_path_is_named_with_what_it_lacks_and_what_to_do(
    bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(bare), prepend=os.pathsep)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with pytest.raises(InterpreterError) as caught:
        check_workers(session_of("python3"))
    said = str(caught.value)
    assert (
        f"workers with {bare} (python3 of PATH, as PYSPARK_PYTHON is not set), which lacks dafka, pyarrow"
        in said
    )
    assert f"PYSPARK_PYTHON={sys.executable}" in said


def test_one_that_pyspark_python_names_is_said_to_be_that(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", bare)
    with pytest.raises(InterpreterError, match="PYSPARK_PYTHON says so"):
        check_workers(session_of(bare))


def test_an_interpreter_that_has_everything_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    check_workers(session_of(str(other)))
    check_workers(session_of(sys.executable))


def test_interpreters_that_cannot_be_checked_are_left_to_spark(tmp_path: Path) -> None:
    check_workers(session_of("./environment/bin/python"))  # comes with an archive
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    check_workers(session_of(str(broken)))
    check_workers(SimpleNamespace())  # Spark Connect has no context


def test_a_session_is_told_when_the_format_is_registered(
    spark: Any, bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    with pytest.raises(InterpreterError, match="which lacks dafka, pyarrow"):
        register(spark)
    monkeypatch.undo()
    register(spark)
