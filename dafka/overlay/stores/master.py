"""The master of a data store: it decides, and tells its clones the effect of everything.

Writes come from this endpoint or, over a channel for each, from the writers of clones. What they change goes
to the clones over one channel, in the order in which it was decided: a put for an addition too, with the new
value. Additions that the type of the value does not have change nothing. Time is the master's business: a key
that expires is erased by it.

A clone that asks for a handshake gets the whole content. Until it has acknowledged that it gets the same
again: the events since then are kept for it.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from typing import Any

from dafka.overlay.channels import consumer as consuming
from dafka.overlay.channels import producer as producing
from dafka.overlay.channels.consumer import Consume, Consumer, Reply
from dafka.overlay.channels.messages import Event, Handshake, Nack
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import MOST_ANSWERS, MOST_WRITERS, NEVER_SILENT
from dafka.overlay.stores import arithmetic
from dafka.overlay.stores.arithmetic import TypeClash
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.outputs import (
    Answered,
    Changed,
    Output,
    Publish,
    clone_topic,
    from_consumer,
    from_producer,
    to_command,
)
from dafka.overlay.values import Timespan, Value, encode
from dafka.overlay.wire.commands import (
    AckClone,
    Add,
    AttachWriter,
    Clear,
    Command,
    Erase,
    Expire,
    Put,
    PutUnique,
    PutUniqueResult,
    Subtract,
)
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

Action = Put | PutUnique | PutUniqueResult | Erase | Expire | Add | Subtract | Clear
NANOSECONDS = 1_000_000_000


class Master:
    """``entity`` is to be another one in each life of the master, so that clones notice a new one."""

    def __init__(self, entity: EntityId, content: Content) -> None:
        self.entity = entity
        self.content = content
        self._topic = clone_topic(content.name)
        self._producer: Producer[EntityId] = Producer(repeats_handshake=False)
        self._handshakes: dict[EntityId, AckClone] = {}  # not acknowledged yet
        # A writer that comes back goes on where it was, so that nothing it wrote is applied twice.
        self._inputs: OrderedDict[EntityId, Consumer] = OrderedDict()
        self._deadlines: dict[bytes, float] = {}
        self._expiring: list[tuple[float, bytes, Value]] = []
        self._answers: OrderedDict[tuple[EntityId, int], bool] = OrderedDict()

    @property
    def clones(self) -> list[EntityId]:
        return self._producer.consumers

    @property
    def is_idle(self) -> bool:
        """No handshake is pending, all clones have everything, and nothing of a writer is missing."""
        return self._producer.is_idle and all(one.is_idle or one.is_silent for one in self._inputs.values())

    def write(self, now: float, action: Action) -> list[Output]:
        """A write of this endpoint."""
        return self._apply(now, action)

    def receive(self, now: float, command: Command) -> list[Output]:
        """A command on the topic of masters."""
        if command.receiver not in (NO_ENTITY, self.entity):
            return []
        sender = command.sender
        answer = from_consumer(command.content)
        if answer == Nack((0,)):
            return self._attach(sender)
        if answer is not None:
            return self._carry(self._producer.receive(sender, answer))
        if isinstance(command.content, AttachWriter) and sender not in self._inputs:
            if len(self._inputs) >= MOST_WRITERS:
                self._inputs.popitem(last=False)
            self._inputs[sender] = Consumer(asks_for_handshake=False, silent_ticks=NEVER_SILENT)
        message, known = from_producer(command), self._inputs.get(sender)
        if known is None or message is None or isinstance(command.content, AckClone):
            return []
        self._inputs.move_to_end(sender)
        return self._carry_input(now, sender, known.receive(message))

    def tick(self, now: float) -> list[Output]:
        """To be called ten times a second."""
        outputs = self._expire(now)
        outputs += self._carry(self._producer.tick())
        for writer, known in list(self._inputs.items()):
            if not known.is_silent:
                outputs += self._carry_input(now, writer, known.tick())
        return outputs

    # -- clones -------------------------------------------------------------------------------------

    def _attach(self, clone: EntityId) -> list[Output]:
        if clone not in self._handshakes:
            self._producer.remove(clone)  # it has begun anew
        return self._carry(self._producer.add(clone))

    def _carry(self, steps: list[producing.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Broadcast(message):
                    outputs.append(Publish(self._topic, to_command(self.entity, NO_ENTITY, message)))
                case Unicast(clone, Handshake(offset, interval)):
                    state = self._handshakes.get(clone)
                    if state is None:
                        state = self._handshakes[clone] = AckClone(offset, interval, tuple(self.content))
                    outputs.append(self._to(clone, Command(offset, self.entity, clone, state)))
                case Unicast(clone, message):
                    receiver = NO_ENTITY if isinstance(message, Event) else clone
                    outputs.append(self._to(clone, to_command(self.entity, receiver, message)))
                case Attached(clone) | Dropped(clone, _, _):
                    self._handshakes.pop(clone, None)
        return outputs

    def _to(self, receiver: EntityId, command: Command) -> Publish:
        return Publish(self._topic, command, receiver.endpoint)

    # -- writers ------------------------------------------------------------------------------------

    def _carry_input(self, now: float, writer: EntityId, steps: list[consuming.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Reply(message):
                    outputs.append(self._to(writer, to_command(self.entity, writer, message)))
                case Consume(action):
                    outputs += self._apply(now, action)
        return outputs

    # -- what writes do -----------------------------------------------------------------------------

    def _apply(self, now: float, action: Any) -> list[Output]:
        match action:
            case Put(key, value, expiry, publisher):
                return self._put(now, key, value, expiry, expiry, publisher)
            case PutUnique():
                return self._put_unique(now, action)
            case Add(key, value, begin_with, expiry, publisher):
                try:
                    before = (
                        self.content.get(key) if self.content.exists(key) else arithmetic.zero(begin_with)
                    )
                    after = arithmetic.add(before, value)
                except TypeClash:
                    return []
                return self._put(now, key, after, None, expiry, publisher)
            case Subtract(key, value, expiry, publisher):
                try:
                    after = arithmetic.subtract(self.content.get(key), value)
                except (KeyError, TypeClash):
                    return []
                return self._put(now, key, after, None, expiry, publisher)
            case Erase(key, publisher):
                event = self.content.erase(key, publisher)
                self._deadlines.pop(encode(key), None)
                return [] if event is None else [Changed(event), *self._tell(action)]
            case Clear(publisher):
                self._deadlines.clear()
                return [*map(Changed, self.content.clear(publisher)), *self._tell(action)]
        return []

    def _put(
        self, now: float, key: Value, value: Value, told: Timespan | None, kept: Timespan | None, by: EntityId
    ) -> list[Output]:
        """``told`` is the expiry that clones hear of, ``kept`` the one that counts."""
        event = self.content.put(key, value, told, by)
        octets = encode(key)
        self._deadlines.pop(octets, None)
        if kept is not None:
            deadline = self._deadlines[octets] = now + kept / NANOSECONDS
            heapq.heappush(self._expiring, (deadline, octets, key))
        return [Changed(event), *self._tell(Put(key, value, told, by))]

    def _put_unique(self, now: float, action: PutUnique) -> list[Output]:
        asked = action.caller, action.request
        outputs: list[Output] = []
        inserted = self._answers.get(asked)
        if inserted is None:
            inserted = self._answers[asked] = not self.content.exists(action.key)
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
            if inserted:
                expiry = action.expiry
                outputs = self._put(now, action.key, action.value, expiry, expiry, action.publisher)
        if action.caller.endpoint == self.entity.endpoint:
            outputs.append(Answered(action.request, inserted))
        return outputs + self._tell(PutUniqueResult(inserted, *asked, self.entity))

    def _expire(self, now: float) -> list[Output]:
        outputs: list[Output] = []
        while self._expiring and self._expiring[0][0] <= now:
            deadline, octets, key = heapq.heappop(self._expiring)
            if self._deadlines.get(octets) == deadline:
                del self._deadlines[octets]
                event = self.content.erase(key, self.entity, "expire")
                assert event is not None
                outputs += [Changed(event), *self._tell(Expire(key, self.entity))]
        return outputs

    def _tell(self, action: Action) -> list[Output]:
        outputs: list[Output] = []
        if self._producer.is_full:
            # A clone that cannot follow would hold up the writers. It gets the whole content anew.
            outputs += self._carry(self._producer.drop_slowest())
        return outputs + self._carry(self._producer.produce(action))
