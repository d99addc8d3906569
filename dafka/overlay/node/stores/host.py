"""A store of an endpoint on the hub: its queue of writes, its questions, its events and its backend."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from functools import partial
from itertools import count

import gevent
import gevent.event

from dafka.hub.changes import Changes
from dafka.hub.turns import in_later_turn
from dafka.overlay.limits import TICK_SECONDS
from dafka.overlay.node import limits
from dafka.overlay.node.carrier import Carrier
from dafka.overlay.node.errors import Closed
from dafka.overlay.node.stores.disk import DiskBackend
from dafka.overlay.node.stores.events import Flow, StoreEvents, pass_over
from dafka.overlay.stores.content import EVENTS
from dafka.overlay.stores.errors import BackendFailure, StoreError, error_of
from dafka.overlay.stores.hosting import Store as Role
from dafka.overlay.stores.hosting import StoreOutput
from dafka.overlay.stores.master import Action, Master
from dafka.overlay.stores.outputs import Answered, Changed, Cleared, Commit
from dafka.overlay.stores.queries import Operation
from dafka.overlay.values import Value, encode
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Query

logger = logging.getLogger(__name__)

_TEXTS = {
    ErrorCode.NO_SUCH_KEY: "there is no such key",
    ErrorCode.TYPE_CLASH: "the type of the value does not have this",
    ErrorCode.REQUEST_TIMEOUT: "the master did not answer in time",
    ErrorCode.NO_SUCH_MASTER: "no master was found in time",
    ErrorCode.STALE_DATA: "the content of a master did not come in time",
    ErrorCode.BACKEND_FAILURE: "the master could not write it to its backend, or has reached a bound",
}


class HostedStore:
    """The store ``name``, which was just attached. All of it is the hub's, but for ``queue``."""

    def __init__(self, carrier: Carrier, name: str, backend: DiskBackend | None = None) -> None:
        self.name = name
        self.role: Role = carrier.role.stores[name]
        self.queue: deque[Action] = deque()
        """Writes that the role was not given yet; any thread appends, and has :meth:`drain` called."""
        self.is_told = False
        """Whether :meth:`drain` is due. A thread that appends while this is False has it called."""
        self.refused: StoreError | None = None
        """The error of the last failed write; None again once a caller was told."""
        self.is_closed = False
        self._carrier = carrier
        self._turns = carrier.hub.turns
        self._backend = backend
        self._requests = count(1)
        self._answers: dict[int, gevent.event.AsyncResult] = {}
        self._subscribers: list[StoreEvents] = []
        self._topic = EVENTS + octets_of(name)
        self._flow = Flow(self._deliver)
        self._later: set[float] = set()  # after how many seconds it goes on with draining
        self._drained = Changes()
        carrier.store_listeners.append(self._hear)
        carrier.on_close.append(self.close)

    # -- writing ------------------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """Why the backend accepts nothing at the moment; None if it works."""
        return self.role.failure if isinstance(self.role, Master) else None

    def drain(self, _: object = None) -> None:
        """Give the role what waits, as much as it takes and as there is time for; the rest later."""
        self.is_told = False  # before the queue is emptied: a later append calls again
        queue = self.queue
        while queue and not self.is_closed:
            if self.role.is_full:
                self._drain_later(limits.STORE_PAUSE_SECONDS)
                return
            self._write(queue.popleft())
            if self._turns.elapsed > limits.TURN_SECONDS:
                self._drain_later(0)
                return
        self._drained.tell()

    def _drain_later(self, seconds: float) -> None:
        if seconds in self._later:  # once, however much is written meanwhile
            return
        self._later.add(seconds)
        if seconds:
            gevent.spawn_later(seconds, self._drain_on, seconds)
        else:
            in_later_turn(partial(self._drain_on, seconds))

    def _drain_on(self, seconds: float, _: None = None) -> None:
        self._later.discard(seconds)
        self.drain()

    def _write(self, action: Action) -> None:
        try:
            self._carrier.carry(self._carrier.role.write(self._carrier.now, self.name, action))
        except StoreError as error:
            self.refused = error

    def settle(self, ends: float) -> None:
        """Wait until the role has everything that was queued, as a green thread. Raises BackendFailure."""
        if self.queue:
            self.drain()
        while self.queue:
            self.check()
            if self.failure is not None:
                raise BackendFailure(ErrorCode.BACKEND_FAILURE, self.failure)
            left = ends - time.monotonic()
            if left <= 0:
                raise error_of(ErrorCode.REQUEST_TIMEOUT, f"{self.name!r}: {len(self.queue)} writes wait")
            self._drained.wait(min(left, limits.STORE_RETRY_SECONDS))

    # -- asking -------------------------------------------------------------------------------------

    def ask(self, operation: Operation, arguments: Value, timeout: float) -> Value:
        """The answer; waits as a green thread. Raises :class:`StoreError`."""
        ends = time.monotonic() + timeout
        self.settle(ends)
        self.check()
        query = Query(next(self._requests), operation, arguments)
        answer = self._answers[query.request] = gevent.event.AsyncResult()
        ticks = max(1, math.ceil(timeout / TICK_SECONDS))
        try:
            self._carrier.carry(self._carrier.role.ask(self._carrier.now, self.name, query, ticks))
            # A clone or proxy gives up by itself, and says more exactly why: late, where the hub was held up.
            late = 5 if isinstance(self.role, Master) else 50
            found: Answered = answer.get(timeout=max(0.0, ends - time.monotonic()) + late * TICK_SECONDS)
        except gevent.Timeout:
            cause = self.failure
            if cause is not None:
                raise BackendFailure(ErrorCode.BACKEND_FAILURE, cause) from None
            raise self._error(ErrorCode.REQUEST_TIMEOUT, operation, arguments) from None
        finally:
            self._answers.pop(query.request, None)
        if found.code:
            raise self._error(found.code, operation, arguments)
        return found.value

    def _error(self, code: ErrorCode, operation: Operation, arguments: Value) -> StoreError:
        asked = f"{operation.name.lower()}{arguments!r:.100}"
        return error_of(code, f"{self.name!r}: {_TEXTS.get(code, code.name.lower())} ({asked})")

    def await_idle(self, timeout: float) -> bool:
        """Wait until the role is idle, as a green thread. Raises :class:`Closed`."""
        ends = time.monotonic() + timeout
        self.check()
        while self.queue or not self.role.is_idle:
            self.check()
            if time.monotonic() >= ends:
                return False
            gevent.sleep(limits.STORE_PAUSE_SECONDS)
        return True

    # -- what happens -------------------------------------------------------------------------------

    def subscribe(self, capacity: int) -> StoreEvents:
        self.check()
        subscriber = StoreEvents(self._carrier.hub, capacity, self._unsubscribe)
        self._subscribers.append(subscriber)
        return subscriber

    def _unsubscribe(self, subscriber: StoreEvents) -> None:
        self._carrier.hub.run(self._forget, subscriber)

    def _forget(self, subscriber: StoreEvents) -> None:
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)

    def _hear(self, said: StoreOutput) -> None:
        if said.name != self.name:
            return
        match said.output:
            case Changed() | Cleared() as change:
                if self._subscribers or self._carrier.subscribers.has(self._topic):
                    self._flow.add(change)
                elif isinstance(change, Cleared):
                    pass_over(change.events)
            case Answered(request) as answered:
                answer = self._answers.get(request)
                if answer is not None:
                    answer.set(answered)
            case Commit() as commit:
                assert self._backend is not None
                self._backend.commit(commit, self._committed)

    def _deliver(self, events: list[Value]) -> None:
        for subscriber in list(self._subscribers):
            subscriber.put(events)
        if self._carrier.subscribers.has(self._topic):
            self._carrier.subscribers.deliver(
                self._topic, [encode(event) for event in events], self._carrier.me
            )

    def _committed(self, failure: str | None) -> None:
        if (
            self.name not in self._carrier.role.stores
            or self._carrier.role.stores[self.name] is not self.role
        ):
            return
        self._carrier.carry(self._carrier.role.committed(self.name, failure))
        if self.queue:
            self._drain_later(0)
        if failure is not None:
            gevent.spawn_later(limits.STORE_RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        if not self.is_closed:
            self._carrier.carry(self._carrier.role.retry_commit(self.name))

    # -- the end ------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises :class:`Closed`."""
        if self.is_closed:
            raise Closed(f"the store {self.name!r} was closed")
        self._carrier.check()

    def close(self) -> None:
        """Let the backend have what was written, and detach the store; waits as a green thread."""
        if self.is_closed:
            return
        ends = time.monotonic() + limits.STORE_CLOSE_SECONDS
        while time.monotonic() < ends and self.failure is None:
            self.drain()
            kept = not isinstance(self.role, Master) or self.role.is_kept
            if kept and (not self.queue or self.role.is_full):
                break
            gevent.sleep(limits.STORE_PAUSE_SECONDS)
        if self.failure is not None:
            logger.error("the store %r is closed without its last changes: %s", self.name, self.failure)
        self.is_closed = True
        carrier = self._carrier
        carrier.store_listeners.remove(self._hear)
        carrier.on_close.remove(self.close)
        carrier.carry(carrier.role.detach(self.name))
        closed = Closed(f"the store {self.name!r} was closed")
        for answer in self._answers.values():
            answer.set_exception(closed)
        for subscriber in self._subscribers:
            subscriber.shut(closed)
        if self._backend is not None:
            self._backend.close()
