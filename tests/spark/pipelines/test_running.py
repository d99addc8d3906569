"""What the pipelines say when they fail."""

from __future__ import annotations

import pytest

from dafka.spark.pipelines.running import reason


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
