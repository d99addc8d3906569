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

PAUSE_KEYS = 256
"""Keys that are looked at before a pause may be taken."""

READ_KEYS = 64
"""Small values of a table that are read together: some milliseconds."""

TABLE_VALUE_BYTES = 16 * 1024 * 1024
"""The largest encoded value of a table; tables are for small things."""

LAST_NUMBER = 2**63 - 1
"""Sequences and offsets end here: Kafka's offsets are signed 64-bit numbers."""

MERGE_COUNT = 16
"""This many small neighbours become one chunk."""

MERGE_LEVELS = (1024, 8192)
"""Sizes of stored values, in bytes: below the first, below the second; from the last on they stay alone."""

BLOCK_CHUNKS = 256
"""Keys of chunks that become one row of a large partition's index; as many more stay in memory, at least."""

BLOCKS_IN_MEMORY = 256
"""Such rows that stay in memory when they were wanted: 14 KB each."""

CHECKPOINT_BYTES = 8 * 1024 * 1024
"""So much is written to the WAL, about, before it is copied into the database."""

FILE_BYTES = 128 * 1024
"""Values from this size on are files of their own, with durability ``'process'``."""

CHECKED_SECONDS = 60.0
"""For so long a value that was written, or read and checked, is sent from its file without another check."""

LAYOUT_BATCHES = 65_536
"""Batches of such values whose places are remembered, at 24 bytes each."""

OPEN_VALUES = 256
"""Files of values that are open to be sent, and at most a fourth of those that the process may open; batches
of further ones are read into memory."""

RESERVE_BYTES = 4 * 1024 * 1024
"""Free space on the disk that is reserved for deleting, which takes some before it gives any back."""

RESERVE_SHARE = 16
"""The reserve on a small disk: 1/16 of it."""

REMOVABLE_FILES = 64
"""So many files of deleted values wait for a checkpoint before one is due."""

LOST_SECONDS = 120.0
"""Files of values that are younger than this may not have reached the disk before a power cut."""

NOTED_ROWS = 10_000
"""A log that has ever had so many rows notes when it is closed that it has no files to be removed, and looks
for them, where it has no such note, only after it was opened."""

SWEPT_ROWS = 1000
"""Rows that one step of that looks at ..."""

SWEPT_FILES = 1000
"""... or files: one or two milliseconds."""

WAL_BYTES = 64 * 1024 * 1024
"""The WAL grows to this at most while it is being copied and rounds go on; then they wait."""

COLLECT_BYTES = 4 * 1024 * 1024
"""Values of trimmed or deleted partitions that one round deletes."""

COLLECT_ROWS = 500
"""The same as a number of values."""

VACUUM_BYTES = 1024 * 1024
"""Free space that one step gives back to the file system."""

FREE_BYTES = 1024 * 1024
"""Free space in the file that is kept for what comes next, at least."""

FREE_SHARE = 8
"""This share of the file may be free space, too: it is used by the next appends."""

COMPACTION_KEYS = 4_000_000
"""Keys that one pass of compaction keeps in memory: 250 MB, twice what Kafka's log
cleaner takes. More keys are more passes over the partition."""

COMPACTED_BYTES = 512 * 1024
"""Contents that compaction puts into one value, and writes in one round."""

COMPACTION_GAP = 3000
"""More batches than that without records in a row become a gap: some 190 KB, below half of COMPACTED_BYTES.
Not fewer, for consumers and stores on the mesh wait a quarter of a second for one who has what is in it."""

COMPACTION_SECTIONS = 32
"""Stretches of a partition whose time of compaction is remembered for their tombstones."""

DAMAGED_PLACES = 1000
"""Damaged places a log remembers."""

BUSY_SECONDS = 5.0
"""How long to wait for a lock that a foreign program (the sqlite3 shell, a backup) holds on the database."""
