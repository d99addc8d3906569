"""A proxy of a data store: it has no content. It asks the master, any number of hops away.

Questions go to whichever master answers, and are asked again until it does, or their time is over. Writes
take the way of a clone's (:mod:`dafka.overlay.stores.writing`). put_unique is a question, too: a master gives
the same answer to the same one, however often it is asked. libbroker's masters know no proxies.
"""

from __future__ import annotations

from collections.abc import Callable

from dafka.overlay.limits import ASK_TICKS, HEARTBEAT_TICKS, MASTER_SILENT_TICKS
from dafka.overlay.stores.master import Action
from dafka.overlay.stores.outputs import Answered, Output, Publish, from_consumer, query_topic
from dafka.overlay.stores.queries import Operation, Pending, Requests
from dafka.overlay.stores.writing import Writer
from dafka.overlay.values import Count
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Command, Query, Response
from dafka.overlay.wire.primitives import NO_ENTITY, EntityId

_HELLO = Query(0, Operation.HELLO, None)
_SILENT_TICKS = MASTER_SILENT_TICKS // 2  # there is no content that a wrong guess would cost


class Proxy:
    """``new_entity`` gives another id of this endpoint at each call. Requests are numbered from 1 on."""

    def __init__(self, entity: EntityId, name: str, new_entity: Callable[[], EntityId]) -> None:
        self.entity = entity
        self.name = name
        self.master: EntityId | None = None
        """The one that has answered last."""
        self._topic = query_topic(name)
        self._writer = Writer(name, new_entity)
        self._requests = Requests()
        self._heard = 0  # in which tick something came from the master
        self._greeted = -ASK_TICKS

    @property
    def is_attached(self) -> bool:
        """Whether there is a master that was heard of lately."""
        return self.master is not None and self._requests.ticks - self._heard < _SILENT_TICKS

    @property
    def is_readable(self) -> bool:
        """It has no content."""
        return False

    @property
    def is_idle(self) -> bool:
        """There is a master, it has acknowledged all writes, and no answer is missing."""
        return self.is_attached and self._writer.is_idle and not self._requests

    @property
    def is_full(self) -> bool:
        """Nothing is to be written before the master has acknowledged something."""
        return self._writer.is_full

    def write(self, action: Action) -> list[Output]:
        """A write of this endpoint. It waits for a master if there is none."""
        return self._writer.write(action)

    def ask(self, query: Query, ticks: int) -> list[Output]:
        """A question of this endpoint. It is answered after so many ticks at the latest.

        Raises :class:`~dafka.overlay.stores.errors.BackendFailure` when too many wait.
        """
        pending = self._requests.add(query, ticks)
        return [*self._writer.flush(), self._send(self._next(pending))]

    def receive(self, command: Command) -> list[Output]:
        """A command on the topic of clones."""
        sender, receiver, content = command.sender, command.receiver, command.content
        if isinstance(content, Response):
            return self._hear(sender, content) if receiver == self.entity else []
        if sender != self.master:
            return []
        self._heard = self._requests.ticks
        answer = from_consumer(content)
        if answer is None or receiver != self._writer.entity:
            return []
        return self._writer.receive(answer)

    def tick(self) -> list[Output]:
        """To be called ten times a second."""
        outputs: list[Output] = [self._give_up(query) for query in self._requests.tick()]
        now = self._requests.ticks
        for pending in self._requests:
            if now - pending.asked >= ASK_TICKS:
                pending.asked = now
                outputs.append(self._send(self._next(pending)))
        if now - self._greeted >= (2 * HEARTBEAT_TICKS if self.is_attached else ASK_TICKS):
            self._greeted = now
            outputs.append(self._send(_HELLO))
        return outputs + self._writer.tick() + (self._writer.flush() if self.is_attached else [])

    def _send(self, query: Query) -> Publish:
        master = self.master if self.is_attached else None
        if master is None:
            return Publish(self._topic, Command(0, self.entity, NO_ENTITY, query))
        return Publish(self._topic, Command(0, self.entity, master, query), master.endpoint)

    def _hear(self, sender: EntityId, response: Response) -> list[Output]:
        if sender != self.master and self.is_attached:
            return []  # of another master, or an earlier life of this one
        self._heard = self._requests.ticks
        outputs: list[Output] = []
        if sender != self.master:
            self.master = sender
            outputs += [*self._writer.follow(sender), *self._writer.flush()]
        pending = self._requests.get(response.request)
        if pending is None:
            return outputs
        if pending.query.operation == Operation.KEYS and response.code != ErrorCode.INVALID_MESSAGE:
            return outputs + self._hear_keys(pending, response)
        self._requests.pop(response.request)
        try:
            code = ErrorCode(response.code)
        except ValueError:
            code = ErrorCode.UNSPECIFIED
        return [*outputs, Answered(response.request, response.value, code)]

    def _hear_keys(self, pending: Pending, response: Response) -> list[Output]:
        match response.value:
            case (Count() as position, tuple() as keys):
                if position and position <= pending.position:
                    return []  # one that was heard before
                pending.position = int(position)
                pending.found += keys
            case _:
                pending.position, pending.found = 0, []  # the master has forgotten about it
                return []
        if pending.position:
            pending.asked = self._requests.ticks
            return [self._send(self._next(pending))]
        self._requests.pop(response.request)
        return [Answered(response.request, (Count(0), tuple(pending.found)))]

    def _next(self, pending: Pending) -> Query:
        if pending.query.operation != Operation.KEYS:
            return pending.query
        return pending.query._replace(arguments=(Count(pending.position),))

    def _give_up(self, query: Query) -> Answered:
        known = self.master is not None
        return Answered(query.request, None, ErrorCode.REQUEST_TIMEOUT if known else ErrorCode.NO_SUCH_MASTER)
