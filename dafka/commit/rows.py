"""What the broker writes into the log's tables: (table, key) -> value, None deletes."""

from __future__ import annotations

Rows = dict[tuple[str, str], object]
