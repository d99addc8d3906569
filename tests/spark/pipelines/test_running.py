"""What the pipelines count, and what they say when they fail."""

from __future__ import annotations

import threading
import time

import pytest
from pyspark.sql.streaming import StreamingQuery
from spark.frames import create, produce, stream

from dafka.spark.pipelines import running
from dafka.spark.pipelines.running import let_batch_end, reason, run


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "An exception was thrown from the Python worker:\n"
            "dafka.spark.errors.ColumnError: column topic is null in a row",
            "column topic is null in a row",
        ),
        (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] Failed: "
            "dafka.spark.errors.UnknownTopicError: topic 'nope' at h:1: unknown\nTraceback ...\n",
            "topic 'nope' at h:1: unknown",
        ),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/x.\nJVM stacktrace:",
            "[PATH_NOT_FOUND] Path does not exist: file:/x.",
        ),
        ("", "RuntimeError"),
    ],
)
def test_an_error_is_one_line_with_the_reason(text, said):
    assert reason(RuntimeError(text)) == said


@pytest.mark.parametrize("form", ["parquet", "dafka"])
def test_a_batch_that_was_committed_counts_though_spark_has_not_reported_it_when_the_query_ends(
    spark, broker, tmp_path, monkeypatch, form
):
    monkeypatch.setattr(StreamingQuery, "recentProgress", property(lambda query: []))
    create(broker, "flights", 3)
    produce(broker, "flights", [b"x"] * 60)
    rows = stream(spark, broker, subscribe="flights", startingOffsets="earliest")
    copy = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "copy"}
    target = {"parquet": {"path": str(tmp_path / "out")}, "dafka": copy}[form]
    writer = rows.select("value").writeStream.format(form).options(**target)
    assert run(writer, str(tmp_path / "checkpoint"), None) == 60
    assert run(writer, str(tmp_path / "checkpoint"), None) == 0  # the same batch is not counted again


@pytest.mark.parametrize("patience", [60.0, 0.2])
def test_a_micro_batch_under_way_may_end_before_its_query_is_stopped(spark, monkeypatch, patience):
    monkeypatch.setattr(running, "BATCH_SECONDS", patience)
    begun, finish, ended = threading.Event(), threading.Event(), threading.Event()

    def work(frame, number):
        begun.set()
        finish.wait(60)
        ended.set()

    source = spark.readStream.format("rate").load()
    query = source.writeStream.foreachBatch(work).trigger(processingTime="1 hour").start()
    try:
        assert begun.wait(60)
        timer = threading.Timer(0.5 if patience > 1 else 60, finish.set)
        timer.start()
        start = time.monotonic()
        let_batch_end(query)
        assert ended.is_set() == (patience > 1)
        assert time.monotonic() - start >= 0.2
    finally:
        timer.cancel()
        finish.set()
        query.stop()
