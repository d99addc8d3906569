"""A write round: appends, changes to partitions and table values that are committed together.

It goes through three steps, so that a slow disk need not stall the thread that owns the log:

1. :meth:`dafka.log.Log.begin` checks everything and lays out the rows. Nothing has changed anywhere.
2. :meth:`WriteRound.commit` writes them in one transaction; it may run in another thread, and touches
   neither the index nor the tail.
3. :meth:`WriteRound.finish`, in the owner's thread again, makes them visible. After a commit that failed it
   makes nothing visible.

Between 2 and 3 the index still shows chunks whose rows a merge has already taken away; ``replaced`` serves
those. There is one round at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from crc32c import crc32c

from dafka.log.changes import Changes, Rows
from dafka.log.chunk import Chunk, Pieces, encode_pieces
from dafka.log.errors import LogWriteError
from dafka.log.growth import Growth
from dafka.log.partition import pack_partition
from dafka.log.storage import Storage


class WriteRound:
    """One transaction under way. Made by :meth:`dafka.log.Log.begin`."""

    def __init__(
        self,
        storage: Storage,
        growths: Iterable[Growth],
        values: Mapping[tuple[str, str], bytes | None],
        value_rows: Rows,
        changes: Changes,
        finished: Callable[[WriteRound], None],
    ) -> None:
        self.growths = list(growths)
        self.values = values
        self.replaced: dict[bytes, Chunk] = {}
        for growth in self.growths:
            self.replaced.update(growth.replaced)
        self.replaced.update(changes.replaced)
        self.changes = changes
        self.doubt: bytes | None = None  # a row that is there if and only if the round is
        self.committed = False
        self.attempted = False
        self._storage = storage
        self._value_rows = value_rows
        self._finished = finished
        self._over = False

    def commit(self) -> None:
        """Write everything in one transaction. Raises LogWriteError; then nothing was written."""
        if self._over or self.committed:
            folder = self._storage.folder
            raise LogWriteError(
                folder, f"a round of the log {folder} was committed or dropped; begin another"
            )
        deleted, stored = self._value_rows
        if self.growths:
            self._storage.keep_reserve(
                sum(chunk.key.size for growth in self.growths for chunk in growth.added)
            )
        if self.growths or deleted or stored or self.changes:
            self.attempted = True
            gone, new = self.changes.rows()
            self.doubt = next((row for row, _ in reversed(new) if row not in self.replaced), None)
            if self.growths:
                self.doubt = self.growths[0].added[-1].key.pack()
            rows = chain(self._chunk_rows(), new, stored)
            self._storage.commit([*self.replaced, *gone, *deleted], rows)
        self.committed = True

    def finish(self) -> None:
        """Make visible what was committed, or drop the round; a second call does nothing."""
        if not self._over:
            self._over = True
            self._finished(self)

    def _chunk_rows(self) -> Iterator[tuple[bytes, bytes | Pieces]]:
        for growth in self.growths:
            partition = growth.partition
            if partition.number < 0:
                row = pack_partition(growth.number, partition.topic, partition.address)
                yield row, crc32c(row).to_bytes(4, "little")
            for key, contents, stamps in growth.added:
                row = key.pack()
                yield row, encode_pieces(row, key.kind, contents, stamps, checked=True)
