"""The folder of a log: created if missing, private to its owner, checked to be a log's, and locked."""

from __future__ import annotations

import os

from dafka.log.errors import LogOpenError, NotALogError
from dafka.log.layout import refuse_foreign
from dafka.log.lock import FolderLock


def take_folder(path: str) -> FolderLock:
    """Create the folder if it is missing, check that it is a log's, and lock it."""
    if os.path.expandvars(path) != path:
        raise LogOpenError(path, f"{path!r} names an environment variable, which diskcache would replace")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotALogError(path, f"{path} is not a folder; a log needs a folder of its own") from error
    except OSError as error:
        raise LogOpenError(path, f"the folder {path} for a log cannot be made: {error}") from error
    refuse_foreign(path)
    try:
        return FolderLock(path)
    except OSError as error:
        raise LogOpenError(path, f"the log {path} cannot be locked: {error}") from error
