"""The stores of one endpoint: which topics they need, which command is for which, and their ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.limits import TICK_SECONDS
from dafka.overlay.stores import outputs as storing
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import StoreRefused
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.master import Action, Master
from dafka.overlay.stores.outputs import Publish, clone_topic, master_topic, query_topic
from dafka.overlay.stores.proxy import Proxy
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Query, decode_command, encode_command
from dafka.overlay.wire.primitives import EntityId
from dafka.protocol.errors import MalformedMessage

Store = Master | Clone | Proxy


class SendCommand(NamedTuple):
    """An encoded command for the subscribers of a topic, or for one endpoint only."""

    topic: bytes
    payload: bytes
    receiver: bytes | None


class StoreOutput(NamedTuple):
    """Something about a store of this endpoint: events, the answer to a question, or what is to be kept."""

    name: str
    output: storing.Changed | storing.Cleared | storing.Answered | storing.Commit


Output = SendCommand | StoreOutput


class Stores:
    """The stores of the endpoint ``me``. ``new_number`` names a store object or writer, differently at each
    call."""

    def __init__(self, me: bytes, new_number: Callable[[], int]) -> None:
        self.by_name: dict[str, Store] = {}
        self.topics: Filter = ()
        """The prefixes that the endpoint subscribes to for its stores."""
        self.discarded: Counter[str] = Counter()
        """Commands that were not taken, by cause."""
        self._me = me
        self._new_number = new_number
        self._by_topic: dict[bytes, str] = {}
        self._ticks = 0
        self._began: float | None = None

    def attach_master(
        self, name: str, content: Content | None = None, journal: Journal | None = None
    ) -> Master:
        """Raises :class:`StoreRefused` if there is a store of this name; so do the other two."""
        self._refuse(name, ErrorCode.MASTER_EXISTS)
        content = Content(name) if content is None else content
        master = Master(self._new_entity(), content, journal)
        self._add(name, master, [master_topic(name), query_topic(name)], [])
        return master

    def attach_clone(self, name: str) -> Clone:
        self._refuse(name, ErrorCode.NO_SUCH_MASTER)
        clone = Clone(self._new_entity(), Content(name), self._new_entity)
        self._add(name, clone, [clone_topic(name)], [])
        return clone

    def attach_proxy(self, name: str) -> Proxy:
        self._refuse(name, ErrorCode.NO_SUCH_MASTER)
        proxy = Proxy(self._new_entity(), name, self._new_entity)
        # Messages to it are for it alone, and need no subscription: with one it would get those for clones.
        self._add(name, proxy, [], [clone_topic(name)])
        return proxy

    def detach(self, name: str) -> None:
        """The store is closed."""
        del self.by_name[name]
        self._by_topic = {topic: one for topic, one in self._by_topic.items() if one != name}
        self.topics = tuple([topic for topic in self.topics if topic in self._by_topic])

    def write(self, now: float, name: str, action: Action) -> list[Output]:
        """Change a store. Raises :class:`~dafka.overlay.stores.errors.BackendFailure`."""
        store = self.by_name[name]
        return self._carry(
            name, store.write(now, action) if isinstance(store, Master) else store.write(action)
        )

    def ask(self, now: float, name: str, query: Query, ticks: int) -> list[Output]:
        """Ask a store; an :class:`~dafka.overlay.stores.outputs.Answered` follows at once or later.

        Raises :class:`~dafka.overlay.stores.errors.BackendFailure`.
        """
        store = self.by_name[name]
        return self._carry(
            name, store.ask(now, query) if isinstance(store, Master) else store.ask(query, ticks)
        )

    def committed(self, name: str, failure: str | None = None) -> list[Output]:
        """The backend of a master has what it was given last, or could not write it."""
        master = self.by_name.get(name)
        if not isinstance(master, Master):
            return []
        if failure is not None:
            master.commit_failed(failure)
            return []
        return self._carry(name, master.committed())

    def retry_commit(self, name: str) -> list[Output]:
        """Give the backend what it could not write, again."""
        master = self.by_name.get(name)
        return self._carry(name, master.retry_commit()) if isinstance(master, Master) else []

    def hear(self, now: float, topic: bytes, payload: bytes) -> list[Output]:
        """A command has arrived."""
        name = self._by_topic.get(topic)
        if name is None:
            return []
        try:
            command = decode_command(payload)
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
            return []
        store = self.by_name[name]
        steps = store.receive(now, command) if isinstance(store, Master) else store.receive(command)
        return self._carry(name, steps)

    def tick(self, now: float) -> list[Output]:
        """To be called ten times a second; late ticks are counted too, up to a second's worth."""
        self._began = now if self._began is None else self._began
        due = int((now - self._began) / TICK_SECONDS)
        times, self._ticks = min(due - self._ticks, int(1 / TICK_SECONDS)), due
        outputs: list[Output] = []
        for _ in range(times):
            for name, store in list(self.by_name.items()):
                outputs += self._carry(name, store.tick(now) if isinstance(store, Master) else store.tick())
        return outputs

    @property
    def next_expiry(self) -> float | None:
        """When :meth:`expire` is to be called; None: not before a tick."""
        masters = [store for store in self.by_name.values() if isinstance(store, Master)]
        return min((next for one in masters if (next := one.next_expiry) is not None), default=None)

    def expire(self, now: float) -> list[Output]:
        """Keys of masters expire between two ticks."""
        outputs: list[Output] = []
        for name, store in list(self.by_name.items()):
            if isinstance(store, Master) and store.next_expiry is not None:
                outputs += self._carry(name, store.expire(now))
        return outputs

    # -- within -------------------------------------------------------------------------------------

    def _refuse(self, name: str, code: ErrorCode) -> None:
        if name in self.by_name:
            raise StoreRefused(code, f"the store {name!r} is attached to this endpoint already")

    def _add(self, name: str, store: Store, topics: list[bytes], heard: list[bytes]) -> None:
        self.by_name[name] = store
        self.topics = (*self.topics, *topics)
        self._by_topic |= dict.fromkeys([*topics, *heard], name)

    def _new_entity(self) -> EntityId:
        return EntityId(self._me, self._new_number())

    def _carry(self, name: str, steps: list[storing.Output]) -> list[Output]:
        return [
            SendCommand(step.topic, encode_command(step.command), step.receiver)
            if isinstance(step, Publish)
            else StoreOutput(name, step)
            for step in steps
        ]
