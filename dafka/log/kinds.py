"""Whose log a folder is: a broker's, a store's of the mesh, or a data store's of the overlay.

Each of them writes rows about itself when it opens a new folder, and finds them there ever after. So a folder
tells what it is, an old one too; none of them opens one that is another's.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from dafka.log.errors import NotALogError
from dafka.log.layout import DATABASE
from dafka.log.limits import BUSY_SECONDS
from dafka.log.log import Log
from dafka.log.table import pack_key


class Kind(NamedTuple):
    """``table`` and ``row``: what only a folder of this kind has."""

    words: str
    table: str
    row: str


BROKER = Kind("a broker", "broker", "cluster_id")
STORE = Kind("a store of the mesh", "store", "address")
DATA_STORE = Kind("a data store of the overlay", "overlay.store", "name")


def check_kind(log: Log, kind: Kind) -> None:
    """Raise NotALogError for an opened log that is of another kind."""
    _check(log.path, kind, lambda one: one.row in log.table(one.table))


def check_folder_kind(folder: str, kind: Kind) -> None:
    """:func:`check_kind` for a log that is not opened, and may be in use; writes nothing.

    ``folder`` has a layout: :func:`dafka.log.layout.read_layout`.
    """
    connection = sqlite3.connect(os.path.join(folder, DATABASE), timeout=BUSY_SECONDS)

    def has(one: Kind) -> bool:
        select = "SELECT 1 FROM Cache WHERE key = ? AND raw = 1"
        return bool(connection.execute(select, (pack_key(one.table, one.row),)).fetchall())

    with closing(connection):
        _check(folder, kind, has)


def _check(path: str, kind: Kind, has: Callable[[Kind], bool]) -> None:
    if has(kind):
        return
    for other in (BROKER, STORE, DATA_STORE):
        if has(other):
            raise NotALogError(
                path, f"{path} is the folder of {other.words}; give {kind.words} an empty or a new folder"
            )
