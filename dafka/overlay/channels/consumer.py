"""A consumer of a channel: takes the events of one producer in order, each once.

Until the handshake comes it asks for it; events that arrive earlier are kept. Missing events (a gap, or a
heartbeat that tells of more) are asked for when there is no progress for two ticks, over and over. An event
that the producer no longer has is reported in its place. Unlike libbroker's clones, a consumer takes
heartbeats that are for everybody, so that it misses no last event, and notices when its producer is gone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    FromConsumer,
    FromProducer,
    Handshake,
    Heartbeat,
    Nack,
    RetransmitFailed,
)
from dafka.overlay.limits import HEARTBEAT_TICKS, MOST_AHEAD, MOST_NACKED, NACK_TICKS, SILENT_TICKS
from dafka.overlay.wire.codes import ErrorCode


class Reply(NamedTuple):
    """Send to the producer."""

    message: FromConsumer


class Consume(NamedTuple):
    """The next event."""

    content: Any


class Lost(NamedTuple):
    """The next event is one that cannot be had any more."""

    sequence: int


class Closed(NamedTuple):
    """Nothing more comes, and why."""

    reason: ErrorCode


Output = Reply | Consume | Lost | Closed


class Consumer:
    """``asks_for_handshake``: whether it is this side that begins, as clones do and masters do not."""

    def __init__(self, asks_for_handshake: bool = True, silent_ticks: int = SILENT_TICKS) -> None:
        self._silent_ticks = silent_ticks
        self.next = 0
        """The number of the event that is waited for; 0 before the handshake."""
        self._asks = asks_for_handshake
        self._last = 0  # the highest number that is known of
        self._ahead: dict[int, Event | RetransmitFailed] = {}
        self._interval = HEARTBEAT_TICKS
        self._ticks = 0
        self._heard = 0
        self._acknowledged = 0  # in which tick
        self._told = 0  # which event
        self._progress = -NACK_TICKS  # in which tick there was some, or was asked; so the first tick asks
        self._closed = False

    @property
    def is_attached(self) -> bool:
        return self.next > 0

    @property
    def is_idle(self) -> bool:
        """Attached, and nothing is known to be missing."""
        return self.is_attached and not self._ahead and self.next > self._last

    @property
    def is_silent(self) -> bool:
        """Nothing was heard of the producer for a long time."""
        return self._ticks - self._heard >= SILENT_TICKS

    def receive(self, message: FromProducer) -> list[Output]:
        """A message of the producer, for everybody or for this consumer."""
        if self._closed:
            return []
        self._heard = self._ticks
        if isinstance(message, Handshake):
            return self._attach(message)
        if isinstance(message, Heartbeat):
            self._note(message.sequence)
            return []
        self._note(message.sequence if isinstance(message, Event) else 0)
        if message.sequence < self.next or message.sequence in self._ahead:
            return []
        if self.next and message.sequence == self.next and not self._ahead:
            return [self._take(message)]
        if not self.next or message.sequence <= self._furthest():
            self._keep(message)
        return self._catch_up() if self.next else []

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        if self._closed:
            return []
        self._ticks += 1
        if self.next and self._ticks - self._heard >= self._silent_ticks:
            self._closed = True
            return [Closed(ErrorCode.CONNECTION_TIMEOUT)]
        outputs: list[Output] = []
        if self._ticks - self._progress >= NACK_TICKS and (missing := self._missing()):
            self._progress = self._ticks
            outputs.append(Reply(Nack(missing)))
        # New events are acknowledged soon, for senders that wait until all consumers have them.
        if self.next and (self._ticks - self._acknowledged >= self._interval or self.next - 1 > self._told):
            outputs.append(self._acknowledge())
        return outputs

    def _attach(self, handshake: Handshake) -> list[Output]:
        if self.next:  # repeated: the acknowledgement is lost, or is on its way
            return [self._acknowledge()]
        self.next = handshake.offset + 1
        self._last = max([handshake.offset, *self._ahead])
        self._interval = max(1, handshake.heartbeat_interval)
        self._progress = self._ticks
        self._ahead = {number: one for number, one in self._ahead.items() if number >= self.next}
        return [*self._catch_up(), self._acknowledge()]

    def _note(self, sequence: int) -> None:
        if self.next and sequence > self._last:
            if self._last < self.next:
                self._progress = self._ticks  # missing events may only be late
            self._last = sequence

    def _furthest(self) -> int:
        return self.next + MOST_AHEAD

    def _keep(self, message: Event | RetransmitFailed) -> None:
        if len(self._ahead) < MOST_AHEAD or message.sequence == self.next:
            self._ahead[message.sequence] = message

    def _catch_up(self) -> list[Output]:
        outputs: list[Output] = []
        while (message := self._ahead.pop(self.next, None)) is not None:
            outputs.append(self._take(message))
        return outputs

    def _take(self, message: Event | RetransmitFailed) -> Output:
        self.next += 1
        self._progress = self._ticks
        return Consume(message.content) if isinstance(message, Event) else Lost(message.sequence)

    def _missing(self) -> tuple[int, ...]:
        if not self.next:
            return (0,) if self._asks else ()
        missing: list[int] = []
        for number in range(self.next, min(self._last, self._furthest()) + 1):
            if number not in self._ahead:
                missing.append(number)
                if len(missing) == MOST_NACKED:
                    break
        return tuple(missing)

    def _acknowledge(self) -> Reply:
        self._acknowledged = self._ticks
        self._told = self.next - 1
        return Reply(CumulativeAck(self.next - 1))
