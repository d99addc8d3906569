"""Fetch, versions 4 to 18, with fetch sessions (:mod:`dafka.broker.server.fetch_sessions`) from version 7 on.

A full fetch is answered with every partition that it names; an incremental fetch with the partitions of its
session that have changed. Its bytes are written by :mod:`dafka.broker.codec.fetch_response`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from uuid import UUID

from kafka.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.access.rights import Rights
from dafka.broker.codec.fetch_request import (
    BY_ID,
    FINAL,
    INITIAL,
    NO_SESSION,
    Asked,
    FetchRequest,
    Place,
)
from dafka.broker.codec.fetch_response import FetchAnswer
from dafka.broker.interface.broker import (
    NO_OFFSET,
    BrokerInterface,
    Error,
    Fetched,
    FetchFrom,
    PartitionWatch,
    TopicPartition,
)
from dafka.broker.server.answers.naming import topic_names
from dafka.broker.server.fetch_sessions import Answers, FetchSession, FetchSessions
from dafka.hub.turns import Pace, let_go
from dafka.security.acls.terms import Operation, ResourceType

GATHER_SECONDS = 0.05
"""How long an incremental fetch with fewer records than ``min_bytes`` waits for more of the same partitions
before it checks the others again."""

_UNREAD = (
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
"""Errors of partitions that are not looked at."""

Room = Callable[[], AbstractContextManager[int]]
"""Grants a response its bytes of batches; they count as used within the ``with`` block."""

Admits = Callable[[int], bool]
"""Whether a response may have so many octets of batches."""


def fetch(
    broker: BrokerInterface,
    sessions: FetchSessions,
    request: FetchRequest,
    version: int,
    room: Room,
    rights: Rights | None = None,
    stored: bool = False,
    admits: Admits | None = None,
) -> FetchAnswer:
    """Read from the broker, at most the bytes that ``room`` grants; waits up to ``request.max_wait``.

    If ``admits`` says no to what was found, the answer has no partitions, and a session is to read as before.

    ``rights`` are the client's, None: it may read everything. They are looked at again when they have changed
    while it waited. ``stored``: the batches are for a socket to which files can be sent.
    """
    if not request.known_level:
        # As in Kafka, all of it is refused if there is something to read at that level.
        request = request._replace(max_wait=0.0)
    read = partial(_read, broker, stored=stored)
    by_id = version >= BY_ID
    if request.session_epoch in (INITIAL, FINAL):
        sessions.close(request.session_id)
        answers = read(request.partitions, request, version, room, rights)
        if _has_no_level(request, answers):
            return _without_level(request, version)
        if admits is not None and not admits(_octets(answers)):
            return FetchAnswer(None)
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
    answers = _read_changed(broker, read, session, request, version, room, rights)
    if _has_no_level(request, answers):
        session.unread.update(dict.fromkeys(place for place, _ in answers if place in session.asked))
        return _without_level(request, version)
    if session.epoch != epoch:  # the client has continued its session in another connection
        return FetchAnswer(InvalidFetchSessionEpochError)
    if admits is not None and not admits(_octets(answers)):
        session.unread.update(dict.fromkeys(place for place, _ in answers if place in session.asked))
        return FetchAnswer(None, session.id)
    changed = session.changes(answers)
    let_go(answers)
    return FetchAnswer(None, session.id, changed)


def _has_no_level(request: FetchRequest, answers: Answers) -> bool:
    """Whether partitions should be read at an isolation level that there is not."""
    return not request.known_level and any(one.error not in _UNREAD for _, one in Pace().over(answers))


def _without_level(request: FetchRequest, version: int) -> FetchAnswer:
    if version >= BY_ID:
        return FetchAnswer(UnknownError, request.session_id)
    refused, named = _refused(UnknownError), iter(request.partitions)
    topics = []
    for count in request.counts:
        some = [place for place, _ in Pace().over(islice(named, count))]
        if some:
            topics.append((some[0][0], [(number, refused) for _, number in some]))
    return FetchAnswer(UnknownError, request.session_id, topics=topics)


def count(broker: BrokerInterface, answer: FetchAnswer) -> None:
    """The client gets this answer: its records are counted now, and once."""
    given = [one for _, one in Pace().over(answer.partitions) if one.batches]
    if given:
        octets = sum(sum(map(len, one.batches)) for one in given)
        broker.count_fetched(sum(one.records for one in given), octets)


def _octets(answers: Answers) -> int:
    return sum(len(batch) for _, one in Pace().over(answers) for batch in one.batches)


def _read_changed(
    broker: BrokerInterface,
    read: Callable[..., Answers],
    session: FetchSession,
    request: FetchRequest,
    version: int,
    room: Room,
    rights: Rights | None,
) -> Answers:
    """Read the partitions of the session that may have changed; waits until they have ``min_bytes``."""
    if session.watch is None:
        session.watch = broker.watch()
    watch, epoch = session.watch, session.epoch
    ends = time.monotonic() + request.max_wait
    pause = 0.0
    found: dict[Place, Fetched] = {}
    while True:
        left = max(ends - time.monotonic(), 0.0)
        session.note_changed(watch.take())
        if rights is not None:
            session.note_rights(rights.version)
        asked = _watched(broker, session, watch)
        # Wait for more of the partitions that have records; the others are read after this short wait.
        once = request._replace(max_wait=min(left, pause))
        answers = read(asked, once, version, room, rights) if asked else []
        session.note_read(answers, request.read_committed, epoch)
        for place, one in Pace().over(answers):
            found[place] = one
        left = ends - time.monotonic()
        enough = is_enough(found.values(), request.min_bytes, request.max_bytes)
        if enough or left <= 0 or session.epoch != epoch:
            return list(Pace().over(found.items()))
        pause = GATHER_SECONDS if any(one.batches for _, one in answers) else 0.0
        if not pause and not watch.wait(left):
            return list(Pace().over(found.items()))


def _watched(broker: BrokerInterface, session: FetchSession, watch: PartitionWatch) -> list[Asked]:
    """The partitions of the session to read; all of them are watched from now on."""
    pace = Pace()
    asked = [session.wanted(place) for place in pace.over(list(session.unread)) if place in session.asked]
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
    rights: Rights | None,
    *,
    stored: bool,
) -> Answers:
    """Read these partitions, refused ones first; unchanged ones are included."""
    pace = Pace()
    names = topic_names(broker, {topic for (topic, _), _ in pace.over(asked) if isinstance(topic, UUID)})
    allowed, known = None, 0
    if rights is not None:
        known = rights.version
        allowed = _readable(rights, (names.get(t, "") if isinstance(t, UUID) else t for (t, _), _ in asked))
    wanted: dict[TopicPartition, FetchFrom] = {}
    by_id: dict[TopicPartition, Place] = {}
    refused: dict[Place, Fetched] = {}  # once, also what is named again
    for place, from_ in pace.over(asked):
        topic, number = place
        name = topic if isinstance(topic, str) else names.get(topic)
        if name is None:
            refused[place] = _refused(UnknownTopicIdError)
        elif allowed is not None and name not in allowed:
            refused[place] = _refused(TopicAuthorizationFailedError)
        else:
            key = name, number
            wanted[key] = from_  # of one that is named twice, the last counts, as in Kafka
            if topic is not name:
                by_id[key] = place
    answers: Answers = list(refused.items())
    found = _fetch(broker, request, wanted, room, not answers, stored)
    if rights is not None and rights.version != known:
        allowed = _readable(rights, (topic for topic, _ in found))
        unread = _refused(TopicAuthorizationFailedError)
        found = {key: one if key[0] in allowed else unread for key, one in pace.over(found.items())}
    if by_id:
        answers += [(by_id[key], one) for key, one in pace.over(found.items())]
    else:
        answers.extend(Pace().over(found.items()))
    let_go(wanted, found, by_id, refused)
    return answers


def _readable(rights: Rights, topics: Iterable[str]) -> set[str]:
    return rights.allowed("Fetch", Operation.READ, ResourceType.TOPIC, set(Pace().over(topics)))


def _fetch(
    broker: BrokerInterface,
    request: FetchRequest,
    wanted: dict[TopicPartition, FetchFrom],
    room: Room,
    wait: bool,
    stored: bool,
) -> dict[TopicPartition, Fetched]:
    if not wanted:
        return {}
    options = {"read_committed": request.read_committed, "stored": stored, "counted": False}

    def read(max_wait: float) -> dict[TopicPartition, Fetched]:
        return broker.fetch(
            wanted, max_wait=max_wait, min_bytes=request.min_bytes, max_bytes=max_bytes, **options
        )

    # Only the read of existing records holds room. Records that a fetch waits for are new: all waiting
    # fetches share the same bytes, and room for them would be held for an unknown time.
    with room() as most:
        max_bytes = min(request.max_bytes, most)
        found = read(0.0)
    if wait and request.max_wait > 0 and not is_enough(found.values(), request.min_bytes, max_bytes):
        let_go(found)
        found = read(request.max_wait)
    if len(found) < len(wanted):
        # The others are answered with their offsets only, without the batch that exceeds any limit.
        paced = Pace().over(wanted.items())
        others = {key: from_._replace(max_bytes=0) for key, from_ in paced if key not in found}
        quiet = broker.fetch(others, max_wait=0.0, min_bytes=0, max_bytes=0, **options)
        for key, one in Pace().over(quiet.items()):
            found[key] = one._replace(batches=[], aborted=())
    return found


def is_enough(found: Collection[Fetched], min_bytes: int, max_bytes: int) -> bool:
    """Whether a client that wants ``min_bytes`` octets need not wait for more."""
    size = sum(len(batch) for one in Pace().over(found) for batch in one.batches)
    told = any(one.error is not None or one.diverging is not None for one in Pace().over(found))
    return told or size >= min_bytes or size >= max(max_bytes, 1)


def _refused(error: Error) -> Fetched:
    return Fetched(error, NO_OFFSET, NO_OFFSET, [])
