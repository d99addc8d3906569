"""Where the lines of a command's log go, and what they look like."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Literal

Format = Literal["text", "json"]

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(verbose: bool, form: Format = "text") -> None:
    """Write warnings to standard error; with ``verbose`` everything that happens."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler])


class JsonLines(logging.Formatter):
    """A JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``message``; ``error``, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        row = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return json.dumps(row)
