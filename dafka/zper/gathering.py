"""Messages that clients have written to one partition and no flush has taken yet; and their answers.

A state machine without I/O; the time is given to it. Messages gather until a flush is due:

- ``flush_messages`` of them are there, or more octets than a flush should have,
- ``flush_interval`` has passed since the first of them came,
- or one of them wants an answer of its own (mode 2): then at once, with all that is there.

A flush takes everything. After its commit the clients are answered: in mode 2 for each message with the last
frame of that message; in mode 1 once for each flush, with the last frame of the last message that this
client has in it (the Java server sends the last frame of the flush, which with one client is the same); in
mode 0 not at all. The delimiter of a REQ socket goes before the answer, if there was one before the message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from dafka.zper.envelope import answer
from dafka.zper.identity import Mode
from dafka.zper.singles import Frames, Singles

MESSAGE_OCTETS = 160
"""What a message takes in memory beside its payload, about; a frame more takes half of it."""

ClientT = TypeVar("ClientT")


class Run(NamedTuple):
    """Messages of one client that came together: all of them with the delimiter (taken off), or none."""

    client: Any
    mode: Mode
    delimited: bool
    messages: Sequence[Frames]
    timestamp: int  # ms since 1970
    copied: bool = False  # from another node, and not for this one's replicas

    def octets(self) -> int:
        """The memory of these messages, about."""
        if isinstance(self.messages, Singles):
            return sum(map(len, self.messages.frames)) + MESSAGE_OCTETS * len(self.messages)
        frames = list(chain.from_iterable(self.messages))
        beside = MESSAGE_OCTETS * (len(self.messages) + len(frames)) // 2
        return sum(map(len, frames)) + beside


@dataclass
class Bulk(Generic[ClientT]):
    """The messages of one flush: runs in the order in which they came."""

    runs: list[Run] = field(default_factory=list)
    messages: int = 0
    octets: int = 0

    def add(self, run: Run, octets: int) -> None:
        """Add a run that takes so many octets in memory."""
        self.runs.append(run)
        self.messages += len(run.messages)
        self.octets += octets

    def without(self, refused: Collection[int]) -> Bulk[ClientT]:
        """The same without the messages that have these places in it."""
        rest: Bulk[ClientT] = Bulk()
        place = count()
        for run in self.runs:
            kept = [message for message in run.messages if next(place) not in refused]
            if kept:
                rest.add(run._replace(messages=kept), 0)
        return rest

    def wants(self, mode: Mode) -> bool:
        """Whether a client of that mode has messages in it."""
        return any(run.mode == mode for run in self.runs)

    def answers(self, *modes: Mode) -> Iterator[tuple[ClientT, list[Frames]]]:
        """Answers to clients of these modes (none: of all), those to each client in the order of its
        messages, when all is committed."""
        last: dict[ClientT, Frames] = {}
        for run in self.runs:
            if modes and run.mode not in modes:
                continue
            if run.mode == Mode.EVERY_WRITE:
                yield run.client, [answer(run.delimited, message[-1:]) for message in run.messages]
            elif run.mode == Mode.AT_FLUSH:
                last[run.client] = answer(run.delimited, run.messages[-1][-1:])
        for client, frames in last.items():
            yield client, [frames]


class Gathering(Generic[ClientT]):
    """Messages that wait for the next flush. Times are in seconds, of any clock that only goes forward."""

    def __init__(self, flush_messages: int, flush_interval: float, flush_octets: int) -> None:
        self._flush_messages = flush_messages
        self._flush_interval = flush_interval
        self._flush_octets = flush_octets
        self._bulk: Bulk[ClientT] = Bulk()
        self._due = inf

    @property
    def messages(self) -> int:
        """How many there are."""
        return self._bulk.messages

    @property
    def octets(self) -> int:
        """The memory of these messages, about."""
        return self._bulk.octets

    def add(self, run: Run, now: float) -> int:
        """Add a run of at least one message; the octets that it takes in memory."""
        octets = run.octets()
        self._bulk.add(run, octets)
        full = self._bulk.messages >= self._flush_messages or self._bulk.octets >= self._flush_octets
        wait = 0.0 if full or run.mode == Mode.EVERY_WRITE else self._flush_interval
        self._due = min(self._due, now + wait)
        return octets

    def wait(self, now: float) -> float:
        """Seconds until a flush is due; 0: it is, infinite: there is nothing to flush."""
        return max(self._due - now, 0.0)

    def take(self) -> Bulk[ClientT]:
        """Take everything that waits, to flush it now."""
        bulk, self._bulk, self._due = self._bulk, Bulk(), inf
        return bulk
