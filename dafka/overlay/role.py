"""One process's part in the overlay: a node, with the subscriptions and the data stores of its users.

Stores talk over the peers, to masters and clones any number of hops away. Their topics are part of the
endpoint's filter; messages on them are for the stores alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from dafka.overlay import core
from dafka.overlay.core import Core
from dafka.overlay.filters import Filter, reduced
from dafka.overlay.peering.handshake import VERSIONS
from dafka.overlay.routing.outputs import Deliver
from dafka.overlay.stores import hosting
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.errors import StoreRefused
from dafka.overlay.stores.hosting import SendCommand, Store, StoreOutput, Stores
from dafka.overlay.stores.journal import Journal
from dafka.overlay.stores.master import Action
from dafka.overlay.stores.outputs import master_topic
from dafka.overlay.wire.codes import ErrorCode
from dafka.overlay.wire.commands import Query
from dafka.overlay.wire.envelope import MOST_TOPIC
from dafka.overlay.wire.links import ANSWER, ASK, QUESTION, encode_links
from dafka.overlay.wire.routed import COMMAND, DATA
from dafka.protocol.errors import MalformedMessage

Output = core.Output | StoreOutput


class EndpointRole:
    """The endpoint ``me``. ``time`` begins its logical clock; ``new_number`` names a store object or writer.

    Numbers are to differ from those of earlier lives of the same id: 64 random bits will do.
    """

    def __init__(
        self,
        me: bytes,
        time: int,
        new_number: Callable[[], int],
        versions: tuple[int, int] = VERSIONS,
        overflow: str = "wait",
    ) -> None:
        self.me = me
        self.core = Core(me, time, versions=versions, overflow=overflow)
        self._stores = Stores(me, new_number)
        self._prefixes: Filter = ()

    @property
    def stores(self) -> dict[str, Store]:
        """The stores that are attached, by name."""
        return self._stores.by_name

    @property
    def discarded(self) -> Counter[str]:
        """Commands for stores that were not taken, by cause."""
        return self._stores.discarded

    def subscribe(self, prefixes: Iterable[bytes]) -> list[Output]:
        """The users of this endpoint want these topics from now on, and no others."""
        self._prefixes = reduced(prefixes)
        return self._announce()

    def publish(self, topic: bytes, payload: bytes) -> list[Output]:
        """Send data to every peer whose filter lets the topic pass."""
        return self.publish_many(topic, [payload])

    def publish_many(self, topic: bytes, payloads: list[bytes]) -> list[Output]:
        """Send data on one topic."""
        return list(self.core.publish_many(topic, payloads, DATA))

    def ask_links(self, peer: bytes) -> list[Output]:
        """Ask a peer whom it is peered with, see :mod:`dafka.overlay.wire.links`."""
        if peer not in self.core.peer.flooding.table.peers:
            return []
        return list(self.core.publish_to(peer, ASK, QUESTION, COMMAND))

    def answers_links(self, peer: bytes) -> bool:
        """Whether a peer is one that answers :meth:`ask_links`: those of version 1 do not."""
        flooding = self.core.peer.flooding
        return peer in flooding.table.peers or peer not in flooding.leaves

    def attach_master(
        self, name: str, content: Content | None = None, journal: Journal | None = None
    ) -> list[Output]:
        """With a journal, each Commit that follows is to be answered with :meth:`committed`.

        Raises :class:`StoreRefused` if there is a master that this endpoint knows of.
        """
        self.check_master(name)
        self._stores.attach_master(name, content, journal)
        return self._announce()

    def check_master(self, name: str) -> None:
        """Raises :class:`StoreRefused` if :meth:`attach_master` would."""
        topic = _checked(master_topic(name))
        if name in self.stores or self.core.is_subscribed_elsewhere(topic):
            raise StoreRefused(
                ErrorCode.MASTER_EXISTS, f"the store {name!r} has a master, or is attached here"
            )

    def attach_clone(self, name: str) -> list[Output]:
        """It finds its master by itself. Raises :class:`StoreRefused`."""
        _checked(master_topic(name))
        self._stores.attach_clone(name)
        return self._announce()

    def attach_proxy(self, name: str) -> list[Output]:
        """It finds its master by itself. Raises :class:`StoreRefused`."""
        _checked(master_topic(name))
        self._stores.attach_proxy(name)
        return self._announce()

    def detach(self, name: str) -> list[Output]:
        """The store is closed."""
        self._stores.detach(name)
        return self._announce()

    def write(self, now: float, name: str, action: Action) -> list[Output]:
        """Change a store of this endpoint."""
        return self._carry_stores(self._stores.write(now, name, action))

    def ask(self, now: float, name: str, query: Query, ticks: int) -> list[Output]:
        """Ask a store of this endpoint; the answer comes within so many ticks."""
        return self._carry_stores(self._stores.ask(now, name, query, ticks))

    def committed(self, name: str, failure: str | None = None) -> list[Output]:
        """The backend of a master has what it was given last, or could not write it."""
        return self._carry_stores(self._stores.committed(name, failure))

    def retry_commit(self, name: str) -> list[Output]:
        """Have the backend of a master given what it could not write, again."""
        return self._carry_stores(self._stores.retry_commit(name))

    # -- connections, as the core has them --------------------------------------------------------

    def connected(self, now: float, number: int, connector: bool) -> list[Output]:
        return self._carry(now, self.core.connected(now, number, connector))

    def received(self, now: float, number: int, message: bytes) -> list[Output]:
        return self._carry(now, self.core.received(now, number, message))

    def received_many(self, now: float, number: int, messages: list[bytes]) -> list[Output]:
        return self._carry(now, self.core.received_many(now, number, messages))

    def received_some(
        self, now: float, number: int, messages: list[bytes], begin: int
    ) -> tuple[list[Output], int]:
        outputs, end = self.core.received_some(now, number, messages, begin)
        return self._carry(now, outputs), end

    def undecodable(self, now: float, number: int, message: bytes) -> list[Output]:
        return self._carry(now, self.core.undecodable(now, number, message))

    def malformed(self, now: float, number: int, error: MalformedMessage) -> list[Output]:
        return self._carry(now, self.core.malformed(now, number, error))

    def disconnected(self, now: float, number: int) -> list[Output]:
        return self._carry(now, self.core.disconnected(now, number))

    def unpeer(self, now: float, peer: bytes) -> list[Output]:
        return self._carry(now, self.core.unpeer(now, peer))

    def shut_down(self, now: float) -> list[Output]:
        return self._carry(now, self.core.shut_down(now))

    def go_on(self, now: float) -> list[Output]:
        """Some of the work that the core is behind with."""
        return self._carry(now, self.core.go_on())

    def tick(self, now: float) -> list[Output]:
        """To be called ten times a second; stores count late ones too, up to a second's worth."""
        return self._carry(now, self.core.tick(now)) + self._carry_stores(self._stores.tick(now))

    @property
    def next_expiry(self) -> float | None:
        """When :meth:`expire` is to be called, if that is before a tick."""
        return self._stores.next_expiry

    def expire(self, now: float) -> list[Output]:
        """Keys of masters expire between two ticks."""
        return self._carry_stores(self._stores.expire(now))

    # -- within -------------------------------------------------------------------------------------

    def _announce(self) -> list[Output]:
        return list(self.core.subscribe([*self._prefixes, *self._stores.topics]))

    def _carry(self, now: float, steps: list[core.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            if isinstance(step, Deliver) and step.kind == COMMAND and step.topic == ASK:
                links = encode_links(self.core.peerings.peers, self.core.peer.flooding.filter)
                outputs += self.core.publish_to(step.publisher, ANSWER, links)
            elif isinstance(step, Deliver) and step.kind == COMMAND:
                outputs += self._carry_stores(self._stores.hear(now, step.topic, step.payload))
            else:
                outputs.append(step)
        return outputs

    def _carry_stores(self, steps: list[hosting.Output]) -> list[Output]:
        outputs: list[Output] = []
        for step in steps:
            match step:
                case SendCommand(topic, payload, None):
                    outputs += self.core.publish(topic, payload, COMMAND)
                case SendCommand(topic, payload, bytes() as receiver):
                    outputs += self.core.publish_to(receiver, topic, payload, COMMAND)
                case StoreOutput():
                    outputs.append(step)
        return outputs


def _checked(topic: bytes) -> bytes:
    """Raises :class:`StoreRefused` for a store whose name makes its topics too long."""
    if len(topic) > MOST_TOPIC:
        text = f"a store whose topic has {len(topic)} octets, at most {MOST_TOPIC}: choose a shorter name"
        raise StoreRefused(ErrorCode.INVALID_TOPIC_KEY, text)
    return topic
