"""Questions to a store, the answers that its content gives, and questions that wait for one."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from dafka.overlay.limits import MOST_REQUESTS
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import BackendFailure, TypeClash
from dafka.overlay.stores.outputs import Answered
from dafka.overlay.values import Timespan, Value
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import PutUnique, Query
from dafka.overlay.wire.primitives import EntityId


class Operation(IntEnum):
    """The numbers are those on the wire."""

    HELLO = 0
    """Is there a master? No arguments, no answer but that."""

    GET = 1
    """Of a key."""

    INDEX = 2
    """Of a key and an index: get_index_from_value."""

    EXISTS = 3
    """Of a key."""

    KEYS = 4
    """From a position on, 0 at first. The answer is the next position, 0 at the end, and a vector of keys."""

    PUT_UNIQUE = 5
    """Of a key, a value and a timespan of expiry or none."""


def answer(content: Content, query: Query) -> Answered:
    """The content's answers to GET, INDEX and EXISTS."""
    request, operation, arguments = query
    try:
        match operation, arguments:
            case Operation.GET, (key,):
                return Answered(request, content.get(key))
            case Operation.INDEX, (key, index):
                return Answered(request, content.get_index_from_value(key, index))
            case Operation.EXISTS, (key,):
                return Answered(request, content.exists(key))
    except KeyError:
        return Answered(request, None, ErrorCode.NO_SUCH_KEY)
    except TypeClash:
        return Answered(request, None, ErrorCode.TYPE_CLASH)
    return Answered(request, None, ErrorCode.INVALID_MESSAGE)


def put_unique_of(query: Query, caller: EntityId) -> PutUnique | None:
    """The action that PUT_UNIQUE is; None if its arguments are not those of one."""
    match query.arguments:
        case (key, value, None | Timespan() as expiry):
            return PutUnique(key, value, expiry, caller, query.request, caller)
    return None


def is_write(operation: int) -> bool:
    """Whether a query changes the content."""
    return operation == Operation.PUT_UNIQUE


def position_of(arguments: Value) -> int:
    """The position that KEYS begins at; -1 if the arguments are not those of KEYS."""
    match arguments:
        case (int() as position,) if type(position) is not bool and position >= 0:
            return int(position)
    return -1


class Pending:
    """A question: until which tick it waits, when it was asked last, and what is known of a long answer."""

    __slots__ = ("asked", "found", "position", "query", "until")

    def __init__(self, query: Query, until: int, asked: int) -> None:
        self.query = query
        self.until = until
        self.asked = asked
        self.position = 0
        self.found: list[Value] = []


class Requests:
    """Questions that wait for an answer, each for a while."""

    def __init__(self) -> None:
        self.ticks = 0
        self._pending: dict[int, Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[Pending]:
        return iter(list(self._pending.values()))

    def get(self, request: int) -> Pending | None:
        return self._pending.get(request)

    def add(self, query: Query, ticks: int) -> Pending:
        """Raises :class:`BackendFailure` if there are too many already."""
        if len(self._pending) >= MOST_REQUESTS:
            text = f"{MOST_REQUESTS} questions wait for an answer, and no more are taken"
            raise BackendFailure(ErrorCode.BACKEND_FAILURE, text)
        pending = self._pending[query.request] = Pending(query, self.ticks + ticks, self.ticks)
        return pending

    def pop(self, request: int) -> Pending | None:
        return self._pending.pop(request, None)

    def pop_reads(self) -> list[Query]:
        """The requests that change nothing, which wait no more."""
        reads = [one.query for one in self._pending.values() if not is_write(one.query.operation)]
        for query in reads:
            del self._pending[query.request]
        return reads

    def tick(self) -> list[Query]:
        """To be called ten times a second: the questions whose time is over, which wait no more."""
        self.ticks += 1
        over = [one.query for one in self._pending.values() if one.until <= self.ticks]
        for query in over:
            del self._pending[query.request]
        return over
