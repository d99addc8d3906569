"""Writes of a clone or a proxy: actions on their way to the master.

They wait while there is no master. Each is kept until the master has acknowledged it, and a new master is
sent what the one before has not: with the same numbers, so that a master that comes back with what it had
applies nothing twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dafka.overlay.channels import producer as producing
from dafka.overlay.channels.messages import Event, FromConsumer, Heartbeat, Nack
from dafka.overlay.channels.producer import Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import AT_ONCE, KEPT_OCTETS, MOST_KEPT, NEVER_SILENT
from dafka.overlay.stores.master import Action
from dafka.overlay.stores.outputs import Output, Publish, master_topic, to_command
from dafka.overlay.values import encode
from dafka.overlay.wire.commands import AttachWriter, Clear, Erase, Expire, PutUniqueResult
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


class Writer:
    """``new_entity`` gives another id of this endpoint at each call."""

    def __init__(self, name: str, new_entity: Callable[[], EntityId]) -> None:
        self.master: EntityId | None = None
        """The master that it writes to; None: writes wait."""
        self.entity = NO_ENTITY
        """The id under which it writes."""
        self._topic = master_topic(name)
        self._new_entity = new_entity
        self._producer: Producer[EntityId] | None = None
        self._queued: deque[Action] = deque()
        self._octets = 0  # of these

    @property
    def is_idle(self) -> bool:
        """Whether the master has acknowledged everything."""
        return not self._queued and (self._producer is None or self._producer.is_idle)

    @property
    def is_full(self) -> bool:
        """Nothing is to be written before the master has acknowledged something."""
        kept, octets = len(self._queued), self._octets
        if self._producer is not None:
            kept, octets = kept + self._producer.kept, octets + self._producer.octets
        return kept >= MOST_KEPT or octets >= KEPT_OCTETS

    @property
    def waiting(self) -> list[Action]:
        """Writes that were not sent to any master yet."""
        return list(self._queued)

    def write(self, action: Action) -> list[Output]:
        self._queued.append(action)
        self._octets += _octets_of(action)
        return self.flush()

    def follow(self, master: EntityId) -> list[Output]:
        """This is the master from now on."""
        before, self.master = self.master, master
        outputs: list[Output] = []
        if self._producer is not None and before != master:
            assert before is not None
            outputs = self._carry(self._producer.hand_over(before, master))
        return outputs

    def receive(self, message: FromConsumer) -> list[Output]:
        """An answer of the master."""
        if self._producer is None or self.master is None:
            return []
        if message == Nack((0,)):  # it has forgotten this writer
            return self._carry(self._producer.hand_over(self.master, self.master))
        return self._carry(self._producer.receive(self.master, message))

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        return [] if self._producer is None else self._carry(self._producer.tick())

    def flush(self) -> list[Output]:
        """Send what waits, if there is a master, and room."""
        if not self._queued or self.master is None:
            return []
        outputs: list[Output] = []
        if self._producer is None:
            self._producer = Producer(silent_ticks=NEVER_SILENT)
            self.entity = self._new_entity()
            outputs += self._carry(self._producer.add(self.master))
        for _ in range(min(len(self._queued), AT_ONCE)):
            if self._producer.is_full:
                break
            action = self._queued.popleft()
            octets = _octets_of(action)
            self._octets -= octets
            outputs += self._carry(self._producer.produce(action, octets))
        return outputs

    def _carry(self, steps: list[producing.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Broadcast(message) | Unicast(_, message):
                    assert self.master is not None
                    receiver = NO_ENTITY if isinstance(message, Heartbeat) else self.master
                    command = to_command(self.entity, receiver, message)
                    # libbroker's writers send these to everybody as well.
                    to_all = isinstance(message, (Event, Heartbeat))
                    to_all = to_all or isinstance(command.content, AttachWriter)
                    outputs.append(Publish(self._topic, command, None if to_all else self.master.endpoint))
                case Dropped(_, _, left):
                    # The master has asked in a way that cannot be understood. It gets all of it anew.
                    self._queued.extendleft(reversed(left))
                    self._octets += sum(map(_octets_of, left))
                    self._producer = None
        return outputs


def _octets_of(action: Action) -> int:
    """The memory of the key and the value of a write."""
    if isinstance(action, (Clear, PutUniqueResult)):
        return 0
    octets = len(encode(action.key))
    return octets if isinstance(action, (Erase, Expire)) else octets + len(encode(action.value))
