"""A client's use of its quotas, and how long its connection is not read because of that.

As in Kafka since 2.0 (KIP-219): the response is sent at once and says in ``throttle_time_ms`` how long the
client should wait. Whether it does or not, its connection is not read before.

Octets of a Produce request count when it has come, before further ones are read; those of a Fetch when it is
answered. A Fetch finds at most what the windows of a quota allow at once, but always one batch: if that is
too much beside what has been read, it gets none, but an empty response with the time, and nothing counts as
read. A batch that is too large whatever has been read is given once nothing counts, or it could never be
read. So it is with all that its user reads
in other connections meanwhile. A ShareFetch may have acknowledgements: it has its records all the same, and
one that comes too early is answered later. Processor time of the threads that answer counts for
``request_percentage``, partitions that are added or deleted for ``controller_mutation_rate``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache, partial

from dafka.broker.codec.framing import LENGTH_OCTETS, Buffers
from dafka.broker.quotas.table import FETCHED, MUTATED, PRODUCED, REQUESTED
from dafka.broker.quotas.throttles import Throttles
from dafka.broker.server.context import Peer
from dafka.broker.server.requests import Frame
from dafka.broker.server.table import API_VERSIONS, PRODUCE, Api
from dafka.hub.running_time import running_time
from dafka.security.principals import USER

Room = Callable[[], AbstractContextManager[int]]

_INT32 = struct.Struct(">i")
_MOST = 2**31 - 1
_FIRST_OF_BODY = 1  # buffer 0 of a response is its header


class Mutations:
    """The partitions that a request adds or deletes, as far as its user may."""

    def __init__(self, throttles: Throttles, user: str, client_id: str) -> None:
        self._throttles = throttles
        self._who = user, client_id
        self.seconds = 0.0  # to wait

    def may(self, partitions: int, strict: bool) -> bool:
        """Whether so many may be added or deleted, which they count as then.

        Not ``strict``: always, and a client that has used too much waits afterwards. This is for versions of
        requests whose clients do not know THROTTLING_QUOTA_EXCEEDED.
        """
        if not strict:
            self.seconds = max(self.seconds, self._throttles.use(MUTATED, *self._who, partitions))
            return True
        used, seconds = self._throttles.use_if_within(MUTATED, *self._who, partitions)
        self.seconds = max(self.seconds, seconds)
        return used


class Throttling:
    """The throttling of one connection."""

    def __init__(self, throttles: Throttles, peer: Peer) -> None:
        self._throttles = throttles
        self._peer = peer
        self._until = 0.0  # the connection is not read before
        self._owed = 0.0  # seconds, because of the Fetch that is answered
        self._mutations: Mutations | None = None  # of the request that is answered

    def __bool__(self) -> bool:
        """Whether there is any quota."""
        return bool(self._throttles)

    def seconds_left(self) -> float:
        """How long the connection is not to be read."""
        return 0.0 if not self._until else max(self._until - self._throttles.clock(), 0.0)

    def produced(self, frame: Frame) -> float:
        """A Produce request has come; returns the seconds to wait."""
        if not self._throttles:
            return 0.0
        return self._use(PRODUCED, frame, len(frame.data) + LENGTH_OCTETS)

    def room(self, frame: Frame, room: Room) -> Room:
        """The room for the batches of a Fetch."""
        if not frame.reads or not self._throttles.has(FETCHED):
            return room
        return partial(_at_most, room, self._throttles.room(FETCHED, *self._who(frame)))

    def admits(self, frame: Frame) -> Callable[[int], bool] | None:
        """A function that tells whether a Fetch may have the octets that it has found. None: it may."""
        if not self._throttles.has(FETCHED) and not self._throttles.has(REQUESTED):
            return None
        return partial(self._admits, frame)

    def _admits(self, frame: Frame, octets: int) -> bool:
        who = self._who(frame)
        used, self._owed = False, self._throttles.owed(REQUESTED, *who)
        if not self._owed:
            used, self._owed = self._throttles.use_if_within(FETCHED, *who, octets)
        self._wait(self._owed)
        return used

    def owes(self, frame: Frame) -> bool:
        """Whether a ShareFetch comes from somebody who has to wait; this connection then does."""
        if not frame.is_share_fetch or not self._throttles.has(FETCHED):
            return False
        seconds = self._throttles.owed(FETCHED, *self._who(frame))
        self._wait(seconds)
        return seconds > 0

    def mutates(self, frame: Frame) -> Mutations | None:
        """The quota of a request that adds or deletes partitions. None: it may."""
        self._mutations = None
        if self._throttles.has(MUTATED):
            self._mutations = Mutations(self._throttles, *self._who(frame))
        return self._mutations

    def answered(self, frame: Frame, answer: Callable[[], Buffers], seconds: float = 0.0) -> Buffers:
        """The response that ``answer`` makes, with the time to wait: ``seconds`` at least."""
        if not self._throttles:
            return answer()
        self._owed = 0.0
        if self._throttles.has(REQUESTED):
            with running_time() as spent:
                response = answer()
            seconds = max(seconds, self._use(REQUESTED, frame, 100.0 * spent.seconds))
        else:
            response = answer()
        if frame.is_fetch:
            seconds = max(seconds, self._owed)
        elif frame.is_share_fetch:
            seconds = max(seconds, self._use(FETCHED, frame, sum(map(len, response))))
        elif self._mutations is not None:
            self._wait(self._mutations.seconds)
            seconds, self._mutations = max(seconds, self._mutations.seconds), None
        return with_throttle_time(frame, response, seconds) if seconds else response

    def _use(self, key: str, frame: Frame, amount: float) -> float:
        seconds = self._throttles.use(key, *self._who(frame), amount)
        self._wait(seconds)
        return seconds

    def _wait(self, seconds: float) -> None:
        if seconds:
            self._until = max(self._until, self._throttles.clock() + seconds)

    def _who(self, frame: Frame) -> tuple[str, str]:
        return self._peer.principal.removeprefix(f"{USER}:"), frame.header.client_id or ""


@contextmanager
def _at_most(room: Room, most: float) -> Iterator[int]:
    with room() as share:
        yield int(min(share, most))


def with_throttle_time(frame: Frame, response: Buffers, seconds: float) -> Buffers:
    """The response with so much in its ``throttle_time_ms``, as far as it has that field."""
    api, version = frame.api, frame.header.version
    if api is None or not api.first <= version <= api.last or len(response) <= _FIRST_OF_BODY:
        return response
    position = _position(api, version)
    if position is None:
        return response
    number = _FIRST_OF_BODY if position >= 0 else len(response) - 1
    octets = bytearray(response[number])
    _INT32.pack_into(octets, position % len(octets), min(int(seconds * 1000) + 1, _MOST))
    return [*response[:number], octets, *response[number + 1 :]]


@lru_cache(maxsize=1024)
def _position(api: Api, version: int) -> int | None:
    """Where the time is in the body of a response; below 0: from its end."""
    if api.home is None:
        return 0
    fields = [one for one in api.response._struct._fields if one.for_version_q(version) and one._tag is None]
    names = [one.name for one in fields]
    if "throttle_time_ms" not in names or api.key == API_VERSIONS:  # which ends with other things
        return None
    before = names[: names.index("throttle_time_ms")]
    if before in ([], ["error_code"]):
        return 2 * len(before)
    assert api.key == PRODUCE or names[-1] == "throttle_time_ms", api.name
    return -5 if api.response.flexible_version_q(version) else -4
