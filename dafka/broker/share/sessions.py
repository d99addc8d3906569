"""Share sessions: a member names its partitions once, and afterwards only what has changed.

A session belongs to a member of a group, and to the connection of its last request: when that is closed, the
session ends, and what the member holds is given back. KIP-932, "Share sessions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kafka.errors import InvalidShareSessionEpochError, ShareSessionNotFoundError

from dafka.broker.interface.share import (
    OPEN_SESSION,
    SharedRecords,
    SharePlace,
    ShareSessionLimitReachedError,
)
from dafka.broker.share.delivery import Delivery
from dafka.broker.share.fetching import ShareFetch
from dafka.broker.share.limits import SESSION_PARTITIONS
from dafka.hub.turns import Pace

SessionKey = tuple[str, str]
"""Group and member id."""

_HIGHEST = 2**31 - 1


class ShareSession:
    """The partitions of one member, the next one to be read first. ``epoch`` is that of the next request."""

    def __init__(self, connection: object) -> None:
        self.epoch = 1
        self.is_closed = False
        self.connection = connection
        self.places: dict[SharePlace, None] = {}
        self.owed: set[SharePlace] = set()
        """Those that are answered next time even if there is nothing: new ones, and after an error."""
        self.fetches: set[ShareFetch] = set()
        """Those that are being answered."""
        self.opened: dict[SharePlace, Delivery] = {}
        """The share partitions that a fetch has found open, maybe gone since."""

    def in_turn(self, epoch: int) -> list[SharePlace]:
        """The partitions in the order in which the request of that epoch reads them, as in Kafka."""
        places = list(self.places)
        begin = epoch % len(places) if places and epoch > 0 else 0
        return places[begin:] + places[:begin]

    def remember(self, place: SharePlace, delivery: Delivery) -> None:
        """Note the share partition of a place, unless it was forgotten meanwhile."""
        if place in self.places:
            self.opened[place] = delivery

    def owe(self, places: Iterable[SharePlace]) -> None:
        """Note that these are owed an answer, but for those that were forgotten meanwhile.

        Waits as a green thread.
        """
        for place in Pace().over(places):
            if place in self.places:
                self.owed.add(place)

    def take_owed(self, places: Iterable[SharePlace]) -> dict[SharePlace, SharedRecords]:
        """Empty answers for those of the partitions that are owed one; waits as a green thread."""
        found: dict[SharePlace, SharedRecords] = {}
        for place in Pace().over(places):
            if place in self.owed:
                self.owed.discard(place)
                found[place] = SharedRecords()
        return found

    def read(self, places: Collection[SharePlace]) -> None:
        """Note that something was read of these partitions: it is the turn of the others.

        Waits as a green thread.
        """
        for place in Pace().over(places):
            if place in self.places:
                del self.places[place]
                self.places[place] = None


class ShareSessions:
    """The sessions of one broker; ``most()`` says how many there may be."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._connections: dict[object, set[SessionKey]] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, key: SessionKey) -> bool:
        return key in self._sessions

    def open(self, key: SessionKey, connection: object, places: Collection[SharePlace]) -> ShareSession:
        """A new session in the place of any older one; waits as a green thread.

        Raises ShareSessionLimitReachedError, and ShareSessionNotFoundError if it is closed meanwhile.
        """
        self.close(key)
        if len(self._sessions) >= self._most() or self._weight + len(places) > SESSION_PARTITIONS:
            raise ShareSessionLimitReachedError
        session = self._sessions[key] = ShareSession(None)
        self._bind(key, session, connection)
        try:
            self.change(session, places, ())
        except ShareSessionLimitReachedError:
            if self._sessions.get(key) is session:
                self.close(key)
            raise
        return session

    def resume(self, key: SessionKey, epoch: int, connection: object) -> ShareSession:
        """The session that a request belongs to. Raises ShareSessionNotFoundError and
        InvalidShareSessionEpochError."""
        session = self._sessions.get(key)
        if session is None or epoch == OPEN_SESSION:
            raise ShareSessionNotFoundError
        if epoch != session.epoch:
            raise InvalidShareSessionEpochError
        session.epoch = 1 if epoch == _HIGHEST else epoch + 1
        self._bind(key, session, connection)
        return session

    def change(
        self, session: ShareSession, added: Collection[SharePlace], forgotten: Collection[SharePlace]
    ) -> None:
        """Add partitions to a session, and remove others; waits as a green thread.

        Raises ShareSessionLimitReachedError, after it has added as many as there was room for, and
        ShareSessionNotFoundError if it is closed meanwhile.
        """
        pace = Pace()
        for place in pace.over(added):
            if session.is_closed:
                raise ShareSessionNotFoundError
            if place in session.places:
                continue
            if self._weight >= SESSION_PARTITIONS:
                raise ShareSessionLimitReachedError
            session.places[place] = None
            session.owed.add(place)
            self._weight += 1
        for place in pace.over(forgotten):
            if session.is_closed:
                raise ShareSessionNotFoundError
            if place in session.places:
                del session.places[place]
                session.owed.discard(place)
                session.opened.pop(place, None)
                self._weight -= 1

    def close(self, key: SessionKey) -> ShareSession | None:
        """End a session; it, if there was one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            session.is_closed = True
            self._weight -= len(session.places)
            self._unbind(key, session)
        return session

    def close_all(self) -> None:
        """End all sessions, and what waits for records in them; waits as a green thread."""
        for key in Pace().over(list(self._sessions)):
            session = self.close(key)
            for fetch in () if session is None else list(session.fetches):
                fetch.abandon()

    def is_connected(self, key: SessionKey) -> bool:
        """Whether there is a session that ends with a connection, and not with its member."""
        session = self._sessions.get(key)
        return session is not None and session.connection is not None

    def of_connection(self, connection: object) -> list[SessionKey]:
        """The sessions whose last request came on this connection."""
        return list(self._connections.get(connection, ()))

    def _bind(self, key: SessionKey, session: ShareSession, connection: object) -> None:
        if connection is not None and connection is not session.connection:
            self._unbind(key, session)
            session.connection = connection
            self._connections.setdefault(connection, set()).add(key)

    def _unbind(self, key: SessionKey, session: ShareSession) -> None:
        keys = self._connections.get(session.connection)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del self._connections[session.connection]
