"""How errors reach the user of Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from dafka.protocol.errors import DafkaError


@contextmanager
def reason_first() -> Iterator[None]:
    """Let an error of ours be the first line of what Spark reports, without a traceback in front of it.

    The Python process that it happens in ends with it, so the setting does not outlive the error.
    """
    try:
        yield
    except DafkaError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
