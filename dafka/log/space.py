"""The space that a log takes on the disk: garbage of rounds, and giving its space back in small steps."""

from __future__ import annotations

from collections.abc import Callable

from dafka.log.changes import Garbage
from dafka.log.limits import COLLECT_BYTES, FREE_BYTES, FREE_SHARE, VACUUM_BYTES
from dafka.log.storage import Storage


class Space:
    """A log's space: ``collect(max_bytes)`` writes a round that deletes that much garbage and nothing else.

    ``check_open()`` raises if the log is closed.
    """

    def __init__(
        self,
        storage: Storage,
        garbage: Garbage,
        check_open: Callable[[], None],
        collect: Callable[[int], None],
    ) -> None:
        self._storage = storage
        self._garbage = garbage
        self._check_open = check_open
        self._collect = collect

    @property
    def garbage_bytes(self) -> int:
        """Values of trimmed and deleted partitions that are still to be deleted, in bytes; 0: none."""
        return max(self._garbage.bytes, len(self._garbage))

    @property
    def disk_bytes(self) -> int:
        """Size of the folder's files on the disk."""
        self._check_open()
        return self._storage.disk_bytes()

    @property
    def wal_bytes(self) -> int:
        """About what was written since the last :meth:`checkpoint`."""
        return self._storage.wal_bytes

    @property
    def checkpoint_due(self) -> bool:
        """Whether enough has been written or deleted since the last :meth:`checkpoint`."""
        return self._storage.checkpoint_due

    @property
    def removable_bytes(self) -> int:
        """Files of deleted values, which the next complete :meth:`checkpoint` removes."""
        return self._storage.removable_bytes

    @property
    def sweeps(self) -> bool:
        """Whether files that a killed process has left are still looked for, by :meth:`sweep`."""
        return self._storage.sweeps

    def sweep(self) -> bool:
        """Look at some more; whether there is more. The next complete :meth:`checkpoint` removes the found.

        May run in any thread, while rounds go on.
        """
        self._check_open()
        return self._storage.sweep()

    @property
    def wal_file_bytes(self) -> int:
        """Size of the WAL on the disk. It is used again; a truncating :meth:`checkpoint` gives it back."""
        return self._storage.disk_bytes("-wal")

    def checkpoint(self, truncate: bool = False) -> bool:
        """Copy what rounds have written into the database; True if that was all of it.

        May run in any thread, and rounds may go on meanwhile; takes time (it syncs the disk). ``truncate``
        gives the space of the WAL back as well; no round may be under way then.
        """
        self._check_open()
        return self._storage.checkpoint(truncate)

    @property
    def spare_bytes(self) -> int:
        """Free space that :meth:`vacuum` would give back. A reserve is kept for later appends: FREE_BYTES,
        or a share of the file (FREE_SHARE)."""
        self._check_open()
        free, size = self._storage.free_bytes()
        return max(0, free - max(FREE_BYTES, size // FREE_SHARE))

    def vacuum(self, max_bytes: int = VACUUM_BYTES) -> None:
        """Give up to ``max_bytes`` of :attr:`spare_bytes` back to the file system.

        May run in any thread, while no round is being committed. Raises LogWriteError.
        """
        spare = self.spare_bytes
        if spare:
            self._storage.vacuum(min(spare, max_bytes))

    def tidy(self) -> None:
        """Delete all garbage and give the space back, all at once. For tools and tests: it may take long."""
        while self.garbage_bytes:
            self._collect(COLLECT_BYTES)
        while self.sweep():
            pass
        while self.spare_bytes:
            self.vacuum()
            if self._storage.checkpoint_due:
                self._storage.checkpoint()
        self._storage.checkpoint(truncate=True)
