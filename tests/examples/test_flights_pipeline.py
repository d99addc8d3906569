"""examples/flights_pipeline.py: the whole of it over a few flights, in the session that all tests share."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed; scripts/environment spark does that")

from pyspark.sql import SparkSession

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


def test_both_results_equal_what_is_computed_without_spark(spark, tmp_path, monkeypatch, capsys):
    data = sample(tmp_path / "flights.csv")
    arguments = ["--folder", tmp_path / "out", "--data", data, "--chart", tmp_path / "c.png"]
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)  # others go on with it
    monkeypatch.setattr(sys, "argv", ["flights_pipeline.py", *map(str, arguments)])
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    runpy.run_path(str(ROOT / "examples" / "flights_pipeline.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "6,000 flights, 1 late and counted, 6 too late and dropped" in said
    assert "Both equal those computed straight from the file." in said
    assert [line.split("│")[1].strip() for line in said.splitlines() if "│" in line][1:] == [
        "EWR",
        "JFK",
        "LGA",
    ]
