"""The bounds of the log, in one place."""

from __future__ import annotations

LAYOUT = 1
"""The version of keys and values in a folder; a folder with a higher one is refused."""

TAIL_BYTES = 8 * 1024 * 1024
"""Memory that recently written and recently read messages take, by default."""

CHUNK_BYTES = 256 * 1024 * 1024
"""The largest stored value. SQLite ends at 1 000 000 000 bytes, memory usually before."""

NAME_BYTES = 255
"""The longest topic or address: the wire writes their length into one octet (46/DAFKA, ``string``)."""

TABLE_VALUE_BYTES = 16 * 1024 * 1024
"""The largest encoded value of a table; tables are for small things."""

LAST_NUMBER = 2**63 - 1
"""Sequences and offsets end here: Kafka's offsets are signed 64-bit numbers."""

MERGE_COUNT = 16
"""This many small neighbours become one chunk."""

MERGE_LEVELS = (1024, 8192)
"""Sizes of stored values, in bytes: below the first, below the second; from the last on they stay alone."""

BUSY_SECONDS = 5.0
"""How long to wait for a lock that a foreign program (the sqlite3 shell, a backup) holds on the database."""
