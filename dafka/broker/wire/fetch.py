"""Fetch, by hand: batches go from the log into the response as they are.

Versions 4 to 18, with sessions (:mod:`.fetch_sessions`) from version 7 on. A full fetch is answered with
every partition it names; an incremental one with those of its session that have something new.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple
from uuid import UUID

from kafka.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    InvalidRequestError,
    UnknownTopicIdError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)

from dafka.broker.interface import NO_OFFSET, BrokerInterface, Error, Fetched, FetchFrom, TopicPartition
from dafka.broker.wire.fetch_request import (
    BY_ID,
    FINAL,
    FLEXIBLE,
    INITIAL,
    NO_SESSION,
    SESSIONS,
    Asked,
    FetchRequest,
    Place,
)
from dafka.broker.wire.fetch_sessions import Answers, FetchSessions
from dafka.broker.wire.framing import Buffers, array_size, compact_string, string
from dafka.broker.wire.naming import code, topic_names
from dafka.protocol.batch import CODECS, COMPRESSION_MASK

OLDEST = 4
ZSTD = 10
_ATTRIBUTES = 22  # where in a batch the octet with the codec is

_ERROR = struct.Struct(">hi")  # error, session id
_ABORTED = struct.Struct(">qq")
_DIVERGING = struct.Struct(">BBBiqB")  # one tagged field, its tag and size; epoch, end offset, no tags in it
_ANSWER = struct.Struct(">ihqqq")  # number, error, high watermark, last stable offset, log start


Room = Callable[[], AbstractContextManager[int]]
"""Gives the bytes of batches that a response may have, which are held for it within a ``with`` block."""


class FetchAnswer(NamedTuple):
    """What is answered: an error of the whole request, or the session and partitions."""

    error: Error | None
    session_id: int = NO_SESSION
    partitions: Sequence[tuple[Place, Fetched]] = ()


def fetch(
    broker: BrokerInterface, sessions: FetchSessions, request: FetchRequest, version: int, room: Room
) -> FetchAnswer:
    """Read from the broker, at most what ``room`` gives; waits as the request says."""
    by_id = version >= BY_ID
    if request.session_epoch in (INITIAL, FINAL):
        sessions.close(request.session_id)
        answers = _read(broker, request.partitions, request, version, room, every=True)
        if request.session_epoch == FINAL:
            return FetchAnswer(None, NO_SESSION, answers)
        return FetchAnswer(None, sessions.begin(by_id, request.partitions, answers), answers)
    try:
        session = sessions.resume(
            request.session_id, request.session_epoch, by_id, request.partitions, request.forgotten
        )
    except (FetchSessionIdNotFoundError, InvalidFetchSessionEpochError, FetchSessionTopicIdError) as error:
        return FetchAnswer(type(error))
    if not session.asked:
        return FetchAnswer(None)
    epoch = session.epoch
    answers = _read(broker, session.asked.values(), request, version, room, every=sessions.is_due(session))
    if session.epoch != epoch:  # the client has given this request up, and gone on in another connection
        return FetchAnswer(InvalidFetchSessionEpochError)
    return FetchAnswer(None, session.id, session.changes(answers))


def _read(
    broker: BrokerInterface,
    asked: Collection[Asked],
    request: FetchRequest,
    version: int,
    room: Room,
    every: bool,
) -> Answers:
    """The answers, of partitions that have nothing to say only if ``every``; what is refused comes first."""
    names = topic_names(broker, {topic for (topic, _), _ in asked if isinstance(topic, UUID)})
    wanted: dict[TopicPartition, FetchFrom] = {}
    by_id: dict[TopicPartition, Place] = {}
    answers: Answers = []
    for place, from_ in asked:
        topic, number = place
        name = topic if isinstance(topic, str) else names.get(topic)
        if name is None:
            answers.append((place, _refused(UnknownTopicIdError)))
        elif version < OLDEST:
            answers.append((place, _refused(UnsupportedVersionError)))
        elif (key := (name, number)) in wanted:
            answers.append((place, _refused(InvalidRequestError)))
        else:
            wanted[key] = from_
            if topic is not name:
                by_id[key] = place
    found = _fetch(broker, request, wanted, room, not answers, every)
    if version < ZSTD:
        found = {key: _without_zstd(one) for key, one in found.items()}
    if by_id:
        answers += [(by_id[key], one) for key, one in found.items()]
    else:
        answers += found.items()
    return answers


def _fetch(
    broker: BrokerInterface,
    request: FetchRequest,
    wanted: dict[TopicPartition, FetchFrom],
    room: Room,
    wait: bool,
    every: bool,
) -> dict[TopicPartition, Fetched]:
    if not wanted:
        return {}
    options = {"read_committed": True} if request.read_committed else {}

    def read(max_wait: float) -> dict[TopicPartition, Fetched]:
        return broker.fetch(
            wanted, max_wait=max_wait, min_bytes=request.min_bytes, max_bytes=max_bytes, **options
        )

    # What is there is read from the log, while others do the same. What is waited for is new, and the same
    # bytes for all; nobody could say when to stop holding room for it.
    with room() as most:
        max_bytes = min(request.max_bytes, most)
        found = read(0.0)
    if wait and request.max_wait > 0 and not _is_enough(found, request.min_bytes, max_bytes):
        found = read(request.max_wait)
    if every and len(found) < len(wanted):
        # The others come with their limits, and without the batch that a fetch has whatever its size.
        others = {key: from_._replace(max_bytes=0) for key, from_ in wanted.items() if key not in found}
        for key, one in broker.fetch(others, max_wait=0.0, min_bytes=0, max_bytes=0, **options).items():
            found[key] = one._replace(batches=[], aborted=())
    return found


def _is_enough(found: dict[TopicPartition, Fetched], min_bytes: int, max_bytes: int) -> bool:
    size = sum(len(batch) for one in found.values() for batch in one.batches)
    told = any(one.error is not None or one.diverging is not None for one in found.values())
    return told or size >= min_bytes or size >= max(max_bytes, 1)


def _refused(error: Error) -> Fetched:
    return Fetched(error, NO_OFFSET, NO_OFFSET, [])


def _without_zstd(fetched: Fetched) -> Fetched:
    """Clients before version 10 do not know zstd."""
    if any(batch[_ATTRIBUTES] & COMPRESSION_MASK == CODECS["zstd"] for batch in fetched.batches):
        return fetched._replace(error=UnsupportedCompressionTypeError, batches=[])
    return fetched


def write_fetch(answer: FetchAnswer, version: int, read_committed: bool) -> Buffers:
    """The body of the response, as buffers: batches are not copied."""
    flexible = version >= FLEXIBLE
    name_of = compact_string if flexible else string
    buffers: Buffers = []
    out = bytearray()
    if version >= 1:
        out += b"\0\0\0\0"  # not throttled
    if version >= SESSIONS:
        out += _ERROR.pack(code(answer.error), answer.session_id)
    topics: dict[str | UUID, list[tuple[int, Fetched]]] = {}
    for (topic, number), one in answer.partitions:
        topics.setdefault(topic, []).append((number, one))
    out += array_size(len(topics), flexible)
    for topic, partitions in topics.items():
        out += topic.bytes if isinstance(topic, UUID) else name_of(topic)
        out += array_size(len(partitions), flexible)
        for number, one in partitions:
            stable = one.last_stable_offset if one.last_stable_offset >= 0 else one.high_watermark
            fixed = _ANSWER.pack(number, code(one.error), one.high_watermark, stable, one.log_start_offset)
            out += fixed if version >= 5 else fixed[:22] if version >= 4 else fixed[:14]
            if version >= 4:
                _write_aborted(out, one, flexible, read_committed)
            if version >= 11:
                out += b"\xff\xff\xff\xff"  # no other replica to read from
            size = sum(map(len, one.batches))
            out += array_size(size, flexible)
            if size:
                buffers.append(out)
                buffers += one.batches
                out = bytearray()
            if flexible:
                out += b"\0" if one.diverging is None else _DIVERGING.pack(1, 0, 13, *one.diverging, 0)
        if flexible:
            out += b"\0"
    if flexible:
        out += b"\0"
    buffers.append(out)
    return buffers


def _write_aborted(out: bytearray, fetched: Fetched, flexible: bool, read_committed: bool) -> None:
    if not read_committed:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
        return
    out += array_size(len(fetched.aborted), flexible)
    for producer_id, first in fetched.aborted:
        out += _ABORTED.pack(producer_id, first)
        if flexible:
            out += b"\0"
