"""The producer of a channel: numbers events, and keeps each until every consumer has acknowledged it.

A consumer is added with the number of the last event, tells by its first acknowledgement that it has heard
that, and acknowledges every few ticks from then on, also when there is nothing new; so the producer knows who
is still there. One that is silent for too long, or asks in a way that cannot be understood, is dropped.

Numbers begin at 1, and the first event has 2, because 0 stands for "nothing acknowledged" and for the wish
for a handshake. Events are counted only while there are consumers: without any there is nobody to keep them
for.
"""

from __future__ import annotations

from collections import deque
from itertools import islice, pairwise
from typing import Any, Generic, NamedTuple, TypeVar

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
from dafka.overlay.limits import (
    AT_ONCE,
    HEARTBEAT_TICKS,
    KEPT_OCTETS,
    MOST_CONSUMERS,
    MOST_KEPT,
    MOST_RESENT,
    SILENT_TICKS,
)
from dafka.overlay.wire.codes import ErrorCode

Handle = TypeVar("Handle")


class Broadcast(NamedTuple):
    """Send to all consumers."""

    message: FromProducer


class Unicast(NamedTuple):
    """Send to one consumer."""

    consumer: Any
    message: FromProducer


class Attached(NamedTuple):
    """The consumer has acknowledged the handshake."""

    consumer: Any


class Dropped(NamedTuple):
    """The consumer was removed, and why. ``left`` is what not everybody had acknowledged just before."""

    consumer: Any
    reason: ErrorCode
    left: list[Any]


Output = Broadcast | Unicast | Attached | Dropped


class _Consumer:
    __slots__ = ("acknowledged", "heard", "offset")

    def __init__(self, offset: int, tick: int) -> None:
        self.offset = offset
        self.acknowledged = 0
        self.heard = tick


