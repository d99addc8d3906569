"""The content of a master on disk: one log (:mod:`dafka.log`) for each store, with rows instead of messages.

So it has what the log has: a private folder, locked by one process; nothing is unpickled; each row with a
checksum, damage as a named error; and one transaction for everything that came while the last one was under
way. Durability is in the log's words: ``'process'`` survives the death of the process at any instant,
``'power'`` that of the machine, too.

The content is in memory as well. Deadlines are on disk by the wall clock, so that a key expires in time also
if the process was gone meanwhile. A clear begins a new epoch, the name of which begins each key's row; the
rows of older ones are deleted in small steps.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

import gevent
import gevent.threadpool

from dafka.commit.writer import Writer
from dafka.hub.hub import Hub
from dafka.hub.pool import run_in
from dafka.hub.turns import Pace, next_turn
from dafka.log import Durability, Log, LogError
from dafka.log.kinds import DATA_STORE, check_kind
from dafka.log.layout import folder_name
from dafka.overlay.errors import InvalidValue
from dafka.overlay.stores.content import Content, Entry, Origin, Row
from dafka.overlay.stores.errors import BackendFailure
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.outputs import Commit
from dafka.overlay.values import decode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.primitives import EntityId
from dafka.protocol.errors import MalformedMessage

logger = logging.getLogger(__name__)

_ROWS, _WRITERS, _STORE = "overlay.rows", "overlay.writers", DATA_STORE.table
_DEADLINE = struct.Struct(">q")  # nanoseconds since 1970
_ORIGIN = struct.Struct(">16sQQ")
_SEQUENCE = struct.Struct(">Q")
_HAS_DEADLINE, _HAS_ORIGIN = 1, 2
_DELETED_AT_ONCE = 500  # rows of older epochs, in one round


class Memory(NamedTuple):
    """A store whose content lasts as long as its master."""


class Disk(NamedTuple):
    """A store whose content is in a folder of its own."""

    path: str | os.PathLike[str]
    durability: Durability = "process"


class DiskBackend:
    """The opened folder of the store ``name``. Hub side.

    ``pause`` is called now and then while it is opened. Raises BackendFailure.
    """

    def __init__(self, hub: Hub, disk: Disk, name: str) -> None:
        self.path = folder_name(disk.path)
        self._hub = hub
        self._offset = time.time() - time.monotonic()  # from the master's clock to the wall's
        try:
            self._log = Log(disk.path, durability=disk.durability, pause=Pace().rest)
        except LogError as error:
            raise _failure(error) from error
        try:
            self._epoch = self._check(name)
            pool = gevent.threadpool.ThreadPool(1)
            try:
                loaded = run_in(pool, self._load, name)
            finally:
                pool.kill()
        except BaseException as error:
            self._log.close()
            if isinstance(error, (LogError, MalformedMessage, InvalidValue, ValueError, struct.error)):
                raise _failure(error) from error
            raise
        self.content, self._garbage, writers = loaded
        self.journal = Journal(writers)
        self._writer = Writer(hub, self._log)
        self._closed = False
        self._tidying = hub.spawn(self._tidy)

    def commit(self, commit: Commit, done: Callable[[str | None], None]) -> None:
        """Write it, all or nothing; ``done(None or the cause of a failure)`` follows."""
        epoch = self._epoch + commit.changes.cleared
        values: dict[tuple[str, str], object] = {
            (_ROWS, _key(epoch, octets)): None if row is None else self._pack(row)
            for octets, row in commit.changes.rows.items()
        }
        for writer, sequence in commit.writers.items():
            packed = None if sequence is None else _SEQUENCE.pack(sequence)
            values[_WRITERS, f"{writer.endpoint.hex()}:{writer.number:x}"] = packed
        if epoch != self._epoch:
            values[_STORE, "epoch"] = epoch

        def told(error: Exception | None) -> None:
            if error is None and epoch != self._epoch:
                self._epoch = epoch
                self._tidying.kill(block=False)
                self._tidying = self._hub.spawn(self._tidy_all)
            done(None if error is None else str(error))

        self._writer.put(values, told)

    def close(self) -> None:
        """Commit what is waiting, and close the folder; waits as a green thread."""
        if not self._closed:
            self._closed = True
            self._tidying.kill()
            self._writer.close()
            self._log.close()

    # -- opening ------------------------------------------------------------------------------------

    def _check(self, name: str) -> int:
        """That the folder is of this store; its epoch."""
        check_kind(self._log, DATA_STORE)
        facts = self._log.table(_STORE)
        known = facts.get("name")
        if known is None:
            if self._log.partitions():
                raise ValueError(f"{self.path} is a log of something else than a store")
            self._log.write([], {(_STORE, "name"): name, (_STORE, "epoch"): 1})
            return 1
        if known != name:
            raise ValueError(f"{self.path} holds the store {known!r}, not {name!r}")
        epoch = facts.get("epoch")
        if type(epoch) is not int:
            raise ValueError(f"{self.path} is damaged: the epoch of its store is {epoch!r}")
        return epoch

    def _load(self, name: str) -> tuple[Content, list[str], dict[EntityId, int]]:
        """The content, the rows of older epochs, and what is known of writers. In a thread of its own."""
        content = Content(name)
        garbage: list[str] = []
        rows = self._log.table(_ROWS)
        rows.leave_on_disk()
        prefix = _key(self._epoch, b"")
        for key in rows.unordered():
            if not key.startswith(prefix):
                garbage.append(key)
                continue
            octets = key[len(prefix) :].encode("latin-1")
            content.restore(octets, self._entry(octets, rows.get(key)))
        writers: dict[EntityId, int] = {}
        table = self._log.table(_WRITERS)
        for key in table.unordered():
            endpoint, _, number = key.partition(":")
            (sequence,) = _SEQUENCE.unpack(table.get(key))
            writers[EntityId(bytes.fromhex(endpoint), int(number, 16))] = sequence
        return content, garbage, writers

    def _entry(self, octets: bytes, packed: bytes) -> Entry:
        flags, position = packed[0], 1
        deadline: float | None = None
        origin: Origin | None = None
        if flags & _HAS_DEADLINE:
            (wall,) = _DEADLINE.unpack_from(packed, position)
            deadline = wall / 1e9 - self._offset
            position += _DEADLINE.size
        if flags & _HAS_ORIGIN:
            endpoint, number, request = _ORIGIN.unpack_from(packed, position)
            origin = EntityId(endpoint, number), request
            position += _ORIGIN.size
        value = packed[position:]
        return Entry(decode(octets), decode(value), len(octets) + len(value), deadline, origin)

    def _pack(self, row: Row) -> bytes:
        flags = (row.deadline is not None) * _HAS_DEADLINE | (row.origin is not None) * _HAS_ORIGIN
        packed = bytes((flags,))
        if row.deadline is not None:
            wall = int((row.deadline + self._offset) * 1e9)
            packed += _DEADLINE.pack(max(-(2**63), min(wall, 2**63 - 1)))
        if row.origin is not None:
            (endpoint, number), request = row.origin
            packed += _ORIGIN.pack(endpoint, number, request)
        return packed + row.value

    # -- older epochs -------------------------------------------------------------------------------

    def _tidy_all(self) -> None:
        """Find the rows of older epochs, and delete them."""
        prefix, pace = _key(self._epoch, b""), Pace()
        rows = self._log.table(_ROWS).unordered()
        self._garbage = [key for key in pace.over(rows) if not key.startswith(prefix)]
        self._tidy()

    def _tidy(self) -> None:
        while self._garbage:
            some, self._garbage = self._garbage[-_DELETED_AT_ONCE:], self._garbage[:-_DELETED_AT_ONCE]
            try:
                self._writer.put_and_wait({(_ROWS, key): None for key in some})
            except LogError as error:
                logger.warning("the store in %s could not delete what was erased: %s", self.path, error)
                return  # when it is opened next
            next_turn()


def _key(epoch: int, octets: bytes) -> str:
    return f"{epoch:x}:" + octets.decode("latin-1")


def _failure(error: BaseException) -> BackendFailure:
    return BackendFailure(ErrorCode.BACKEND_FAILURE, str(error))
