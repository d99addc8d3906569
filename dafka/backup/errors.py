"""The errors of backups, in words for their user."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class BackupError(DafkaError):
    """A backup cannot be made, read or restored; the message says why and what to do."""


class NotABackupError(BackupError):
    """The folder holds something else than backups. Nothing in it was touched."""


class NewerBackupError(BackupError):
    """A newer version of this package has made it. It is as it was."""


class BackupLockedError(BackupError):
    """Another process makes, prunes or restores there."""


class NoSuchBackupError(BackupError):
    """There is no backup of that name, or no backup at all."""


class BackupDamagedError(BackupError):
    """A file in the folder of the backups was changed or is missing."""


class RestoreTargetError(BackupError):
    """There is something where a backup was to be restored. Nothing in it was touched."""
