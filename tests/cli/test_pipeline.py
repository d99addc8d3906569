"""``dafka pipeline``: the command line of the programs on Spark."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress

import pytest
from cli.tools import DAFKA, environment
from click.testing import CliRunner
from spark.frames import create, produce, records, wait_until
from spark.starting import JAVA

from dafka import Broker
from dafka.cli import main

PROGRAMS = ("aggregate", "archive", "migrate", "replay")


def run(*arguments):
    return CliRunner().invoke(main, ["pipeline", *arguments])


def test_the_command_line_does_not_load_pyspark():
    program = "import sys; import dafka.cli; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=200)


def test_without_pyspark_the_extra_is_named():
    program = (
        "import sys; sys.modules['pyspark'] = None; from dafka.cli import main; main(['pipeline', 'archive'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.returncode == 1
    assert (
        done.stderr == f"Error: pipelines run on Apache Spark; pyspark is missing in {sys.executable}: "
        "pip install 'dafka[spark]'\n"
    )


def test_without_pyspark_help_lists_the_programs():
    program = (
        "import sys; sys.modules['pyspark'] = None; from dafka.cli import main; main(['pipeline', '-h'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"  {name}\n" in done.stdout for name in PROGRAMS)
    assert "pip install 'dafka[spark]'" in done.stdout


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
        (
            [
                *("aggregate", "--bootstrap-servers", "h:1", "--topics", "t", "--schema", "at timestamp"),
                *("--time", "at", "--checkpoint", "c"),
            ],
            "say either --to-parquet or --to-topic",
        ),
    ],
)
def test_wrong_arguments_are_named_before_spark_starts(arguments, reason):
    pytest.importorskip("pyspark")
    done = run(*arguments)
    assert done.exit_code == 2
    assert reason in done.output


@pytest.fixture
def nobody():
    """An address that nobody listens at, and nobody else gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("program", ["archive", "replay"])
def test_brokers_that_do_not_answer_are_named_before_spark_starts(nobody, monkeypatch, caplog, program):
    running = pytest.importorskip("dafka.spark.pipelines.running")
    monkeypatch.setattr(running, "session", None)
    topics = ["--topics", "t"] if program == "archive" else []
    for seconds in (0.3, 3.5, 30.5):  # a busy machine may not have tried in the shortest
        monkeypatch.setattr(running, "BROKER_SECONDS", seconds)
        done = run(program, "f", "--bootstrap-servers", nobody, *topics)
        assert done.exit_code == 1
        if "refused" in done.output:
            break
    said = f"Error: no broker answers at {nobody} in {seconds} s: {nobody}: Connection refused\n"
    assert done.output == said
    assert not [record for record in caplog.records if record.name.startswith("dafka")]


def test_an_option_of_the_source_says_how_long_brokers_are_waited_for(nobody):
    pytest.importorskip("pyspark")
    option = ["--option", "kafka.default.api.timeout.ms=200"]
    done = run("archive", "f", "--bootstrap-servers", nobody, "--topics", "t", *option)
    assert f"Error: no broker answers at {nobody} in 0.2 s" in done.output


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_broker_without_a_word(nobody, ending):
    pytest.importorskip("pyspark")
    # It runs ever so long, and says when it waits.
    program = (
        "import sys; from dafka.cli import main; from dafka.spark.pipelines import running; "
        "find = running.find_brokers; "
        "running.find_brokers = lambda keywords: (print('waiting', flush=True), find(keywords)); "
        "main(sys.argv[1:])"
    )
    options = ["--topics", "t", "--option", "kafka.default.api.timeout.ms=300000"]
    command = ["pipeline", "archive", "f", "--bootstrap-servers", nobody, *options]
    with started(sys.executable, "-c", program, *command) as process:
        assert process.stdout.readline() == "waiting\n"
        os.killpg(process.pid, ending)
        output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, output, errors) == (128 + ending, "", "")


# -- to their end, in the session of all tests, or in a process ---------------------------------

EVENTS = 60
SECONDS = 1500
FAST_START = ["--conf", f"spark.driver.extraJavaOptions={JAVA}"]


takes_its_time = pytest.mark.timeout(2 * SECONDS)


