"""``dafka pipeline``: the command line of the programs on Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from dafka.cli import main

PROGRAMS = ("aggregate", "archive", "migrate", "replay")


def run(*arguments):
    return CliRunner().invoke(main, ["pipeline", *arguments])


def test_the_command_line_does_not_load_pyspark():
    program = "import sys; import dafka.cli; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_without_pyspark_the_extra_is_named():
    program = (
        "import sys; sys.modules['pyspark'] = None; from dafka.cli import main; main(['pipeline', 'archive'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert done.returncode == 1
    assert (
        done.stderr
        == "Error: pipelines run on Apache Spark; pyspark is missing: pip install 'dafka[spark]'\n"
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_explain_themselves(program):
    pytest.importorskip("pyspark")
    done = run(program, "--help")
    assert done.exit_code == 0
    assert "--master" in done.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["archive", "f", "--bootstrap-servers", "h:1"], "say either --topics or --pattern"),
        (
            ["archive", "f", "--bootstrap-servers", "h:1", "--topics", "t", "--option", "x"],
            "'x' is not NAME=VALUE",
        ),
        (
            ["archive", "f", "--bootstrap-servers", "h:1", "--topics", "t", "--conf", "x"],
            "'x' is not NAME=VALUE",
        ),
        (["replay", "f"], "Missing option '--bootstrap-servers'"),
        (["migrate", "--bootstrap-servers", "h:1", "--topics", "t"], "Missing option"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_wrong_arguments_are_named_before_spark_starts(arguments, reason):
    pytest.importorskip("pyspark")
    done = run(*arguments)
    assert done.exit_code == 2
    assert reason in done.output
