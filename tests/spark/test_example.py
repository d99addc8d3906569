"""examples/spark_query.py, in the session that all tests share."""

from __future__ import annotations

import runpy
from pathlib import Path

from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_query.py"


def test_the_example_prints_the_mean_delays(spark, monkeypatch, capsys):
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)  # others go on with it
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == ["AA 6.0", "B6 0.0", "UA 15.0"]
