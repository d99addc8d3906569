"""Fetch sessions (KIP-227): a client names its partitions once, and afterwards only what has changed.

Theory of operation. A full fetch (epoch 0) is answered with every partition that it names, and begins a
session, which stores for each partition the fetch position and the offsets of the last answer. An incremental
fetch has the id and the epoch of the session; the epoch increases by one with each request. It names
partitions that are new or have another fetch position, and partitions to forget. Its answer has only
partitions with records, with an error, or with a new high watermark or log start. Partitions that returned
records are read last by the next fetch, so every partition gets its turn even if responses are small.

A session is not bound to a connection: a client may continue it in another one. If it cannot be continued
(another epoch, an evicted session, names instead of ids), the answer is an error of the protocol, and the
client begins again with a full fetch.

The cost of an incremental fetch grows with the changes only: the session watches the partitions that have
nothing new for its client, and a fetch reads those that have changed and those that it names.

The number of sessions and of their partitions is limited (:mod:`dafka.broker.server.limits`). As in Kafka, a
session that was not used for two minutes is evicted for any other, and one that is older than that for a
larger one; if there is still no room, the answer has session id 0, and the client names all its partitions
in each request.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

import gevent
from kafka.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
)

from dafka.broker.codec.fetch_request import INITIAL, NO_SESSION, Asked, Place
from dafka.broker.interface.broker import NO_OFFSET, Fetched, FetchFrom, PartitionWatch, TopicPartition
from dafka.broker.server import limits
from dafka.hub.turns import Pace

Answers = list[tuple[Place, Fetched]]

_HIGHEST = 2**31 - 1
_NAME_OCTETS = 256  # a longer name, which no topic has, counts as several partitions
_UNTOLD = (NO_OFFSET, NO_OFFSET)


class FetchSession:
    """The partitions of one client, in the order of reading. ``epoch`` is that of the next request.

    ``unread`` are the partitions that may have changed, in the order of reading; ``watch`` reports changes of
    the others.
    """

    __slots__ = (
        "asked",
        "begun",
        "by_id",
        "epoch",
        "id",
        "keys",
        "places",
        "told",
        "unread",
        "used",
        "version",
        "watch",
        "weight",
    )  # fmt: skip

    def __init__(self, session_id: int, by_id: bool, now: float) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = _after(INITIAL)
        self.begun = self.used = now
        self.weight = 0
        self.version = -1  # of the rights by which it was answered
        self.asked: dict[Place, tuple[int, ...]] = {}  # the fields of FetchFrom: see :meth:`wanted`
        self.told: dict[Place, tuple[int, int]] = {}  # high watermark, log start
        self.unread: dict[Place, None] = {}
        self.watch: PartitionWatch | None = None
        self.places: dict[TopicPartition, Place] = {}  # of watched partitions
        self.keys: dict[Place, TopicPartition] = {}  # the inverse of places

    def wanted(self, place: Place) -> Asked:
        """A partition of the session, and from where to read it.

        The position is stored as a plain tuple of numbers, which the garbage collector does not track.
        """
        return place, FetchFrom(*self.asked[place])

    def watches(self, place: Place, key: TopicPartition) -> None:
        """Note that the watch covers a partition."""
        self.places[key], self.keys[place] = place, key

    def note_changed(self, changed: Iterable[TopicPartition]) -> None:
        """Mark watched partitions that have changed as unread."""
        for key in changed:
            place = self.places.get(key)
            if place in self.asked:
                self.unread[place] = None

    def note_rights(self, version: int) -> None:
        """With other rights than before every partition has to be looked at again."""
        if version != self.version:
            self.version = version
            self.unread.update(dict.fromkeys(self.asked))

    def note_read(self, answers: Answers, read_committed: bool, epoch: int) -> None:
        """Remove the partitions that were read to their end from ``unread`` until they change."""
        for place, one in Pace().over(answers):
            if self.epoch != epoch:
                return  # a later request has read since
            asked = self.asked.get(place)
            if asked is None or one.error is not None or one.batches or one.diverging is not None:
                continue
            end = one.last_stable_offset if read_committed else one.high_watermark
            if FetchFrom(*asked).offset >= end:
                self.unread.pop(place, None)

    def forget(self, place: Place) -> None:
        """Remove a partition from the session."""
        if self.asked.pop(place, None) is None:
            return
        self.weight -= _weight(place)
        self.told.pop(place, None)
        self.unread.pop(place, None)
        key = self.keys.pop(place, None)
        if key is not None and self.watch is not None:
            del self.places[key]
            self.watch.remove(key)

    def changes(self, answers: Answers) -> Answers:
        """The answers that differ from what the client was sent before; they are noted as sent."""
        told, asked = self.told, self.asked
        changed = []
        for place, one in Pace().over(answers):
            limits_now = (one.high_watermark, one.log_start_offset) if one.error is None else _UNTOLD
            quiet = one.error is None and one.diverging is None and not one.batches
            if quiet and told.get(place) == limits_now:
                continue
            told[place] = limits_now
            changed.append((place, one))
            if one.batches and place in asked:  # unless another request has removed it meanwhile
                asked[place] = asked.pop(place)
                self.unread.pop(place, None)
                self.unread[place] = None
        return changed


class FetchSessions:
    """The sessions of a listener, the least recently used first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, by_id: bool, asked: Iterable[Asked], answers: Answers) -> int:
        """The id of a new session with these partitions and first answers; NO_SESSION if there is no room."""
        now = self._clock()
        session = FetchSession(self._free_id(), by_id, now)
        for one in Pace().over(asked):
            if one[0] not in session.asked:
                session.asked[one[0]] = tuple(one[1])
                session.unread[one[0]] = None
                session.weight += _weight(one[0])
        if not self._make_room(session.weight, now):
            return NO_SESSION
        session.changes(answers)
        self._sessions[session.id] = session
        self._weight += session.weight
        return session.id

    def resume(
        self, session_id: int, epoch: int, by_id: bool, changed: Sequence[Asked], forgotten: Sequence[Place]
    ) -> FetchSession:
        """The session with the changes of a request and the next epoch; closed if it has no partitions left.

        Raises FetchSessionIdNotFoundError, InvalidFetchSessionEpochError and FetchSessionTopicIdError.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionIdNotFoundError
        if session.epoch != epoch:
            raise InvalidFetchSessionEpochError
        if session.by_id != by_id:
            raise FetchSessionTopicIdError
        session.epoch = _after(epoch)
        session.used = self._clock()
        self._sessions.move_to_end(session_id)
        before = session.weight
        for one in Pace().over(changed):
            place = one[0]
            if place not in session.asked:
                session.weight += _weight(place)
            session.asked[place] = tuple(one[1])
            session.unread.setdefault(place)
        for place in Pace().over(forgotten):
            session.forget(place)
        self._weight += session.weight - before
        if not session.asked:
            self.close(session_id)
        elif self._weight > limits.FETCH_SESSION_PARTITIONS and session.weight > before:
            self.close(session_id)
            raise FetchSessionIdNotFoundError
        return session

    def close(self, session_id: int) -> None:
        """Forget a session, if there is one with this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._weight -= session.weight
            if session.watch is not None:
                gevent.spawn(session.watch.close)

    def _free_id(self) -> int:
        while True:
            session_id = secrets.randbelow(_HIGHEST) + 1
            if session_id not in self._sessions:
                return session_id

    def _make_room(self, weight: int, now: float) -> bool:
        if weight > limits.FETCH_SESSION_PARTITIONS:
            return False
        while (
            len(self._sessions) >= limits.FETCH_SESSIONS
            or self._weight + weight > limits.FETCH_SESSION_PARTITIONS
        ):
            oldest = next(iter(self._sessions.values()))
            if now - oldest.used <= limits.FETCH_SESSION_SECONDS:
                aged = [
                    one for one in self._sessions.values() if now - one.begun > limits.FETCH_SESSION_SECONDS
                ]
                smallest = min(aged, key=lambda one: one.weight, default=None)
                if smallest is None or smallest.weight >= weight:
                    return False
                oldest = smallest
            self.close(oldest.id)
        return True


def _after(epoch: int) -> int:
    return 1 if epoch == _HIGHEST else epoch + 1


def _weight(place: Place) -> int:
    topic = place[0]
    return 1 + len(topic) // _NAME_OCTETS if isinstance(topic, str) else 1
