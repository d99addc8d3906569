"""The errors of a log: one class for each case that a caller can handle differently."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class LogError(DafkaError):
    """Base of all errors of a log; ``path`` is the log's folder."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class LogOpenError(LogError):
    """The folder cannot be created, read or written (rights, a read-only disk, an I/O error)."""


class LogLockedError(LogError):
    """Another process has the log open: ``pid``, or None if it is unknown."""

    def __init__(self, path: str, message: str, pid: int | None) -> None:
        super().__init__(path, message)
        self.pid = pid


class LogVersionError(LogError):
    """The folder has a layout that this version does not read: ``found`` against ``known``."""

    def __init__(self, path: str, message: str, found: object, known: int) -> None:
        super().__init__(path, message)
        self.found = found
        self.known = known


class NotALogError(LogError):
    """The path is a file, or a folder with something else in it. Nothing in it was touched."""


class LogClosedError(LogError):
    """The log is closed."""


class LogForkedError(LogClosedError):
    """The log was opened before a fork and is used in the child: it stays with the parent."""


class LogWriteError(LogError):
    """A round could not be written (disk full, I/O error). The log is as it was before the round."""


class LogReadError(LogError):
    """The disk failed while reading; nothing is known to be damaged."""


class DamagedError(LogError):
    """Stored bytes are not what was written. ``place`` names the row: topic, address, sequences."""

    def __init__(self, path: str, message: str, place: str) -> None:
        super().__init__(path, message)
        self.place = place


class AppendError(LogError):
    """A message cannot stand at the end of its partition: wrong kind, sequence or offset, or too large.

    ``topic`` and ``address`` name the partition and ``position`` the message in the list of contents that
    was handed over for it; the whole round was refused and nothing of it was written.
    """

    def __init__(self, path: str, message: str, topic: bytes, address: bytes, position: int) -> None:
        super().__init__(path, message)
        self.topic = topic
        self.address = address
        self.position = position


class StaleRewriteError(LogError):
    """Values that were to be rewritten have changed since they were read; nothing was written."""


class TableValueError(LogError):
    """A table cannot hold this value or name; nothing of its round was written."""
