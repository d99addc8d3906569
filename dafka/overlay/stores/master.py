"""The master of a data store: it decides, and tells its clones the effect of everything.

Writes come from this endpoint or, over a channel for each, from the writers of clones and proxies. Their
changes go to the clones over one channel, in the order in which they were decided: a put for an addition too,
with the new value. Additions that the type of the value does not have change nothing. Time is the master's
business: a key that expires is erased by it.

A clone that asks for a handshake gets the whole content, in one message if it is one of libbroker's and in
pieces if it is one of ours. Until it has acknowledged that it gets the same again: the events since then are
kept for it.

With a journal (:mod:`dafka.overlay.stores.journal`) nothing is said before the backend has it, and writers go
on behind what the backend has when the master comes back.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Any

from dafka.overlay.channels import consumer as consuming
from dafka.overlay.channels import producer as producing
from dafka.overlay.channels.consumer import Consume, Consumer, Lost, Reply
from dafka.overlay.channels.messages import Event, Handshake, Heartbeat, Nack
from dafka.overlay.channels.producer import Attached, Broadcast, Dropped, Producer, Unicast
from dafka.overlay.limits import (
    ERASED_ENTRIES,
    HEARTBEAT_TICKS,
    MOST_ANSWERS,
    MOST_WAITING,
    MOST_WRITERS,
    NEVER_SILENT,
)
from dafka.overlay.stores import arithmetic, queries
from dafka.overlay.stores.content import Content, Origin
from dafka.overlay.stores.errors import BackendFailure, TypeClash
from dafka.overlay.stores.expiry import Expiries
from dafka.overlay.stores.handshakes import Handshakes
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.outputs import (
    Answered,
    Changed,
    Cleared,
    Output,
    Publish,
    clone_topic,
    from_consumer,
    from_producer,
    to_command,
)
from dafka.overlay.stores.pieces import Pieces
from dafka.overlay.stores.queries import Operation
from dafka.overlay.values import Count, Timespan, Value, encode
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import (
    AckClone,
    Add,
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
    Response,
    Subtract,
)
from dafka.overlay.wire.commands import RetransmitFailed as Failed
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

Action = Put | PutUnique | PutUniqueResult | Erase | Expire | Add | Subtract | Clear
NANOSECONDS = 1_000_000_000


class Master:
    """``entity`` is to be another one in each life of the master, so that clones notice a new one."""

    def __init__(self, entity: EntityId, content: Content, journal: Journal | None = None) -> None:
        self.entity = entity
        self.content = content
        self.refused: Counter[str] = Counter()
        """Writes of others that a bound of the store has refused, by the text of the error."""
        self._topic = clone_topic(content.name)
        self._producer: Producer[EntityId] = Producer(repeats_handshake=False)
        self._handshakes = Handshakes(content, self._producer.remove)  # not acknowledged yet
        # A writer that comes back goes on where it was, so that nothing it wrote is applied twice.
        self._inputs: OrderedDict[EntityId, Consumer] = OrderedDict()
        self._expiries = Expiries(content)
        self._answers: OrderedDict[Origin, bool] = OrderedDict()
        self._pieces = Pieces(content)
        self._waiting: deque[tuple[float, Command]] = deque()  # of writers, for room in the backend
        self._journal = journal
        if journal is not None:
            journal.attach(content)

    @property
    def clones(self) -> list[EntityId]:
        return self._producer.consumers

    @property
    def is_idle(self) -> bool:
        """No handshake is pending, all clones have everything, and nothing of a writer is missing.

        With a backend, that has everything, too.
        """
        inputs = all(one.is_idle or one.is_silent for one in self._inputs.values())
        return inputs and self._producer.is_idle and self.is_kept

    @property
    def is_kept(self) -> bool:
        """Whether the backend has everything."""
        return self._journal is None or self._journal.is_idle

    @property
    def is_readable(self) -> bool:
        """Whether the content shows nothing that a crash can take back."""
        return self.is_kept

    @property
    def is_full(self) -> bool:
        """Nothing is to be written before the backend has something."""
        return self._journal is not None and self._journal.is_full

    @property
    def failure(self) -> str | None:
        """Why the backend does not take anything at the moment."""
        return None if self._journal is None else self._journal.failure

    def write(self, now: float, action: Action) -> list[Output]:
        """A write of this endpoint. Raises :class:`BackendFailure`, and nothing is changed then."""
        self._check_backend()
        return self._pass_on(self._apply(now, action))

    def ask(self, now: float, query: Query) -> list[Output]:
        """A question of this endpoint; the answer follows at once, or when the backend has what it is about.

        Raises :class:`BackendFailure`.
        """
        self._check_backend()
        outputs, answer = self._answer(now, query, self.entity)
        return self._pass_on([*outputs, answer] if answer is not None else outputs)

    def receive(self, now: float, command: Command) -> list[Output]:
        """A command on the topics of masters."""
        if command.receiver not in (NO_ENTITY, self.entity):
            return []
        if self.is_full or self._waiting:
            if len(self._waiting) < MOST_WAITING:  # commands not taken now are sent again
                self._waiting.append((now, command))
            return []
        return self._pass_on(self._receive(now, command))

    @property
    def next_expiry(self) -> float | None:
        """When :meth:`expire` is to be called."""
        return None if self.is_full else self._expiries.next

    def expire(self, now: float) -> list[Output]:
        """The keys whose time has come are erased."""
        return [] if self.is_full else self._pass_on(self._expire(now))

    def tick(self, now: float) -> list[Output]:
        """To be called ten times a second."""
        self._pieces.tick()
        outputs = [] if self.is_full else self._expire(now)
        outputs += self._carry(self._producer.tick())
        for clone, state in self._handshakes.tick():
            outputs.append(self._to(clone, Command(state.offset, self.entity, clone, state)))
        for writer, known in list(self._inputs.items()):
            if not known.is_silent:
                outputs += self._carry_input(now, writer, known, known.tick())
        return self._pass_on(outputs)

    def committed(self) -> list[Output]:
        """The backend has what it was given last."""
        assert self._journal is not None
        outputs = self._journal.committed()
        while self._waiting and not self.is_full:
            outputs += self._pass_on(self._receive(*self._waiting.popleft()))
        return outputs

    def commit_failed(self, cause: str) -> None:
        """The backend could not write it. It is to be tried again, see :meth:`retry_commit`."""
        assert self._journal is not None
        self._journal.failed(cause)

    def retry_commit(self) -> list[Output]:
        assert self._journal is not None
        return self._journal.retry()

    def _pass_on(self, outputs: list[Output]) -> list[Output]:
        return outputs if self._journal is None else self._journal.pass_on(outputs)

    def _check_backend(self) -> None:
        if self.failure is not None:
            raise BackendFailure(ErrorCode.BACKEND_FAILURE, self.failure)

    def _receive(self, now: float, command: Command) -> list[Output]:
        sender = command.sender
        match command.content:
            case Load():
                return self._load(sender, command.content)
            case Query():
                return self._hear_query(now, sender, command.content)
            case Piece() | Response() | AckClone():
                return []
        answer = from_consumer(command.content)
        if answer == Nack((0,)):
            return [] if self._pieces.is_reading(sender) else self._attach(sender)
        if answer is not None:
            return self._carry(self._producer.receive(sender, answer))
        message = from_producer(command)
        if message is None:
            return []
        known = self._inputs.get(sender)
        if isinstance(message, Handshake) and known is None:
            known, message = self._new_input(sender, message)
        if known is None:
            if not isinstance(message, (Event, Heartbeat)) or command.receiver != self.entity:
                return []
            return [self._to(sender, to_command(self.entity, sender, Nack((0,))))]
        self._inputs.move_to_end(sender)
        return self._carry_input(now, sender, known, known.receive(message))

    # -- clones -------------------------------------------------------------------------------------

    def _attach(self, clone: EntityId) -> list[Output]:
        if not self._handshakes.has_room(clone, self._producer.sequence):
            return []
        if clone not in self._handshakes:
            self._producer.remove(clone)  # it has begun anew
        return self._carry(self._producer.add(clone))

    def _load(self, clone: EntityId, load: Load) -> list[Output]:
        """A clone of ours wants the content, or more of it."""
        reader = clone, load.attempt
        offset = self._pieces.offset(reader)
        if offset is None:
            if load.position:  # it was away for too long
                return [self._to(clone, Command(0, self.entity, clone, Failed(0)))]
            self._pieces.forget(clone)
            if not self._pieces.begin(reader, self._producer.sequence):
                return []
            self._handshakes.forget(clone)
            self._producer.remove(clone)
            self._producer.add(clone)  # the first piece is the handshake
            offset = self._producer.sequence
        entries, position = self._pieces.cut(reader, load.position)
        state = tuple([(entry.key, entry.value) for entry in entries])
        current = self._producer.sequence
        piece = Piece(load.attempt, offset, HEARTBEAT_TICKS, current, position, state)
        return [self._to(clone, Command(0, self.entity, clone, piece))]

    def _carry(self, steps: list[producing.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Broadcast(message):
                    outputs.append(Publish(self._topic, to_command(self.entity, NO_ENTITY, message)))
                case Unicast(clone, Handshake(offset, interval)):
                    state = self._handshakes.give(clone, offset, interval)
                    if state is not None:
                        outputs.append(self._to(clone, Command(offset, self.entity, clone, state)))
                case Unicast(clone, message):
                    receiver = NO_ENTITY if isinstance(message, Event) else clone
                    outputs.append(self._to(clone, to_command(self.entity, receiver, message)))
                case Attached(clone) | Dropped(clone, _, _):
                    self._handshakes.forget(clone)
        return outputs

    def _to(self, receiver: EntityId, command: Command) -> Publish:
        return Publish(self._topic, command, receiver.endpoint)

    # -- writers ------------------------------------------------------------------------------------

    def _new_input(self, writer: EntityId, handshake: Handshake) -> tuple[Consumer, Handshake]:
        if len(self._inputs) >= MOST_WRITERS:
            oldest, _ = self._inputs.popitem(last=False)
            if self._journal is not None:
                self._journal.note_writer(oldest, None)
        known = self._inputs[writer] = Consumer(asks_for_handshake=False, silent_ticks=NEVER_SILENT)
        if self._journal is not None:
            applied = self._journal.writers.get(writer, 0)
            handshake = handshake._replace(offset=max(handshake.offset, applied))
        return known, handshake

    def _carry_input(
        self, now: float, writer: EntityId, known: Consumer, steps: list[consuming.Output]
    ) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case Reply(message):
                    outputs.append(self._to(writer, to_command(self.entity, writer, message)))
                case Consume(action):
                    try:
                        outputs += self._apply(now, action)
                    except BackendFailure as error:
                        self.refused[str(error)[:100]] += 1
        if self._journal is not None and any(isinstance(step, (Consume, Lost)) for step in steps):
            self._journal.note_writer(writer, known.next - 1)
        return outputs

    # -- questions ----------------------------------------------------------------------------------

    def _hear_query(self, now: float, proxy: EntityId, query: Query) -> list[Output]:
        try:
            outputs, answer = self._answer(now, query, proxy)
        except BackendFailure:
            outputs, answer = [], Answered(query.request, None, ErrorCode.BACKEND_FAILURE)
        if answer is None:
            return outputs
        response = Response(answer.request, answer.code, answer.value)
        return [*outputs, self._to(proxy, Command(0, self.entity, proxy, response))]

    def _answer(self, now: float, query: Query, by: EntityId) -> tuple[list[Output], Answered | None]:
        request, operation, _ = query
        match operation:
            case Operation.HELLO:
                return [], Answered(request, None)
            case Operation.KEYS:
                return [], self._keys(query, by)
            case Operation.PUT_UNIQUE:
                action = queries.put_unique_of(query, by)
                if action is None:
                    return [], Answered(request, None, ErrorCode.INVALID_MESSAGE)
                outputs, inserted = self._put_unique(now, action)
                return outputs, Answered(request, inserted)
        return [], queries.answer(self.content, query)

    def _keys(self, query: Query, by: EntityId) -> Answered | None:
        position = queries.position_of(query.arguments)
        reader = by, query.request
        if position < 0:
            return Answered(query.request, None, ErrorCode.INVALID_MESSAGE)
        if self._pieces.offset(reader) is None:
            if position:
                return Answered(query.request, None, ErrorCode.STALE_DATA)
            if not self._pieces.begin(reader):
                return None
        entries, following = self._pieces.cut(reader, position)
        return Answered(query.request, (Count(following), tuple([entry.key for entry in entries])))

    # -- what writes do -----------------------------------------------------------------------------

    def _apply(self, now: float, action: Any) -> list[Output]:
        match action:
            case Put(key, value, expiry, publisher):
                return self._put(now, key, value, expiry, expiry, publisher)
            case PutUnique():
                outputs, inserted = self._put_unique(now, action)
                if action.caller.endpoint == self.entity.endpoint:
                    outputs.append(Answered(action.request, inserted))
                return outputs
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
                return [] if event is None else [Changed(event), *self._tell(action)]
            case Clear(publisher):
                self._handshakes.clear()
                return [Cleared(self.content.clear(publisher)), *self._tell(action)]
        return []

    def _put(
        self,
        now: float,
        key: Value,
        value: Value,
        told: Timespan | None,
        kept: Timespan | None,
        by: EntityId,
        origin: Origin | None = None,
    ) -> list[Output]:
        """``told`` is the expiry that clones hear of, ``kept`` the one that counts."""
        deadline = None if kept is None else now + kept / NANOSECONDS
        event = self.content.put(key, value, told, by, deadline, origin)
        octets = encode(key)
        if deadline is not None:
            self._expiries.note(octets, deadline)
        entry = self.content.entry(octets)
        assert entry is not None
        return [Changed(event), *self._tell(Put(key, value, told, by), entry.size)]

    def _put_unique(self, now: float, action: PutUnique) -> tuple[list[Output], bool]:
        asked = action.caller, action.request
        outputs: list[Output] = []
        inserted = self._answers.get(asked)
        if inserted is None:
            known = self.content.entry(encode(action.key))
            if known is None:
                expiry = action.expiry
                outputs = self._put(now, action.key, action.value, expiry, expiry, action.publisher, asked)
            # In an earlier life this master may have decided the same, and died before it could say so.
            inserted = self._answers[asked] = known is None or known.origin == asked
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        return outputs + self._tell(PutUniqueResult(inserted, *asked, self.entity)), inserted

    def _expire(self, now: float) -> list[Output]:
        outputs: list[Output] = []
        for entry in self._expiries.due(now, ERASED_ENTRIES):
            event = self.content.erase(entry.key, self.entity, "expire")
            assert event is not None
            outputs += [Changed(event), *self._tell(Expire(entry.key, self.entity))]
        return outputs

    def _tell(self, action: Action, octets: int = 0) -> list[Output]:
        outputs: list[Output] = []
        while self._producer.is_full:
            # A clone that cannot follow would hold up the writers. It gets the whole content anew.
            outputs += self._carry(self._producer.drop_slowest())
        return outputs + self._carry(self._producer.produce(action, octets))
