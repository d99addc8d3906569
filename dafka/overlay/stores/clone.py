"""A clone of a data store: it follows a master, and passes on what is written here.

It asks for a master until one answers with its content, and follows that one. It begins anew when it has
lost an event, and when its master is silent for some seconds: then it takes whichever master answers, and
keeps its content until then. libbroker's clones do neither. Masters of ours give a content in pieces
(:mod:`dafka.overlay.stores.loading`), those of libbroker in one message.

That message may come late, and be of before what the clone knows: of an earlier wish, or since libbroker's
masters repeat the number that they began with. The clone never goes back. It goes on where it is.

Writes go to the master over a channel of their own and come back as its decisions, see
:mod:`dafka.overlay.stores.writing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dafka.overlay.channels import consumer as consuming
from dafka.overlay.channels.consumer import Closed, Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import Handshake, Nack
from dafka.overlay.limits import MASTER_SILENT_TICKS
from dafka.overlay.stores import queries
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import BackendFailure
from dafka.overlay.stores.loading import Loading
from dafka.overlay.stores.master import Action
from dafka.overlay.stores.outputs import (
    Answered,
    Changed,
    Cleared,
    Output,
    Publish,
    from_consumer,
    from_producer,
    master_topic,
    query_topic,
    to_command,
)
from dafka.overlay.stores.queries import Operation, Requests
from dafka.overlay.stores.writing import Writer
from dafka.overlay.values import Count, Value
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import (
    AckClone,
    Clear,
    Command,
    Erase,
    Expire,
    Load,
    Piece,
    Put,
    PutUnique,
    PutUniqueResult,
    Query,
)
from dafka.overlay.wire.commands import RetransmitFailed as Failed
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId


class Clone:
    """``new_entity`` gives another id of this endpoint at each call: each writer has its own."""

    def __init__(self, entity: EntityId, content: Content, new_entity: Callable[[], EntityId]) -> None:
        self.entity = entity
        self.content = content
        self.master: EntityId | None = None
        self.has_content = False
        """Whether it was ever attached. Until then it has nothing to say."""
        self.refused = 0
        """Entries of the master that are larger than a store takes."""
        self._topic = master_topic(content.name)
        self._queries = query_topic(content.name)
        self._input = self._new_input()
        self._writer = Writer(content.name, new_entity)
        self._requests = Requests()
        self._asked: dict[tuple[EntityId, int], PutUnique] = {}
        self._attempt = 1
        self._loading: Loading | None = None
        self._reached = 0  # the last event of the master before it began anew
        self._is_whole = False  # whether the content was what the master's was then

    @property
    def is_readable(self) -> bool:
        """Whether there is content to read."""
        return self.has_content

    @property
    def is_attached(self) -> bool:
        """Whether there is a master. Without one the content is what the last one said, or nothing."""
        return self._input.is_attached and self._loading is None

    @property
    def is_idle(self) -> bool:
        """Attached, nothing of the master is missing, and it has acknowledged all writes."""
        return self._input.is_idle and self._loading is None and self._writer.is_idle

    @property
    def is_full(self) -> bool:
        """Nothing is to be written before the master has acknowledged something."""
        return self._writer.is_full

    def write(self, action: Action) -> list[Output]:
        """A write of this endpoint. It waits for a master if there is none."""
        if isinstance(action, PutUnique):
            self._asked[action.caller, action.request] = action
        return self._writer.write(action)

    def ask(self, query: Query, ticks: int) -> list[Output]:
        """A question of this endpoint. It is answered after so many ticks at the latest.

        Raises :class:`BackendFailure` when too many wait.
        """
        if query.operation == Operation.PUT_UNIQUE:
            action = queries.put_unique_of(query, self.entity)
            if action is None:
                return [Answered(query.request, None, ErrorCode.INVALID_MESSAGE)]
            self._requests.add(query, ticks)
            return self.write(action)
        if self.has_content:
            return [self._answer(query)]
        self._requests.add(query, ticks)
        return []

    def receive(self, command: Command) -> list[Output]:
        """A command on the topic of clones."""
        sender, receiver, content = command.sender, command.receiver, command.content
        if isinstance(content, AckClone):
            return self._attach(command, content) if receiver == self.entity else []
        if isinstance(content, Piece):
            return self._load(sender, content) if receiver == self.entity else []
        if sender != self.master or not self._input.is_attached:
            return []
        answer = from_consumer(content)
        if answer is not None:
            return self._writer.receive(answer) if receiver == self._writer.entity else []
        message = from_producer(command)
        if message is None or receiver not in (NO_ENTITY, self.entity):
            return []
        if self._loading is not None and content == Failed(0):
            self._begin_anew(self._input.next - 1)
            return []
        return self._carry(self._input.receive(message))

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        outputs = self._carry(self._input.tick())
        if self._loading is not None:
            if self._loading.has_all:
                outputs += self._sweep()
            elif self._loading.tick():
                outputs += self._ask_for_piece()
        outputs += self._writer.tick()
        for query in self._requests.tick():
            outputs.append(self._give_up(query))
        return outputs + (self._writer.flush() if self.is_attached else [])

    # -- following ----------------------------------------------------------------------------------

    def _new_input(self) -> Consumer:
        return Consumer(silent_ticks=MASTER_SILENT_TICKS)

    def _begin_anew(self, reached: int) -> None:
        self._reached, self._is_whole = reached, self._loading is None
        self._input = self._new_input()
        self._attempt += 1
        self._loading = None

    def _attach(self, command: Command, state: AckClone) -> list[Output]:
        handshake = from_producer(command)
        assert handshake is not None
        if self._input.is_attached:
            return self._carry(self._input.receive(handshake)) if command.sender == self.master else []
        if command.sender == self.master and state.offset < self._reached:
            return self._go_on(state.heartbeat_interval)
        self.master = command.sender
        assert isinstance(state.state, tuple)
        outputs: list[Output] = list(map(Changed, self.content.replace(state.state, command.sender)))
        outputs += self._carry(self._input.receive(handshake))
        return outputs + self._attached()

    def _go_on(self, heartbeat_interval: int) -> list[Output]:
        """The master tells of what it was before the events that are known."""
        if not self._is_whole:
            return []  # it gives the content in pieces, and will give it anew
        outputs = self._carry(self._input.receive(Handshake(self._reached, heartbeat_interval)))
        return outputs + self._attached()

    def _attached(self) -> list[Output]:
        """The content is the master's."""
        assert self.master is not None
        self.has_content = True
        outputs = self._writer.follow(self.master)
        # Decisions that were told meanwhile are not in the content.
        waiting = self._writer.waiting
        for action in self._asked.values():
            if action not in waiting:
                outputs += self._writer.write(action)
        for query in self._requests.pop_reads():
            outputs.append(self._answer(query))
        return outputs + self._writer.flush()

    def _load(self, sender: EntityId, piece: Piece) -> list[Output]:
        if piece.attempt != self._attempt:
            return []
        outputs: list[Output] = []
        if not self._input.is_attached:
            self.master = sender
            self._loading = Loading(self.content, piece.offset)
            outputs += self._carry(self._input.receive(Handshake(piece.offset, piece.heartbeat_interval)))
        if self._loading is None or sender != self.master:
            return outputs
        if piece.offset != self._loading.offset:
            # A request that came twice had the master begin twice, with other keys: what it was asked first
            # may come last, and lacks the events in between.
            if piece.offset > self._loading.offset:
                self._begin_anew(self._input.next - 1)
            return outputs
        self._loading.receive(piece)
        return outputs + self._go_on_loading()

    def _go_on_loading(self) -> list[Output]:
        loading, master = self._loading, self.master
        if loading is None or master is None:
            return []
        events = loading.take(self._input.next - 1, master)
        if events is None:
            return []
        outputs: list[Output] = list(map(Changed, events))
        return outputs + (self._sweep() if loading.has_all else self._ask_for_piece())

    def _ask_for_piece(self) -> list[Output]:
        assert self._loading is not None and self.master is not None
        load = Load(self._attempt, self._loading.position)
        return [Publish(self._queries, Command(0, self.entity, self.master, load), self.master.endpoint)]

    def _sweep(self) -> list[Output]:
        assert self._loading is not None and self.master is not None
        events, done = self._loading.sweep(self.master)
        outputs: list[Output] = list(map(Changed, events))
        if done:
            self._loading = None
            outputs += self._attached()
        return outputs

    def _carry(self, steps: list[consuming.Output]) -> list[Output]:
        outputs: list[Output] = []
        sequence = self._input.next - sum(isinstance(step, (Consume, Lost)) for step in steps)
        for step in steps:
            match step:
                case Reply(message):
                    known = self.master if self._input.is_attached else None
                    receiver = NO_ENTITY if known is None else known
                    command = to_command(self.entity, receiver, message)
                    if message == Nack((0,)):  # masters of ours are to hear this first
                        load = Command(0, self.entity, NO_ENTITY, Load(self._attempt, 0))
                        outputs.append(Publish(self._queries, load))
                    outputs.append(Publish(self._topic, command, None if known is None else known.endpoint))
                case Consume(action):
                    outputs += self._apply(sequence, action)
                    sequence += 1
                case Lost() | Closed():
                    self._begin_anew(sequence - 1)
                    return outputs
        return outputs + self._go_on_loading()

    def _apply(self, sequence: int, action: Any) -> list[Output]:
        event = None
        loading = self._loading
        match action:
            case Put(key, value, expiry, publisher):
                if loading is not None:
                    loading.hear(sequence, key)
                try:
                    event = self.content.put(key, value, expiry, publisher)
                except BackendFailure:
                    self.refused += 1
            case Erase(key, publisher) | Expire(key, publisher):
                if loading is not None:
                    loading.hear(sequence, key)
                word = "expire" if isinstance(action, Expire) else "erase"
                event = self.content.erase(key, publisher, word)
            case Clear(publisher):
                if loading is not None:
                    loading.hear_clear(sequence)
                return [Cleared(self.content.clear(publisher))]
            case PutUniqueResult(inserted, caller, request, _):
                if self._asked.pop((caller, request), None) is not None:
                    self._requests.pop(request)
                    return [Answered(request, inserted)]
        return [] if event is None else [Changed(event)]

    # -- questions ----------------------------------------------------------------------------------

    def _answer(self, query: Query) -> Answered:
        if query.operation == Operation.KEYS:
            keys: tuple[Value, ...] = tuple([key for key, _ in self.content])
            return Answered(query.request, (Count(0), keys))
        return queries.answer(self.content, query)

    def _give_up(self, query: Query) -> Answered:
        self._asked.pop((self.entity, query.request), None)
        if query.operation != Operation.PUT_UNIQUE:
            return Answered(query.request, None, ErrorCode.STALE_DATA)
        known = self.master is not None
        return Answered(query.request, None, ErrorCode.REQUEST_TIMEOUT if known else ErrorCode.NO_SUCH_MASTER)
