"""examples/flights_pipeline.py: the whole of it over a few flights, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")

from dafka.spark.java import JavaMissingError, find_java

ROOT = Path(__file__).parents[2]
HEADER = "year,month,day,dep_delay,carrier,flight,origin,hour,minute"
FLIGHTS = 6000


def sample(path):
    """A file of flights from three airports through a year, in another order than that of their times."""
    rows = []
    for number in range(FLIGHTS):
        month, day = number * 12 // FLIGHTS + 1, number * 336 // FLIGHTS % 28 + 1
        delay = "NA" if number % 11 == 0 else str(number % 60 - 10)
        origin = ("EWR", "JFK", "LGA")[number % 3]
        rows.append(f"2013,{month},{day},{delay},UA,{number},{origin},{number % 19 + 5},{number % 60}")
    half = FLIGHTS // 2
    path.write_text("\n".join([HEADER, *rows[half:], *rows[:half], ""]))
    return path


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(3000)
def test_both_results_equal_what_is_computed_without_spark(tmp_path):
    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    arguments = [
        "--folder",
        tmp_path / "out",
        "--data",
        sample(tmp_path / "flights.csv"),
        "--chart",
        tmp_path / "c.png",
    ]
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "flights_pipeline.py", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2900,
    )
    assert done.returncode == 0, done.stderr
    assert "6,000 flights, 1 late and counted, 6 too late and dropped" in done.stdout
    assert "Both equal those computed straight from the file." in done.stdout
    assert [line.split("│")[1].strip() for line in done.stdout.splitlines() if "│" in line][1:] == [
        "EWR",
        "JFK",
        "LGA",
    ]
