"""Harm to what a stopped broker has stored: overwritten bytes, and files that are empty or missing."""

from __future__ import annotations

from pathlib import Path

from log.messages import chunk_rows, database, files

from dafka.log.limits import FILE_BYTES

LARGE = bytes(FILE_BYTES)
"""A record of this size, produced alone, is a file."""


def harm_last(folder: Path, count: int = 1) -> None:
    """Overwrite a byte in each of the last ``count`` values of the only partition that has any.

    Of values in files only the last one is overwritten and the others are taken away. If the last one were
    missing, the log would end before it: so it does after a power cut.
    """
    rows = chunk_rows(folder)[-count:]
    with database(folder) as cache:
        for row, _, value in rows:
            (name,) = cache.execute("SELECT filename FROM Cache WHERE rowid = ?", (row,)).fetchone()
            if name is None:
                cache.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (_harmed(value), row))
            elif row != rows[-1][0]:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(_harmed((folder / name).read_bytes()))


def power_cut(folder: Path, kept: int) -> None:
    """Only the first ``kept`` values in files had reached the disk when the power went."""
    for file in files(folder)[kept:]:
        file.write_bytes(b"")
    (folder / "dafka.boot").unlink()


def _harmed(value: bytes) -> bytes:
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
