"""A clone of a data store: it follows a master, and passes on what is written here.

It asks for a master until one answers with its content, and follows that one. It begins anew when it has
lost an event, and when its master is silent for some seconds: then it takes whichever master answers, and
keeps its content until then. libbroker's clones do neither.

Writes go to the master over a channel of their own and come back as its decisions. Those that the master has
not acknowledged are written again to the next one: a master that died between applying a write and
acknowledging it, and kept what it had, then gets it twice. A put_unique is decided once all the same, as long
as its master lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.overlay.channels import consumer as consuming
from dafka.overlay.channels import producer as producing
from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import Event, Heartbeat
from dafka.overlay.channels.producer import Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import MASTER_SILENT_TICKS, MOST_KEPT, NEVER_SILENT
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Action
from dafka.overlay.stores.outputs import (
    Answered,
    Changed,
    Output,
    Publish,
    from_consumer,
    from_producer,
    master_topic,
    to_command,
)
from dafka.overlay.wire.commands import (
    AckClone,
    AttachWriter,
    Clear,
    Command,
    Erase,
    Expire,
    Put,
    PutUnique,
    PutUniqueResult,
)
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


class Clone:
    """``new_entity`` gives another id of this endpoint at each call: each writer has its own."""

    def __init__(self, entity: EntityId, content: Content, new_entity: Callable[[], EntityId]) -> None:
        self.entity = entity
        self.content = content
        self.master: EntityId | None = None
        self._topic = master_topic(content.name)
        self._new_entity = new_entity
        self._input = self._new_input()
        self._writer: Producer[EntityId] | None = None
        self._writer_entity = NO_ENTITY
        self._queued: list[Action] = []
        self._asked: dict[tuple[EntityId, int], PutUnique] = {}

    @property
    def is_attached(self) -> bool:
        """Whether there is a master. Without one the content is what the last one said, or nothing."""
        return self._input.is_attached

    @property
    def is_idle(self) -> bool:
        """Attached, nothing of the master is missing, and it has acknowledged all writes."""
        written = self._writer is None or self._writer.is_idle
        return self._input.is_idle and written and not self._queued

    @property
    def is_full(self) -> bool:
        """Nothing is to be written before the master has acknowledged something."""
        return len(self._queued) + (0 if self._writer is None else self._writer.kept) >= MOST_KEPT

    def write(self, action: Action) -> list[Output]:
        """A write of this endpoint. It waits for a master if there is none."""
        if isinstance(action, PutUnique):
            self._asked[action.caller, action.request] = action
        self._queued.append(action)
        return self._flush()

    def receive(self, command: Command) -> list[Output]:
        """A command on the topic of clones."""
        sender, receiver = command.sender, command.receiver
        if isinstance(command.content, AckClone):
            return self._attach(command, command.content) if receiver == self.entity else []
        if sender != self.master or not self._input.is_attached:
            return []
        answer = from_consumer(command.content)
        if answer is not None:
            if receiver != self._writer_entity or self._writer is None:
                return []
            return self._carry_writer(self._writer.receive(sender, answer))
        message = from_producer(command)
        if message is None or receiver not in (NO_ENTITY, self.entity):
            return []
        return self._carry(self._input.receive(message))

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        outputs = self._carry(self._input.tick())
        if self._writer is not None:
            outputs += self._carry_writer(self._writer.tick())
        return outputs + self._flush()

    # -- following ----------------------------------------------------------------------------------

    def _new_input(self) -> Consumer:
        return Consumer(silent_ticks=MASTER_SILENT_TICKS)

    def _attach(self, command: Command, state: AckClone) -> list[Output]:
        handshake = from_producer(command)
        assert handshake is not None
        if self._input.is_attached:
            return self._carry(self._input.receive(handshake)) if command.sender == self.master else []
        outputs: list[Output] = []
        if self.master != command.sender:
            self._leave_writer()
            self.master = command.sender
        outputs += map(Changed, self.content.replace(state.state, command.sender))
        outputs += self._carry(self._input.receive(handshake))
        # Decisions that were told meanwhile are not in the content.
        self._queued += [one for one in self._asked.values() if one not in self._queued]
        return outputs + self._flush()

    def _carry(self, steps: list[consuming.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Reply(message):
                    known = self.master if self._input.is_attached else None
                    receiver = NO_ENTITY if known is None else known
                    command = to_command(self.entity, receiver, message)
                    outputs.append(Publish(self._topic, command, None if known is None else known.endpoint))
                case Consume(action):
                    outputs += self._apply(action)
                case Lost() | Closed():
                    self._input = self._new_input()
                    break
        return outputs

    def _apply(self, action: Any) -> list[Output]:
        event = None
        match action:
            case Put(key, value, expiry, publisher):
                event = self.content.put(key, value, expiry, publisher)
            case Erase(key, publisher):
                event = self.content.erase(key, publisher)
            case Expire(key, publisher):
                event = self.content.erase(key, publisher, "expire")
            case Clear(publisher):
                return list(map(Changed, self.content.clear(publisher)))
            case PutUniqueResult(inserted, caller, request, _):
                if self._asked.pop((caller, request), None) is not None:
                    return [Answered(request, inserted)]
        return [] if event is None else [Changed(event)]

    # -- writing ------------------------------------------------------------------------------------

    def _flush(self) -> list[Output]:
        """Write what waits, if there is a master."""
        if not self._queued or not self._input.is_attached or self.master is None:
            return []
        outputs: list[Output] = []
        if self._writer is None:
            self._writer = Producer(silent_ticks=NEVER_SILENT)
            self._writer_entity = self._new_entity()
            outputs += self._carry_writer(self._writer.add(self.master))
        room = MOST_KEPT - self._writer.kept
        queued, self._queued = self._queued[:room], self._queued[room:]
        for action in queued:
            outputs += self._carry_writer(self._writer.produce(action))
        return outputs

    def _carry_writer(self, steps: list[producing.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Broadcast(message) | Unicast(_, message):
                    assert self.master is not None
                    receiver = NO_ENTITY if isinstance(message, Heartbeat) else self.master
                    command = to_command(self._writer_entity, receiver, message)
                    alone = isinstance(message, (Event, Heartbeat)) or isinstance(
                        command.content, AttachWriter
                    )
                    outputs.append(Publish(self._topic, command, None if alone else self.master.endpoint))
                case Dropped(_, _, left):
                    self._queued = left + self._queued
                    self._writer = None
        return outputs

    def _leave_writer(self) -> None:
        """The master of this writer is gone. What it has not acknowledged waits for the next one."""
        if self._writer is not None:
            self._queued = self._writer.unacknowledged + self._queued
            self._writer = None
