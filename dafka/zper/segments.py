"""Segments: the positions that OFFSET lists, and where a FETCH ends at the latest.

The Java server keeps a topic in files of ``segment_size`` octets, and tells its clients where these begin.
Here a segment is a matter of numbers only: a message belongs to the segment ``position // segment_size``,
position being that of its first octet. So segments never change, also when the front is dropped. A segment
begins with a message, and is longer than ``segment_size`` by less than one message; one in which no message
begins does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

KNOWN = 16  # segments whose bounds are remembered
LISTED = 1000  # positions that one OFFSET is answered with at most: the newest ones


class Messages(Protocol):
    """Where the messages of a partition are. Positions that were once told never change; both methods may
    read the log, and wait."""

    @property
    def first(self) -> int:
        """The position of the first message that exists; ``end`` if there is none."""

    @property
    def end(self) -> int:
        """The position behind the last message."""

    def bounds(self, position: int) -> tuple[int, int]:
        """The first octet of the message that has an octet at ``position``, and the octet behind it."""


class Segment(NamedTuple):
    """The octets from ``start`` up to ``stop``, which is the messages' end if it is the last segment."""

    number: int
    start: int
    stop: int


class Segments:
    """The segments of one partition."""

    def __init__(self, messages: Messages, size: int) -> None:
        self._messages = messages
        self._size = size
        self._known: dict[int, Segment] = {}  # by number; with the stop as it was then

    def earliest(self) -> list[int]:
        """The answer of OFFSET for EARLIEST: the first position."""
        return [self._messages.first]

    def latest(self) -> list[int]:
        """The answer of OFFSET for LATEST: the start of the last segment, and the end."""
        return self.before(None, 1)

    def before(self, position: int | None, entries: int | None) -> list[int]:
        """The starts of the segments that end at or before a position, and the end if the last segment is
        among them; None: of all segments. Not more than the newest ``entries`` starts."""
        end = self._messages.end
        if position is None:
            position = end
        if self._messages.first >= end:
            return [end, end] if position >= end else []
        starts: list[int] = []
        for segment in self._newest_first(min(position, end)):
            if segment.stop <= position:
                starts.append(segment.start)
                if len(starts) == min(entries or LISTED, LISTED):
                    break
        starts.reverse()
        return [*starts, end] if position >= end else starts

    def stop(self, position: int) -> int:
        """Where the segment with the octet at ``position`` ends; first <= position < end."""
        return self._with(position).stop

    def _newest_first(self, position: int) -> Iterator[Segment]:
        """The segment with the octet before ``position``, and those before it."""
        while position > self._messages.first:
            segment = self._with(position - 1)
            yield segment
            position = segment.start

    def _with(self, position: int) -> Segment:
        for segment in self._known.values():
            # Behind its stop it has grown: a message that begins before its number ends belongs to it.
            if segment.start <= position < max(segment.stop, (segment.number + 1) * self._size):
                return self._numbered(segment.number)
            if position == segment.stop:  # a message begins there: most clients read on where a segment ends
                return self._numbered(position // self._size)
        return self._numbered(self._messages.bounds(position)[0] // self._size)

    def _numbered(self, number: int) -> Segment:
        first, end = self._messages.first, self._messages.end
        low, high = number * self._size, (number + 1) * self._size
        known = self._known.pop(number, None)
        start = known.start if known else first if low <= first else self._at_or_behind(low)
        if high > end:
            stop = end
        elif known and known.stop >= high:
            stop = known.stop
        else:
            stop = self._at_or_behind(high)
        self._known[number] = segment = Segment(number, start, stop)
        if len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]
        return segment._replace(start=max(start, first))

    def _at_or_behind(self, position: int) -> int:
        """The first octet of the first message from ``position`` on."""
        if position >= self._messages.end:
            return self._messages.end
        start, stop = self._messages.bounds(position)
        return start if start == position else stop