@pytest.fixture(scope="module")
def broker():
    """A broker with a topic of events: three partitions, keys, headers, three hours of time."""
    pytest.importorskip("pyspark")
    from dafka.spark.java import JavaMissingError, find_java

    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    with Broker(listen="127.0.0.1:0") as broker:
        create(broker, "events", 3)
        numbers = range(EVENTS)
        events = [
            {"at": f"2024-03-01T{8 + number % 3:02d}:{number % 60:02d}:00Z", "n": number}
            for number in numbers
        ]
        produce(
            broker,
            "events",
            [json.dumps(event).encode() for event in events],
            key=[b"%d" % (number % 7) for number in numbers],
            headers=[[("number", b"%d" % number)] for number in numbers],
        )
        yield broker


@contextmanager
def started(*command, **more):
    """A process in a group of its own, so that Java goes with it whatever happens."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(SPARK_LOCAL_IP="127.0.0.1", **more),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# What Java's logging has to say of a machine whose own name has no address.
_NAMELESS = re.compile(r"^.*UnknownHostException.*\n(?:(?:\tat |\t?\.\.\. |Caused by: ).*\n)*", re.MULTILINE)


def to_the_end(process, status=0):
    """What a process says on its standard output; it leaves nothing of Java's or Python's errors behind."""
    output, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == status, errors
    assert "Traceback" not in errors
    assert "\tat " not in _NAMELESS.sub("", errors)
    return output


def pipeline(python, *arguments):
    return started(*DAFKA, "pipeline", *arguments, *FAST_START, PYSPARK_PYTHON=python)


@pytest.fixture
def in_session(spark, monkeypatch):
    """Runs a pipeline to its end in the session that all tests share; returns what it says."""
    from dafka.spark.pipelines import running

    def session(*_):
        # In the thread that the work is done in. It is Java's current one where it was made, nowhere else.
        type(spark)._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
        return spark

    monkeypatch.setattr(running, "session", session)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)  # others go on with it
    monkeypatch.setattr(running, "_without_traces_of_the_end", lambda spark: None)

    def run_to_the_end(*arguments):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
        return done.output

    return run_to_the_end


def source(broker):
    return ["--bootstrap-servers", broker.bootstrap_servers, "--topics", "events"]


def content(some):
    return sorted((record.key, record.value, record.timestamp, list(record.headers)) for record in some)


def test_archived_records_are_replayed(broker, tmp_path, in_session):
    folder = str(tmp_path / "archive")
    assert in_session("archive", folder, *source(broker)) == f"{EVENTS} records written to {folder}\n"
    to = ["--bootstrap-servers", broker.bootstrap_servers, "--topic", "again"]
    assert in_session("replay", folder, *to) == f"{EVENTS} records written\n"
    assert content(records(broker, "again")) == content(records(broker, "events"))


def test_events_are_aggregated(broker, tmp_path, in_session):
    arguments = [
        *("--schema", "at timestamp, n long", "--time", "at", "--window", "1 hour", "--sum", "n"),
        *("--to-topic", "hours", "--checkpoint", str(tmp_path / "checkpoint"), "--watermark", "0 seconds"),
    ]
    said = in_session("aggregate", *source(broker), *arguments)
    assert said.startswith(f"{EVENTS} events read; 1 window is still open and not written")
    found = [json.loads(record.value) for record in records(broker, "hours")]
    # The window of the last hour is complete when there is a later event.
    assert sorted((one["start"][11:13], one["count"], one["sum_n"]) for one in found) == [
        (f"{8 + hour:02d}", EVENTS // 3, sum(range(hour, EVENTS, 3))) for hour in (0, 1)
    ]


@takes_its_time
def test_a_migration_that_goes_on_for_ever_ends_with_a_signal(broker, spark_python, tmp_path):
    checkpoint = ["--checkpoint", str(tmp_path / "checkpoint"), "--every", "1 second"]
    with Broker(listen="127.0.0.1:0") as other:
        to = ["--to", other.bootstrap_servers]
        with pipeline(spark_python, "migrate", *source(broker), *to, *checkpoint) as process:
            done = tmp_path / "checkpoint" / "commits" / "0"
            wait_until(lambda: done.exists() or process.poll() is not None, seconds=SECONDS)
            process.send_signal(signal.SIGTERM)
            assert to_the_end(process) == f"{EVENTS} records copied to {other.bootstrap_servers}\n"
        assert content(records(other, "events")) == content(records(broker, "events"))
