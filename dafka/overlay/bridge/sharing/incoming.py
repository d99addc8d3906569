"""One link, at the site that wants the topics of another one.

The link begins with the positions that are written here. Events are to be written in their order;
acknowledged to the other site is what was written, so that never more than a window waits. When the channel
has lost something for good, or the other site is silent or another process, a new link begins, again with
what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from dafka.overlay.bridge.limits import (
    EVENT_BESIDE,
    HELD_OCTETS,
    HELLO_SECONDS,
    LINK_SILENT_TICKS,
    SILENT_SECONDS,
)
from dafka.overlay.bridge.sharing.link_messages import Attach, Batches, OfLink, TopicPartition
from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Output, Reply
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    FromProducer,
    Handshake,
    Heartbeat,
    RetransmitFailed,
)


class Tell(NamedTuple):
    """Send to the bridge of the other site."""

    peer: bytes
    message: Attach | OfLink


class Write(NamedTuple):
    """Write these batches, and say so with the ticket."""

    ticket: tuple[int, int]
    content: Batches


Step = Tell | Write


class Incoming:
    """The records from ``site``.

    ``me``: the name of this site. ``positions``: the ends of the copies here, by the other site's topics and
    its offsets; called for each new link. ``new_link`` gives numbers that were not used before.
    """

    def __init__(
        self,
        me: str,
        site: str,
        positions: Callable[[], Mapping[TopicPartition, int]],
        new_link: Callable[[], int],
    ) -> None:
        self.site = site
        self.peer: bytes | None = None
        """The bridge of the other site."""
        self._me = me
        self._positions = positions
        self._new_link = new_link
        self._heard = 0.0
        self._asked = 0.0
        self._begin()

    @property
    def is_attached(self) -> bool:
        return self._consumer.is_attached

    def greeted(self, now: float, peer: bytes, reachable: bool) -> list[Step]:
        """A bridge says that it is that site's. ``reachable``: whether there is a path to the known one."""
        if self.peer is not None and peer != self.peer and reachable and now - self._heard < SILENT_SECONDS:
            return []
        self._heard = now
        if peer == self.peer:
            return []
        self.peer = peer
        return self._ask_anew(now)

    def receive(self, now: float, peer: bytes, link: int, message: FromProducer) -> list[Step]:
        """A message of the link's channel."""
        if peer != self.peer or link != self._link:
            return []
        self._heard = now
        if isinstance(message, Event) and not self._has_room(message):
            return []
        if isinstance(message, Handshake) and not self._consumer.is_attached:
            self._written = message.offset
        return self._carry(now, self._consumer.receive(message))

    def written(self, ticket: tuple[int, int]) -> list[Step]:
        """The records of the ticket were written."""
        if not self.is_current(ticket) or self.peer is None:
            return []
        for sequence in range(self._written + 1, ticket[1] + 1):
            self.held -= self._sizes.pop(sequence, 0)
        self._written = max(self._written, ticket[1])
        return [Tell(self.peer, OfLink(self._link, CumulativeAck(self._written)))]

    def is_current(self, ticket: tuple[int, int]) -> bool:
        """Whether it is of this link: records of an earlier one will come again."""
        return ticket[0] == self._link

    def is_from(self, peer: bytes, link: int) -> bool:
        """Whether a message beside the channel is of this link."""
        return peer == self.peer and link == self._link

    def tick(self, now: float) -> list[Step]:
        """To be called ten times a second."""
        if self.peer is None:
            return []
        steps = self._carry(now, self._consumer.tick())
        if not self._consumer.is_attached and now - self._asked >= HELLO_SECONDS:
            steps += self._ask(now)
        return steps

    def _has_room(self, event: Event) -> bool:
        """Notes the size of an event. A site that keeps to its window always finds room; from any other one
        events are left out, and asked for again."""
        if event.sequence in self._sizes or event.sequence < self._consumer.next:
            return True  # it is known, and will be passed over
        size = EVENT_BESIDE + event.content.octets
        if self.held + size > HELD_OCTETS and self.held:
            return False
        self._sizes[event.sequence] = size
        self.held += size
        return True

    def _begin(self) -> None:
        self._link = self._new_link()
        self._consumer = Consumer(asks_for_handshake=False, silent_ticks=LINK_SILENT_TICKS)
        self._written = 0
        self._sizes: dict[int, int] = {}
        self.held = 0
        """Octets that have come along the link and are not written."""

    def _ask_anew(self, now: float) -> list[Step]:
        self._begin()
        return self._ask(now)

    def _ask(self, now: float) -> list[Step]:
        self._asked = now
        assert self.peer is not None
        return [Tell(self.peer, Attach(self._link, self._me, self._positions()))]

    def _carry(self, now: float, outputs: Iterable[Output]) -> list[Step]:
        steps: list[Step] = []
        outputs = list(outputs)
        assert self.peer is not None
        number = self._consumer.next - sum(isinstance(one, (Consume, Lost)) for one in outputs)
        for output in outputs:
            match output:
                case Consume(content):
                    steps.append(Write((self._link, number), content))
                    number += 1
                case Reply(CumulativeAck()):
                    steps.append(Tell(self.peer, OfLink(self._link, CumulativeAck(self._written))))
                case Reply(message):
                    steps.append(Tell(self.peer, OfLink(self._link, message)))
                case Lost() | Closed():
                    return steps + self._ask_anew(now)
        return steps


FROM_SOURCE = (Handshake, Event, RetransmitFailed, Heartbeat)
"""The messages of a channel that are for an :class:`Incoming`; the others are for the other end."""
