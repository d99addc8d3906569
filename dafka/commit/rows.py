"""The broker's rows for the log's tables: (table, key) -> value, None deletes."""

from __future__ import annotations

Rows = dict[tuple[str, str], object]
