"""Whose log a folder is: a broker's, a store's of the mesh, or a data store's of the overlay.

Each of them writes rows about itself when it opens a new folder, and finds them there ever after. So a folder
tells what it is, an old one too; none of them opens one that is another's.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.log.errors import NotALogError
from dafka.log.log import Log


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
    if kind.row in log.table(kind.table):
        return
    for other in (BROKER, STORE, DATA_STORE):
        if other.row in log.table(other.table):
            raise NotALogError(
                log.path,
                f"{log.path} is the folder of {other.words}; give {kind.words} an empty or a new folder",
            )
