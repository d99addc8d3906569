"""Fetch, by hand: batches go from the log into the response as they are.

Versions 4 to 18, with sessions (:mod:`.fetch_sessions`) from version 7 on. A full fetch is answered with
every partition it names; an incremental one with those of its session that have something new.
"""

from __future__ import annotations

import struct
import time
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

from dafka.broker.codec.fetch_request import (
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
from dafka.broker.codec.framing import Buffers, array_size, compact_string, string
from dafka.broker.interface.broker import (
    NO_OFFSET,
    BrokerInterface,
    Error,
    Fetched,
    FetchFrom,
    PartitionWatch,
    TopicPartition,
)
from dafka.broker.server.answers.fetch_sessions import Answers, FetchSession, FetchSessions
from dafka.broker.server.answers.naming import code, topic_names
from dafka.hub.turns import Pace
from dafka.protocol.batch import CODECS, COMPRESSION_MASK

OLDEST = 4
ZSTD = 10
_ATTRIBUTES = 22  # where in a batch the octet with the codec is

_ERROR = struct.Struct(">hi")  # error, session id
_ABORTED = struct.Struct(">qq")
_DIVERGING = struct.Struct(">BBBiqB")  # one tagged field, its tag and size; epoch, end offset, no tags in it
_ANSWER = struct.Struct(">ihqqq")  # number, error, high watermark, last stable offset, log start


GATHER_SECONDS = 0.05
"""For which an incremental fetch that has some records, but not enough, waits for more of the same partitions
before it looks at all others again."""

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
    answers = _read_changed(broker, session, request, version, room)
    if session.epoch != epoch:  # the client has given this request up, and gone on in another connection
        return FetchAnswer(InvalidFetchSessionEpochError)
    return FetchAnswer(None, session.id, session.changes(answers))


def _read_changed(
    broker: BrokerInterface,
    session: FetchSession,
    request: FetchRequest,
    version: int,
    room: Room,
) -> Answers:
    """The answers of the session's partitions that may have something new; waits until they have enough."""
    if session.watch is None:
        session.watch = broker.watch()
    watch, epoch = session.watch, session.epoch
    ends = time.monotonic() + request.max_wait
    pause = 0.0
    found: dict[Place, Fetched] = {}
    while True:
        left = max(ends - time.monotonic(), 0.0)
        session.note_changed(watch.take())
        asked = _watched(broker, session, watch)
        # More may come of those that have something; others are looked after when this wait is over.
        once = request._replace(max_wait=min(left, pause))
        answers = _read(broker, asked, once, version, room, every=True) if asked else []
        session.note_read(answers, request.read_committed, epoch)
        found.update(answers)
        left = ends - time.monotonic()
        enough = _is_enough(found.values(), request.min_bytes, request.max_bytes)
        if enough or left <= 0 or session.epoch != epoch:
            return list(found.items())
        pause = GATHER_SECONDS if any(one.batches for _, one in answers) else 0.0
        if not pause and not watch.wait(left):
            return list(found.items())


def _watched(broker: BrokerInterface, session: FetchSession, watch: PartitionWatch) -> list[Asked]:
    """The partitions that are to be read, each of which is watched from now on."""
    pace = Pace()
    asked = [session.asked[place] for place in pace.over(list(session.unread)) if place in session.asked]
    ids = {topic for (topic, _), _ in pace.over(asked) if isinstance(topic, UUID)}
    names = topic_names(broker, ids)
    for place, _ in pace.over(asked):
        topic, number = place
        name = topic if isinstance(topic, str) else names.get(topic)
        if name is not None and watch.add((name, number)):
            session.watches(place, (name, number))
    return asked


def _read(
    broker: BrokerInterface,
    asked: Collection[Asked],
    request: FetchRequest,
    version: int,
    room: Room,
    every: bool,
) -> Answers:
    """The answers, of partitions that have nothing to say only if ``every``; what is refused comes first."""
    pace = Pace()
    names = topic_names(broker, {topic for (topic, _), _ in pace.over(asked) if isinstance(topic, UUID)})
    wanted: dict[TopicPartition, FetchFrom] = {}
    by_id: dict[TopicPartition, Place] = {}
    answers: Answers = []
    for place, from_ in pace.over(asked):
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
        found = {key: _without_zstd(one) for key, one in pace.over(found.items())}
    if by_id:
        answers += [(by_id[key], one) for key, one in pace.over(found.items())]
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
    if wait and request.max_wait > 0 and not _is_enough(found.values(), request.min_bytes, max_bytes):
        found = read(request.max_wait)
    if every and len(found) < len(wanted):
        # The others come with their limits, and without the batch that a fetch has whatever its size.
        paced = Pace().over(wanted.items())
        others = {key: from_._replace(max_bytes=0) for key, from_ in paced if key not in found}
        quiet = broker.fetch(others, max_wait=0.0, min_bytes=0, max_bytes=0, **options)
        for key, one in Pace().over(quiet.items()):
            found[key] = one._replace(batches=[], aborted=())
    return found


def _is_enough(found: Collection[Fetched], min_bytes: int, max_bytes: int) -> bool:
    size = sum(len(batch) for one in Pace().over(found) for batch in one.batches)
    told = any(one.error is not None or one.diverging is not None for one in Pace().over(found))
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
