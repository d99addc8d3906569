"""The interpreter of Spark's workers: a forked process instead of a started one, and otherwise the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

DAEMON = ["-m", "pyspark.daemon", "pyspark.worker"]


def start(python, *arguments):
    return subprocess.Popen([python, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_module_of_pyspark_runs_and_ends_with_its_standard_input(spark_python):
    with start(spark_python, *DAEMON) as process:
        assert len(process.stdout.read(4)) == 4  # the port that it listens at
        process.stdin.close()
        assert process.wait(100) == 1  # as it ends by itself: pyspark.daemon


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signals_that_end_the_program_end_the_module(spark_python, number):
    with start(spark_python, *DAEMON) as process:
        assert len(process.stdout.read(4)) == 4
        process.send_signal(number)
        assert process.stdout.read() == b""  # nobody has it open any more
        process.wait(100)


def test_other_commands_are_those_of_this_interpreter(spark_python):
    program = "import os, sys; print(sys.executable, sys.argv[1:], os.environ['HERE'])"
    said = subprocess.run(
        [spark_python, "-c", program, "a b"], capture_output=True, text=True, env={**os.environ, "HERE": "x"}
    )
    assert said.stdout == f"{sys.executable} ['a b'] x\n"


def test_a_module_that_is_not_there_is_an_error(spark_python):
    said = subprocess.run([spark_python, "-m", "pyspark.no_such"], capture_output=True, text=True)
    assert said.returncode == 1
    assert "pyspark.no_such" in said.stderr
