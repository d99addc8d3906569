"""Logs that are filled and emptied for backups, and the damage that a check finds."""

from __future__ import annotations

import os

from log.messages import ADDRESS

from dafka.backup.checking import check
from dafka.backup.repository import Repository
from dafka.log import Log
from dafka.log.limits import FILE_BYTES


def append(data: str, topic: bytes, files: int) -> None:
    with Log(data) as log:
        partition = log.partition(topic, ADDRESS)
        for _ in range(files):
            log.write([(partition, [os.urandom(2 * FILE_BYTES)])])
        log.write([(partition, [b"small", b"values"])], {("table", "key"): 5})


def drop(data: str, topic: bytes) -> None:
    with Log(data) as log:
        log.drop(log.partition(topic, ADDRESS))
        log.write([], collect_bytes=2**30)


def damages(folder: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    repository = Repository(folder)
    check(repository, repository.names(), lambda *damage: found.append(damage))
    return found
