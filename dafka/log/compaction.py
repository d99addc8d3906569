"""Compaction: of the records with one key, the newest stays, with its offset.

Theory of operation, after Kafka's log cleaner. A partition is *clean* up to a sequence. A pass reads values
from there on and notes for each key the offset of its newest record, until the map of keys is full or the
tail begins. Then it goes through everything from the first value to the end of what it mapped, leaves out
records that a newer one has overtaken, and puts each run of neighbouring values back as one. At last it
notes how far the partition is clean now. There are as many passes as the bounded map needs.

- Offsets and sequences never change. A batch keeps its base offset and last offset delta; one without
  records left stays as an empty batch, so that sequences remain consecutive. Only where there would be very
  many of them in a row the first one stays and the others leave a gap, as what retention takes does. The
  records that stay are the same bytes as before.
- A *tombstone*, the newest record of its key and without a value, stays for ``delete_retention_ms`` after it
  was first compacted: a reader that is no slower than that learns of the deletion. For that a short list of
  (sequence, time, number of tombstones) is kept with the clean sequence.
- Records of aborted transactions overtake nothing and are left out.
- Records without a key, control batches, and batches that cannot be read (damage, a codec that is not
  installed) stay as they are. After meeting one of the last kind a pass removes no tombstones, for an older
  record of their key may hide in it. When all can be read again, the partition counts as not compacted at
  all: records of such a batch have not replaced any others yet.
- The last value of the partition is the tail; it is not touched. Raw messages have no keys: nothing happens.
- A run ends before a sequence that it chooses when it begins, and not before a value: small values are merged
  meanwhile, and a merged one may hold both what the run is about and what is too young or not decided yet.
- Each rewriting is one small round. Rounds before a crash are in place, the rest is done by the
  next run, which begins its pass anew: leaving out overtaken records twice is the same as once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

from dafka.log.changes import Rewrite
from dafka.log.chunk import ChunkKey
from dafka.log.errors import StaleRewriteError
from dafka.log.filtering import Filtered, filter_chunk, newest_offsets
from dafka.log.limits import COMPACTED_BYTES, COMPACTION_GAP, COMPACTION_KEYS, COMPACTION_SECTIONS
from dafka.log.log import Log, TableValues
from dafka.log.newest import NewestOffsets
from dafka.log.partition import LogPartition
from dafka.log.table import COMPACTION_TABLE

DELETE_RETENTION_MS = 24 * 60 * 60 * 1000
"""Kafka's default of ``delete.retention.ms``."""

Write = Callable[[list[Rewrite], TableValues], None]
Run = Callable[..., Any]
Aborted = Callable[[int, int], Sequence[tuple[int, int, int]]]

_NOTHING: dict[str, Any] = {"clean": 0, "sections": []}  # the state of a partition that was never compacted
_MERGE = 8  # unchanged neighbours that are put together all the same


class Compacted(NamedTuple):
    """Counters of one run so far."""

    sequence: int = 0
    """Everything below it is clean."""
    records: int = 0
    """Records left out."""
    bytes: int = 0
    """Bytes of values given back."""


def compact(
    log: Log,
    partition: LogPartition,
    *,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    min_lag_ms: int = 0,
    end_offset: int | None = None,
    aborted: Aborted | None = None,
    now_ms: int | None = None,
    max_keys: int = COMPACTION_KEYS,
    write: Write | None = None,
    run: Run | None = None,
) -> Iterator[Compacted]:
    """Compact ``partition`` step by step; between the steps anything may be done with the log.

    A step reads or writes about a megabyte, however large the partition is. ``write(rewrites, values)``
    commits a round, :meth:`Log.write` by default; ``run(function, *arguments)`` runs what takes time and
    does not touch the log's state, so that a thread pool can do it. ``now_ms`` is the time it is taken to be.
    Left alone are values with a record of the last ``min_lag_ms``, and what lies from ``end_offset`` on.
    ``aborted(start, end)`` says which transactions with records between these offsets were aborted: (producer
    id, first offset, offset of the marker).

    Ends early, without harm, if the partition is dropped meanwhile. Raises LogWriteError and LogReadError.
    """
    if partition.kind != "batch":
        return
    now_ms = _now() if now_ms is None else now_ms
    end = _end(partition, min_lag_ms, end_offset, now_ms)
    yield from _Compaction(
        log,
        partition,
        delete_retention_ms,
        end,
        aborted or _none_aborted,
        now_ms,
        max_keys,
        write or _writing(log),
        run or _call,
    ).steps()


def dirty_bytes(
    log: Log,
    partition: LogPartition,
    *,
    min_lag_ms: int = 0,
    end_offset: int | None = None,
    now_ms: int | None = None,
) -> tuple[int, int]:
    """(bytes of values not compacted yet, bytes of all values), without what :func:`compact` leaves alone;
    ``min.cleanable.dirty.ratio`` is about these."""
    start, end = _dirty(log, partition, min_lag_ms, end_offset, _now() if now_ms is None else now_ms)
    index = partition.index
    return index.size_between(start, end), index.size_between(0, end)


