"""One link, at the site that the topics are of: it decides what to read next, and what may be sent.

The link's channel sees to it that every event arrives, in order. The queue for that is bounded: when so
many octets are not acknowledged, nothing more is read. Nothing else is kept here: a receiver that loses the
link asks for another one, from the positions that it has written, and the log is read again from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from dafka.overlay.bridge.limits import EVENT_BESIDE, LINK_SILENT_TICKS, WINDOW_OCTETS
from dafka.overlay.bridge.sharing.link_messages import Attach, Batches, TopicPartition
from dafka.overlay.channels.messages import FromConsumer, FromProducer
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Output, Producer, Unicast

_RECEIVER = ""  # the one consumer of the channel


class Outgoing:
    """The link that ``attach`` has asked for."""

    def __init__(self, attach: Attach, window: int = WINDOW_OCTETS) -> None:
        self.link = attach.link
        self.site = attach.site
        self.positions: dict[TopicPartition, int] = {}
        """The next offset to be read of each partition that is shared."""
        self.is_attached = False
        self.ended = False
        """The receiver has gone: nothing more is to be sent."""
        self._wanted = attach.positions
        self._producer: Producer[str] = Producer(silent_ticks=LINK_SILENT_TICKS)
        self._window = window
        self._sizes: deque[int] = deque()  # of the events that are not acknowledged

    @property
    def in_flight(self) -> int:
        """Octets that are not acknowledged."""
        return sum(self._sizes)

    @property
    def has_room(self) -> bool:
        """Whether more is to be read now."""
        attached = self.is_attached and not self.ended
        return attached and not self._producer.is_full and self.in_flight < self._window

    def repeat(self) -> list[FromProducer]:
        """The receiver asks for the link (again)."""
        return self._carry(self._producer.add(_RECEIVER))

    def share(self, partitions: Mapping[str, int]) -> None:
        """These topics, with so many partitions each, are shared from now on, and no others."""
        wanted = {(topic, number) for topic, count in partitions.items() for number in range(count)}
        for key in self.positions.keys() - wanted:
            del self.positions[key]
        for key in wanted - self.positions.keys():
            self.positions[key] = self._wanted.get(key, 0)

    def send(self, content: Batches) -> list[FromProducer]:
        """Batches read of a partition. The position moves behind them, also if there is nothing to send."""
        key = content.topic, content.partition
        if key not in self.positions or self.ended:
            return []
        self.positions[key] = content.next
        if not content.batches:
            return []
        self._sizes.append(EVENT_BESIDE + content.octets)
        return self._carry(self._producer.produce(content))

    def receive(self, message: FromConsumer) -> list[FromProducer]:
        """A message of the receiver."""
        return self._carry(self._producer.receive(_RECEIVER, message))

    def tick(self) -> list[FromProducer]:
        """To be called ten times a second."""
        return self._carry(self._producer.tick())

    def _carry(self, steps: Iterable[Output]) -> list[FromProducer]:
        messages: list[FromProducer] = []
        for step in steps:
            match step:
                case Broadcast(message) | Unicast(_, message):
                    messages.append(message)
                case Attached():
                    self.is_attached = True
                case Dropped():
                    self.ended = True
        while len(self._sizes) > self._producer.kept:
            self._sizes.popleft()
        return messages
