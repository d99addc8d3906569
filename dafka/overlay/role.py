"""What one process shows the overlay: a node, with the subscriptions and the data stores of its users.

Stores talk over the peers, to masters and clones any number of hops away. Their topics are part of the
endpoint's filter; what comes on them is for them alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dafka.overlay import core
from dafka.overlay.core import Core
from dafka.overlay.filters import Filter, reduced
from dafka.overlay.limits import TICK_SECONDS
from dafka.overlay.peering.handshake import VERSIONS
from dafka.overlay.routing.outputs import Deliver
from dafka.overlay.stores import outputs as storing
from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import Action, Master
from dafka.overlay.stores.outputs import Publish, clone_topic, master_topic
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import decode_command, encode_command
from dafka.overlay.wire.primitives import EntityId
from dafka.overlay.wire.routed import COMMAND, DATA
from dafka.protocol.errors import DafkaError, MalformedMessage


class StoreOutput(NamedTuple):
    """Something about a store of this endpoint: an event, or the answer to a put_unique."""

    name: str
    output: storing.Changed | storing.Answered


Output = core.Output | StoreOutput


class StoreRefused(DafkaError):
    """A store that cannot be attached."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        self.code = code
        super().__init__(text)


class EndpointRole:
    """The endpoint ``me``. ``time`` begins its logical clock; ``new_number`` names a store object or writer.

    Numbers are to differ from those of earlier lives of the same id: 64 random bits will do.
    """

    def __init__(
        self, me: bytes, time: int, new_number: Callable[[], int], versions: tuple[int, int] = VERSIONS
    ) -> None:
        self.me = me
        self.core = Core(me, time, versions=versions)
        self.stores: dict[str, Master | Clone] = {}
        self.discarded: Counter[str] = Counter()
        """Commands for stores that were not taken, by cause."""
        self._new_number = new_number
        self._prefixes: Filter = ()
        self._by_topic: dict[bytes, str] = {}
        self._ticks = 0
        self._began: float | None = None

    def subscribe(self, prefixes: Iterable[bytes]) -> list[Output]:
        """The users of this endpoint want these topics from now on, and no others."""
        self._prefixes = reduced(prefixes)
        return self._announce()

    def publish(self, topic: bytes, payload: bytes) -> list[Output]:
        """Send data to every peer whose filter lets the topic pass."""
        return list(self.core.publish(topic, payload, DATA))

    def attach_master(self, name: str, content: Content | None = None) -> list[Output]:
        """Raises :class:`StoreRefused` if there is a master that this endpoint knows of."""
        topic = master_topic(name)
        known = self.core.peer.flooding.table.peers.values()
        if any(topic in peer.filter for peer in known):
            raise StoreRefused(ErrorCode.MASTER_EXISTS, f"{name!r} has a master")
        content = Content(name) if content is None else content
        return self._attach(name, topic, Master(self._new_entity(), content))

    def attach_clone(self, name: str) -> list[Output]:
        """It finds its master by itself."""
        return self._attach(
            name, clone_topic(name), Clone(self._new_entity(), Content(name), self._new_entity)
        )

    def detach(self, name: str) -> list[Output]:
        """The store is closed."""
        del self.stores[name]
        self._by_topic = {topic: one for topic, one in self._by_topic.items() if one != name}
        return self._announce()

    def write(self, now: float, name: str, action: Action) -> list[Output]:
        """Change a store of this endpoint."""
        store = self.stores[name]
        steps = store.write(now, action) if isinstance(store, Master) else store.write(action)
        return self._carry_store(name, steps)

    # -- connections, as the core has them --------------------------------------------------------

    def connected(self, now: float, number: int, connector: bool) -> list[Output]:
        return self._carry(now, self.core.connected(now, number, connector))

    def received(self, now: float, number: int, message: bytes) -> list[Output]:
        return self._carry(now, self.core.received(now, number, message))

    def malformed(self, now: float, number: int, error: MalformedMessage) -> list[Output]:
        return self._carry(now, self.core.malformed(now, number, error))

    def disconnected(self, now: float, number: int) -> list[Output]:
        return self._carry(now, self.core.disconnected(now, number))

    def unpeer(self, now: float, peer: bytes) -> list[Output]:
        return self._carry(now, self.core.unpeer(now, peer))

    def shut_down(self, now: float) -> list[Output]:
        return self._carry(now, self.core.shut_down(now))

    def tick(self, now: float) -> list[Output]:
        """To be called ten times a second; stores count late ones too, up to a second's worth."""
        outputs = self._carry(now, self.core.tick(now))
        self._began = now if self._began is None else self._began
        due = int((now - self._began) / TICK_SECONDS)
        times, self._ticks = min(due - self._ticks, int(1 / TICK_SECONDS)), due
        for _ in range(times):
            for name, store in list(self.stores.items()):
                steps = store.tick(now) if isinstance(store, Master) else store.tick()
                outputs += self._carry_store(name, steps)
        return outputs

    # -- within -------------------------------------------------------------------------------------

    def _attach(self, name: str, topic: bytes, store: Master | Clone) -> list[Output]:
        if name in self.stores:
            code = ErrorCode.MASTER_EXISTS if isinstance(store, Master) else ErrorCode.NO_SUCH_MASTER
            raise StoreRefused(code, f"{name!r} is attached to this endpoint")
        self.stores[name] = store
        self._by_topic[topic] = name
        return self._announce()

    def _announce(self) -> list[Output]:
        return list(self.core.subscribe([*self._prefixes, *self._by_topic]))

    def _new_entity(self) -> EntityId:
        return EntityId(self.me, self._new_number())

    def _carry(self, now: float, steps: list[core.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            if isinstance(step, Deliver) and step.kind == COMMAND:
                outputs += self._hear(now, step)
            else:
                outputs.append(step)
        return outputs

    def _hear(self, now: float, message: Deliver) -> list[Output]:
        name = self._by_topic.get(message.topic)
        if name is None:
            return []
        try:
            command = decode_command(message.payload)
        except MalformedMessage as error:
            self.discarded[error.cause] += 1
            return []
        store = self.stores[name]
        steps = store.receive(now, command) if isinstance(store, Master) else store.receive(command)
        return self._carry_store(name, steps)

    def _carry_store(self, name: str, steps: list[storing.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            if not isinstance(step, Publish):
                outputs.append(StoreOutput(name, step))
                continue
            payload = encode_command(step.command)
            if step.receiver is None:
                outputs += self.core.publish(step.topic, payload, COMMAND)
            else:
                outputs += self.core.publish_to(step.receiver, step.topic, payload, COMMAND)
        return outputs
