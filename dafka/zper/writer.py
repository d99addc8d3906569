"""ZPWriter: takes the messages of DEALER, REQ and PUSH clients, and answers those that want it.

The identity of a client's socket says the topic and the mode. A client that does not read its answers is not
read either, once a bounded number of octets waits for it; it delays no other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain

import gevent
import gevent.event
from kafka.errors import KafkaError

from dafka.broker.interface.broker import BrokerInterface, TopicPartition
from dafka.hub.changes import Changes
from dafka.hub.hub import Hub
from dafka.sockets.errors import DisconnectedError
from dafka.sockets.peer import Peer
from dafka.zmtp.encoding import encode_all
from dafka.zper import limits
from dafka.zper.connected import Connected
from dafka.zper.discarded import Discarded
from dafka.zper.envelope import without_delimiters
from dafka.zper.flushing import Flushed, PartitionFlushes, Unflushed, Written
from dafka.zper.gathering import Run
from dafka.zper.identity import Identity, InvalidIdentityError, is_copy, parse
from dafka.zper.replicas import Replicas
from dafka.zper.settings import Settings
from dafka.zper.singles import Frames, Singles, SinglesTaker
from dafka.zper.topics import TopicRefusedError


class Writer:
    """Handles the clients of a :class:`dafka.sockets.router.Router`. Hub side."""

    def __init__(
        self,
        hub: Hub,
        broker: BrokerInterface,
        settings: Settings,
        discarded: Discarded,
        written: Written,
        replicas: Replicas,
    ) -> None:
        self._hub = hub
        self._broker = broker
        self._settings = settings
        self._discarded = discarded
        self._written = written
        self._replicas = replicas
        self._unflushed = Unflushed()
        self._flushed = Flushed()
        self._clients: dict[Peer, _Client | None] = {}  # None: its identity cannot be read
        self._partitions: dict[TopicPartition, PartitionFlushes] = {}
        self._closing = False

    def metrics(self) -> dict[str, int]:
        """By the names of :mod:`dafka.mesh.metrics`."""
        return {
            "zper_flushes": self._flushed.flushes,
            "zper_messages_in": self._flushed.messages,
            "zper_bytes_in": self._flushed.octets,
            "zper_unflushed_messages": self._unflushed.messages,
            "zper_unflushed_bytes": self._unflushed.octets,
        }

    def clients(self) -> Iterator[Connected]:
        """The connected clients whose identity could be read."""
        for peer, client in list(self._clients.items()):
            if client is not None:
                yield Connected(
                    "writer",
                    peer.address,
                    client.identity.topic,
                    client.identity.mode,
                    is_copy(peer.identity),
                    client.waiting,
                )

    def close(self) -> None:
        """Take nothing more, flush everything, and give clients time to take their answers."""
        self._closing = True
        for partition in list(self._partitions.values()):
            self._hub.spawn(partition.close)
        for partition in list(self._partitions.values()):
            partition.close()
        with gevent.Timeout(limits.LINGER_SECONDS, False):
            self._unflushed.drain()  # of those whose answers wait for replicas
            for client in list(self._clients.values()):
                if client is not None:
                    client.drain()

    # -- what the Router calls ------------------------------------------------------------------

    def joined(self, peer: Peer) -> None:
        """A client has connected."""
        try:
            identity = parse(peer.identity)
            self._clients[peer] = _Client(
                self._hub, peer, identity, is_copy(peer.identity) and bool(self._replicas)
            )
        except InvalidIdentityError as error:
            self._clients[peer] = None
            self._discarded.report("identity", f"a client of the ZPWriter is ignored: {error}", 0)

    def messages(self, peer: Peer, messages: Sequence[Frames]) -> None:
        """A client has sent messages; nothing more is read from it until this returns."""
        client = self._clients[peer]
        assert isinstance(peer.taker, SinglesTaker)
        parts = peer.taker.read(messages)
        count = sum(map(len, parts))
        if client is None:
            what = f"{count} messages of a client whose identity cannot be read"
            self._discarded.report("identity", what, count)
            return
        partition = client.partition
        if partition is None:
            partition = client.partition = self._partition(client.identity)
        try:
            partition.open()
        except (TopicRefusedError, KafkaError) as error:
            cause = error.cause if isinstance(error, TopicRefusedError) else "failed"
            self._discarded.report(cause, f"{count} messages: {error}", count)
            return
        now = time.time_ns() // 1_000_000
        for delimited, some in chain.from_iterable(map(without_delimiters, parts)):
            if self._closing:  # not taken, and nothing more is read: the rest stays with the client
                gevent.event.Event().wait()
            taken = some if self._settings.allow_empty_message else self._without_empty(some)
            run = Run(client, client.identity.mode, delimited, taken, now, client.copied)
            if taken:
                partition.take(run)
        client.wait()

    def left(self, peer: Peer) -> None:
        """A client has gone; its messages stay."""
        client = self._clients.pop(peer, None)
        if client is not None:
            client.gone()

    def _without_empty(self, messages: Sequence[Frames]) -> Sequence[Frames]:
        kept: Sequence[Frames]
        if isinstance(messages, Singles):
            kept = Singles([frame for frame in messages.frames if frame])
        else:
            kept = [message for message in messages if len(message) > 1 or message[0]]
        count = len(messages) - len(kept)
        if count:
            self._discarded.report("empty", f"{count} empty messages; allow_empty_message is off", count)
        return kept

    # -- partitions -----------------------------------------------------------------------------

    def _partition(self, identity: Identity) -> PartitionFlushes:
        key = identity.name, identity.partition
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = PartitionFlushes(
                self._hub,
                self._broker,
                *key,
                self._settings,
                self._unflushed,
                self._flushed,
                self._discarded,
                self._written,
                self._replicas,
                self._forget,
            )
        partition.attach()
        return partition

    def _forget(self, partition: PartitionFlushes) -> None:
        if self._partitions.get(partition.key) is partition:
            del self._partitions[partition.key]


class _Client:
    """A client whose identity could be read."""

    def __init__(self, hub: Hub, peer: Peer, identity: Identity, copied: bool) -> None:
        self._hub = hub
        self._peer = peer
        self.identity = identity
        self.copied = copied
        self.partition: PartitionFlushes | None = None  # from its first message on
        self._answers: deque[tuple[list[Frames], int]] = deque()  # with their octets
        self._octets = 0
        self._room = Changes()
        self._sending: gevent.Greenlet | None = None
        self._gone = False

    @property
    def waiting(self) -> int:
        """Octets of answers that it has not read."""
        return self._octets

    def answer(self, answers: list[Frames]) -> None:
        """Answers go out as fast as the client reads; does not wait."""
        if self._gone or self._peer.socket_type == b"PUSH":  # it reads nothing, whatever its mode
            return
        if not self._answers:
            buffers = encode_all(answers)
            if self._peer.offer_encoded(buffers, len(answers), sum(map(len, buffers))):
                return
        octets = sum(limits.ANSWER_BESIDE + len(frames[-1]) for frames in answers)
        self._answers.append((answers, octets))
        self._octets += octets
        if self._sending is None:
            self._sending = self._hub.spawn(self._send)

    def wait(self) -> None:
        """Wait while too many answers wait for the client."""
        while self._octets > limits.ANSWER_OCTETS and not self._gone:
            self._room.wait()

    def drain(self) -> None:
        """Wait until the socket has all answers."""
        while self._answers and not self._gone:
            self._room.wait()

    def gone(self) -> None:
        """The client has disconnected: it gets nothing more."""
        self._gone = True
        self._answers.clear()
        self._room.tell()
        if self._sending is not None:
            self._sending.kill(block=False)
        if self.partition is not None:
            self.partition.detach()

    def _send(self) -> None:
        while self._answers:
            answers, octets = self._answers[0]
            try:
                self._peer.send_many(answers)
            except DisconnectedError:  # nobody should wait any longer for this client to read
                self._gone = True
                self._room.tell()
                return
            self._answers.popleft()
            self._octets -= octets
            self._room.tell()
        self._sending = None