def dirty_since(
    log: Log,
    partition: LogPartition,
    *,
    min_lag_ms: int = 0,
    end_offset: int | None = None,
    now_ms: int | None = None,
) -> int | None:
    """The timestamp (ms) of the first value that is not compacted yet, for ``max.compaction.lag.ms``; None if
    all are."""
    start, end = _dirty(log, partition, min_lag_ms, end_offset, _now() if now_ms is None else now_ms)
    return partition.index.times[start] if start < end else None


def tombstones_due(log: Log, partition: LogPartition, delete_retention_ms: int, now_ms: int) -> bool:
    """Whether there are tombstones that have stayed as long as they should."""
    state = _state(log, partition)
    return any(count and when <= now_ms - delete_retention_ms for _, when, count in state["sections"])


class _Compaction:
    def __init__(
        self,
        log: Log,
        partition: LogPartition,
        delete_retention_ms: int,
        end: int,
        aborted: Aborted,
        now_ms: int,
        max_keys: int,
        write: Write,
        run: Run,
    ) -> None:
        self._log = log
        self._partition = partition
        self._write = write
        self._run = run
        self._max_keys = max_keys
        self._end = end
        self._aborted = aborted
        self._now = now_ms
        self._expired = now_ms - delete_retention_ms
        self._done = Compacted()
        self._mapped = 0  # the sequence that this pass's map reaches
        self._readable = True  # whether every record in it could be read

    def steps(self) -> Iterator[Compacted]:
        partition = self._partition
        end = self._end
        first_pass = True
        while not partition.dropped:
            state = _state(self._log, partition)
            clean = max(state["clean"], partition.first_sequence)
            horizon = self._horizon(state)
            if clean >= end and not (first_pass and horizon):
                return
            newest = NewestOffsets(self._offsets(clean, end), self._max_keys)
            self._mapped, self._readable = clean, True
            yield from self._map(clean, end, newest)
            mapped, readable = self._mapped, self._readable
            through = max(mapped, horizon)
            tombstones: dict[int, int] = {}
            if state.get("unreadable") or not readable:
                horizon = 0
            self._readable = True
            yield from self._rewrite(through, newest, horizon, tombstones)
            if partition.dropped:
                return
            self._readable = self._readable and readable
            if self._readable and state.get("unreadable"):
                state, mapped, tombstones = dict(_NOTHING), 0, {}
            self._note(state, mapped, tombstones)
            self._done = self._done._replace(sequence=mapped)
            yield self._done
            first_pass = False

    def _horizon(self, state: dict[str, Any]) -> int:
        """Tombstones below this sequence have stayed long enough; 0 if there are none to remove."""
        horizon = 0
        for sequence, when, count in state["sections"]:
            if when <= self._expired and count:
                horizon = sequence
        return horizon

    def _offsets(self, clean: int, end: int) -> range:
        """The offsets of the records in the messages from the sequence ``clean`` up to ``end``."""
        first, last = self._key_at(clean), self._key_at(end)
        return range(first.base_offset if first else 0, last.base_offset if last else 0)

    def _map(self, cursor: int, end: int, newest: NewestOffsets) -> Iterator[Compacted]:
        """Fill ``newest`` and note how far it is filled."""
        while cursor < end and len(newest) < self._max_keys and not self._partition.dropped:
            key = self._key_at(cursor)
            if key is None or key.first >= end:
                self._mapped = end  # a gap reaches up to the tail
                break
            found = self._run(newest_offsets, self._log, self._partition, key, end, self._aborted_in(key))
            if found is None:
                if self._key_at(cursor) != key:
                    continue  # a merge or retention has changed it meanwhile
                self._readable = False
            else:
                offsets, whole = found
                self._run(newest.update, offsets)
                self._readable = self._readable and whole
            self._mapped = cursor = min(key.next, end)
            yield self._done

    def _rewrite(
        self, end: int, newest: NewestOffsets, horizon: int, tombstones: dict[int, int]
    ) -> Iterator[Compacted]:
        """Leave out what is overtaken below ``end``; notes how many tombstones stay, by their sequences."""
        group: list[Filtered] = []
        size, cursor = 0, self._partition.first_sequence
        while not self._partition.dropped:
            key = self._key_at(cursor) if cursor < end else None
            filtered: Filtered | None = None
            if key is not None and key.first < end:
                aborted = self._aborted_in(key)
                filtered = self._run(
                    filter_chunk, self._log, self._partition, key, newest, end, horizon, aborted
                )
                if filtered.chunk is None and self._key_at(cursor) != key:
                    continue
            if group and (filtered is None or _apart(group, filtered, size, end)):
                if not self._put_back(group):
                    cursor = max(group[0].key.first, self._partition.first_sequence)
                    group, size = [], 0
                    yield self._done
                    continue
                group, size = [], 0
            if filtered is None:
                return
            cursor = filtered.key.next
            tombstones.update(filtered.tombstones)
            self._readable = self._readable and not filtered.unreadable
            if filtered.chunk is not None:
                group.append(filtered)
                size += sum(map(len, filtered.contents))
            yield self._done

    def _put_back(self, group: list[Filtered]) -> bool:
        """Replace neighbouring chunks by their compacted contents; False if a merge or retention has changed
        them since they were read."""
        removed = sum(filtered.removed for filtered in group)
        contents = _with_gaps(group, self._partition.first_sequence)
        if not removed and None not in contents and len(group) < _MERGE:
            return True
        before = self._partition.bytes
        old = [(filtered.key, filtered.chunk) for filtered in group if filtered.chunk is not None]
        try:
            self._write([Rewrite(self._partition, old, contents)], {})
        except StaleRewriteError:
            return False
        _, records, size = self._done
        saved = max(0, before - self._partition.bytes)
        self._done = self._done._replace(records=records + removed, bytes=size + saved)
        return True

    def _note(self, state: dict[str, Any], clean: int, tombstones: dict[int, int]) -> None:
        sections = [[sequence, when, 0] for sequence, when, _ in state["sections"]]
        if clean > state["clean"]:
            sections.append([clean, self._now, 0])
        position = 0
        for sequence, count in sorted(tombstones.items()):
            while position < len(sections) and sequence >= sections[position][0]:
                position += 1
            if position < len(sections):
                sections[position][2] += count
        sections = [section for section in sections if section[2] or section is sections[-1]]
        while len(sections) > COMPACTION_SECTIONS:
            # The two oldest become one with the later time: tombstones may stay longer, never shorter.
            sequence, when, count = sections[1]
            sections[:2] = [[sequence, max(when, sections[0][1]), count + sections[0][2]]]
        value = {"clean": max(clean, state["clean"]), "sections": sections}
        if not self._readable:
            value["unreadable"] = True
        with suppress(StaleRewriteError):  # the partition was dropped, and its state with it
            self._write([], {(COMPACTION_TABLE, str(self._partition.number)): value})

    def _aborted_in(self, key: ChunkKey) -> Sequence[tuple[int, int, int]]:
        return self._aborted(key.base_offset, key.next_offset)

    def _key_at(self, sequence: int) -> ChunkKey | None:
        index = self._partition.index
        position = index.at_sequence(sequence)
        return index[position] if position < len(index) else None