class Producer(Generic[Handle]):
    """``Handle`` is whatever names a consumer.

    ``repeats_handshake``: until it is acknowledged; not needed where consumers ask for it until it comes.
    """

    def __init__(self, repeats_handshake: bool = True, silent_ticks: int = SILENT_TICKS) -> None:
        self._repeats_handshake = repeats_handshake
        self._silent_ticks = silent_ticks
        self.sequence = 1
        """Of the last event. They count from the first consumer on, and then also while there is none: so a
        consumer that was dropped, and does not know, can see that it misses something."""
        self._counts = False
        self._events: deque[Event] = deque()
        self._sizes: deque[int] = deque()  # of these, in octets
        self._octets = 0
        self._consumers: dict[Handle, _Consumer] = {}
        self._ticks = 0
        self._sent = 0  # in which tick something went to all

    @property
    def consumers(self) -> list[Handle]:
        return list(self._consumers)

    @property
    def is_full(self) -> bool:
        """No further event is taken before some consumer has acknowledged, or is dropped."""
        return len(self._events) >= MOST_KEPT or self._octets >= KEPT_OCTETS

    @property
    def is_idle(self) -> bool:
        """Every consumer has acknowledged its handshake and the last event."""
        return all(one.acknowledged == self.sequence for one in self._consumers.values())

    @property
    def kept(self) -> int:
        """Events that not everybody has acknowledged."""
        return len(self._events)

    @property
    def octets(self) -> int:
        """The memory of these events."""
        return self._octets

    @property
    def unacknowledged(self) -> list[Any]:
        """The contents of these events."""
        return [event.content for event in self._events]

    def produce(self, content: Any, octets: int = 0) -> list[Output]:
        """The next event, which takes so many octets. Not to be called while the producer :attr:`is_full`."""
        self.sequence += self._counts
        if not self._consumers:
            return []
        assert not self.is_full
        event = Event(self.sequence, content)
        self._events.append(event)
        self._sizes.append(octets)
        self._octets += octets
        self._sent = self._ticks
        return [Broadcast(event)]

    def add(self, consumer: Handle) -> list[Output]:
        """A consumer that wants all events from now on. To one that is known the handshake is repeated."""
        known = self._consumers.get(consumer)
        if known is None:
            if len(self._consumers) >= MOST_CONSUMERS:
                return [Dropped(consumer, ErrorCode.UNSPECIFIED, [])]
            known = self._consumers[consumer] = _Consumer(self.sequence, self._ticks)
            self._counts = True
        return [Unicast(consumer, Handshake(known.offset, HEARTBEAT_TICKS))]

    def hand_over(self, consumer: Handle, successor: Handle) -> list[Output]:
        """``successor`` goes on where ``consumer`` is, and is sent some of what that lacks."""
        known = self._consumers.pop(consumer)
        offset = known.acknowledged or known.offset
        self._consumers[successor] = _Consumer(offset, self._ticks)
        unicast = [Unicast(successor, event) for event in islice(self._events, AT_ONCE)]
        return [Unicast(successor, Handshake(offset, HEARTBEAT_TICKS)), *unicast]

    def remove(self, consumer: Handle) -> None:
        """A consumer has said that it goes."""
        if self._consumers.pop(consumer, None) is not None:
            self._let_go()

    def drop_slowest(self) -> list[Output]:
        """Give up the consumers that have acknowledged least, for which most is kept."""
        least = min([one.acknowledged or one.offset for one in self._consumers.values()], default=0)
        slowest = [name for name, one in self._consumers.items() if (one.acknowledged or one.offset) == least]
        return [output for name in slowest for output in self._drop(name, ErrorCode.CONNECTION_TIMEOUT)]

    def receive(self, consumer: Handle, message: FromConsumer) -> list[Output]:
        """A message of a consumer, which may be unknown."""
        known = self._consumers.get(consumer)
        if known is None:
            return self._hear_unknown(consumer, message)
        known.heard = self._ticks
        if isinstance(message, CumulativeAck):
            return self._acknowledge(consumer, known, message.sequence)
        return self._hear_nack(consumer, known, message)

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        self._ticks += 1
        outputs: list[Output] = []
        for consumer, known in list(self._consumers.items()):
            if self._ticks - known.heard >= self._silent_ticks:
                outputs += self._drop(consumer, ErrorCode.CONNECTION_TIMEOUT)
        if self._consumers and self._ticks - self._sent >= HEARTBEAT_TICKS:
            self._sent = self._ticks
            for consumer, known in self._consumers.items():
                if self._repeats_handshake and not known.acknowledged:
                    outputs.append(Unicast(consumer, Handshake(known.offset, HEARTBEAT_TICKS)))
            outputs.append(Broadcast(Heartbeat(self.sequence)))
        return outputs

    def _acknowledge(self, consumer: Handle, known: _Consumer, sequence: int) -> list[Output]:
        if not known.offset <= sequence <= self.sequence:
            return []
        first = known.acknowledged == 0
        if sequence > known.acknowledged:
            known.acknowledged = sequence
            self._let_go()
        return [Attached(consumer)] if first else []

    def _hear_unknown(self, consumer: Handle, message: FromConsumer) -> list[Output]:
        """A consumer that was dropped, and does not know: its next event cannot be had any more."""
        if isinstance(message, CumulativeAck):
            return [Unicast(consumer, RetransmitFailed(message.sequence + 1))]
        if message.sequences[:1] == (0,):
            return self.add(consumer)
        return [Unicast(consumer, RetransmitFailed(sequence)) for sequence in message.sequences[:MOST_RESENT]]

    def _hear_nack(self, consumer: Handle, known: _Consumer, nack: Nack) -> list[Output]:
        wanted = nack.sequences
        if not wanted or any(following <= one for one, following in pairwise(wanted)):
            return self._drop(consumer, ErrorCode.INVALID_MESSAGE)
        if wanted[0] == 0:
            return self.add(consumer)
        outputs = self._acknowledge(consumer, known, wanted[0] - 1)
        first = self._events[0].sequence if self._events else self.sequence + 1
        for sequence in wanted[:MOST_RESENT]:
            if first <= sequence <= self.sequence:
                outputs.append(Unicast(consumer, self._events[sequence - first]))
            else:
                outputs.append(Unicast(consumer, RetransmitFailed(sequence)))
        return outputs

    def _drop(self, consumer: Handle, reason: ErrorCode) -> list[Output]:
        left = self.unacknowledged
        self.remove(consumer)
        return [Dropped(consumer, reason, left)]

    def _let_go(self) -> None:
        """Forget events that everybody has."""
        least = min(
            [one.acknowledged or one.offset for one in self._consumers.values()], default=self.sequence
        )
        while self._events and self._events[0].sequence <= least:
            self._events.popleft()
            self._octets -= self._sizes.popleft()
