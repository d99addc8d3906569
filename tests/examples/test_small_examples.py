"""The small examples, each in a process of its own, in an empty folder. That of Spark is in tests/spark."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import forking
import pytest

from dafka.testing import TestBroker

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LARGE = {"flights.py", "flights_pipeline.py"}
LINES = 40


def run(*arguments, folder, **environment):
    """Run an example as its first lines say; its standard output."""
    done = forking.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "DAFKA_EMBEDDED": "", **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def small():
    return sorted(path for path in EXAMPLES.glob("*.py") if path.name not in LARGE)


@pytest.mark.parametrize("example", small(), ids=lambda path: path.stem)
def test_a_small_example_is_under_forty_lines_and_is_run_here(example):
    assert len(example.read_text().splitlines()) < LINES
    tests = (Path(__file__), ROOT / "tests" / "spark" / "test_example.py")
    assert any(f'"{example.name}"' in test.read_text() for test in tests)


RECORDS = [
    f"0 {offset} b'{airline}' b'{{\"delay\": {offset}}}'"
    for offset, airline in enumerate(["UA", "AA", "UA", "B6", "AA"])
]


def test_the_swapped_program_finds_its_records_again_in_its_folder(tmp_path):
    example = EXAMPLES / "swap.py"
    assert run(example, folder=tmp_path, DAFKA_EMBEDDED="./data").splitlines() == RECORDS
    again = run(example, folder=tmp_path, DAFKA_EMBEDDED="./data").splitlines()
    assert again[:5] == RECORDS and len(again) == 10


def test_the_swapped_program_runs_on_a_broker_that_listens(tmp_path):
    with TestBroker(listen="127.0.0.1:0") as broker:
        assert run(EXAMPLES / "swap.py", broker.bootstrap_servers, folder=tmp_path).splitlines() == RECORDS
        assert len(broker.records("flights")) == 5


def test_the_test_with_confluent_kafka_passes(tmp_path):
    plain = ["-p", "dafka.testing.plugin", "-c", os.devnull, "--rootdir", tmp_path]
    example = EXAMPLES / "test_with_confluent.py"
    output = run("-m", "pytest", *plain, example, folder=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 passed" in output


def test_two_members_of_a_group_share_partitions_and_jobs(tmp_path):
    lines = run(EXAMPLES / "group.py", folder=tmp_path).splitlines()
    shares = [re.fullmatch(r"partitions \[(\d), (\d)\] had 500 jobs", line).groups() for line in lines]
    assert sorted(partition for share in shares for partition in share) == ["0", "1", "2", "3"]


def test_log_records_of_all_processes_are_in_the_topic(tmp_path):
    lines = run(EXAMPLES / "zper_logging.py", folder=tmp_path).splitlines()
    said = "b'INFO' b'INFO:root:worker {}: job {} done'"
    logged = [said.format(worker, job) for worker in range(4) for job in range(3)]
    assert [line.split(" ", 1)[0] for line in lines] == [str(offset) for offset in range(12)]
    assert sorted(line.split(" ", 1)[1] for line in lines) == logged


def test_results_and_offsets_are_one_transaction(tmp_path):
    expected = f"sum of the squares: {sum(number**2 for number in range(100))}\n"
    assert run(EXAMPLES / "transactions.py", folder=tmp_path) == expected


def test_native_nodes_stream_between_processes(tmp_path):
    lines = run(EXAMPLES / "native.py", folder=tmp_path).splitlines()
    assert lines == [f"weather {hour} {hour:02d}:00 {10 + hour % 12} degrees" for hour in range(24)]


def test_asyncio_reads_while_it_writes(tmp_path):
    lines = run(EXAMPLES / "in_asyncio.py", folder=tmp_path).splitlines()
    assert lines == ["read:", *(f"tick {number}" for number in range(10))]


def test_events_of_zeek_become_records_and_a_record_an_event(tmp_path):
    assert run(EXAMPLES / "zeek_events.py", folder=tmp_path).splitlines() == [
        *(
            f'b\'10.0.0.7\' b\'{{"event":"login","args":["10.0.0.7","root",{attempt}]}}\''
            for attempt in range(3)
        ),
        "/zeek/verdict/10.0.0.7 ('block', ('10.0.0.7',))",
    ]


def test_a_queue_delivers_a_job_again_that_has_failed(tmp_path):
    said = run(EXAMPLES / "queue_of_jobs.py", folder=tmp_path)
    assert said == "30 jobs done; those that took two deliveries: [7]\n"