def _apart(group: list[Filtered], filtered: Filtered, size: int, end: int) -> bool:
    """Whether a chunk must not be merged with the group before it, which has ``size`` bytes: in one value
    with messages behind ``end``, the next run would leave the whole group alone."""
    key = filtered.key
    is_next = filtered.chunk is not None and group[-1].key.next == key.first
    return not is_next or key.next > end or size + key.size > COMPACTED_BYTES


def _with_gaps(group: list[Filtered], first: int) -> list[bytes | None]:
    """The contents of ``group``, with long series of messages that are safe to drop left out as gaps.

    Messages below the sequence ``first`` are trimmed; the partition's first message stays.
    """
    contents: list[bytes | None] = [content for filtered in group for content in filtered.contents]
    idle = [one for filtered in group for one in filtered.idle]
    position = 0
    for alike, run in groupby(idle):
        begin, position = position, position + len(list(run))
        begin = max(begin, first - group[0].key.first)
        if alike and position - begin > COMPACTION_GAP:
            contents[begin + 1 : position] = [None] * (position - begin - 1)
    return contents


def _end(partition: LogPartition, min_lag_ms: int, end_offset: int | None, now_ms: int) -> int:
    """The sequence that compaction ends before: that of the last value, or of one that is left alone."""
    index = partition.index
    position = _last(partition, min_lag_ms, end_offset, now_ms)
    return index.firsts[position] if position >= 0 else 0


def _last(partition: LogPartition, min_lag_ms: int, end_offset: int | None, now_ms: int) -> int:
    index = partition.index
    position = len(index) - 1
    if min_lag_ms > 0:
        position = min(position, index.at_timestamp(now_ms - min_lag_ms))
    if end_offset is not None:
        position = min(position, index.at_offset(end_offset))
    return position


def _dirty(
    log: Log, partition: LogPartition, min_lag_ms: int, end_offset: int | None, now_ms: int
) -> tuple[int, int]:
    """The positions from which and up to which values are to be compacted."""
    end = _last(partition, min_lag_ms, end_offset, now_ms)
    if partition.kind != "batch" or end <= 0:
        return 0, 0
    return min(end, partition.index.at_sequence(_state(log, partition)["clean"])), end


def _now() -> int:
    return int(time.time() * 1000)


def _state(log: Log, partition: LogPartition) -> dict[str, Any]:
    state = log.table(COMPACTION_TABLE).get(str(partition.number))
    return state if state is not None else dict(_NOTHING)


def _writing(log: Log) -> Write:
    return lambda rewrites, values: log.write([], values, rewrites=rewrites)


def _none_aborted(start: int, end: int) -> Sequence[tuple[int, int, int]]:
    return ()


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
