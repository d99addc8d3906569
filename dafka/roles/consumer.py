"""The consumer: the records of its topics, each partition in order, without gaps, none twice.

"If a consumer subscribes to a dafka topic it SHALL sent a GET-HEADS command in order to get the heads for
each partition of that topic." "When a consumer receives, on its consumer socket, a STORE-HELLO command it
SHOULD reply with a CONSUMER-HELLO command. [...] If the consumer is not subscribed to any dafka topic it
MUST NOT send a CONSUMER-HELLO command." (46/DAFKA) A store that subscribes to its hello gets one,
too, as from C consumers.

Where a partition starts when it is first heard of. With a start given for it: there. ``earliest``: at
sequence 0. ``latest``: at the first RECORD that arrives, or behind the first HEAD or DIRECT-HEAD. A HELLO of
a ``latest`` consumer names no topics as long as heads could tell it nothing, as with C consumers; once it has
positions they could: that it missed the last record of a producer that is gone.

GET-HEADS may be lost, or be sent before any store is connected, and only stores speak for producers that
are gone. So it is repeated, at intervals that double.

A producer that claims a partition (:mod:`dafka.roles.claim`) is told how far the user has been given it, and
will number its own records from there. So records of the producer before it that wait unread for room are
not taken any more: until all that waits has been read, published records of the partition only say how far
it reaches, and what stores have of it is fetched.

Missed records are fetched as :mod:`dafka.roles.catchup` has it. FETCH is credit: nothing is asked for that
there is no room for. ZeroMQ topics are matched by prefix, so names and addresses are compared here.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from dafka.protocol.commands import (
    Claim,
    Command,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    End,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.framing import STRINGS_LIMIT
from dafka.protocol.runs import Run
from dafka.roles.catchup import CatchUp
from dafka.roles.follower import Follower
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import DEFAULT_LIMITS, LAST_SEQUENCE, Limits
from dafka.roles.outputs import Deliver, Gap, Output, Subscribe, Unsubscribe


class ConsumerRole:
    """The consumer ``address``.

    ``offset_reset``: ``"earliest"`` or ``"latest"``. ``offsets``: sequences to start at, by partition, which
    go before it. There is no room for records until :meth:`set_room` has said how much.
    """

    def __init__(
        self,
        address: bytes,
        *,
        offset_reset: str = "latest",
        offsets: Mapping[bytes, int] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if offset_reset not in ("earliest", "latest"):
            raise ValueError(f"offset_reset is 'earliest' or 'latest', not {offset_reset!r}")
        self.address = address
        self.refused = 0
        """Times something came of a partition that the table had no place for."""
        self._latest = offset_reset == "latest"
        self._offsets = dict(offsets or {})
        self._limits = limits
        self._topics: dict[bytes, dict[bytes, Follower]] = {}
        self._followed = 0  # partitions in all topics
        self.reclaimed: set[tuple[bytes, bytes]] = set()
        """Topic and partition, while records of an earlier producer may wait unread."""
        self._catchup: CatchUp[Follower] = CatchUp(address, _deliver, _gap, limits)
        # When GET-HEADS is due again: (time, serial, topic, interval).
        self._heads: list[tuple[float, int, bytes, float]] = []
        self._serial = 0

    @property
    def topics(self) -> list[bytes]:
        """The topics subscribed to, in that order."""
        return list(self._topics)

    @property
    def positions(self) -> dict[tuple[bytes, bytes], tuple[int, int]]:
        """By (topic, partition): the next sequence to be delivered, and the end that is known of."""
        return {
            (topic, address): (follower.next, follower.end)
            for topic, followers in self._topics.items()
            for address, follower in followers.items()
        }

    @property
    def lag(self) -> int:
        """Records known of and not delivered, over all partitions."""
        return sum(end - position for position, end in self.positions.values())

    @property
    def fetches(self) -> int:
        """FETCHes sent so far."""
        return self._catchup.fetches

    @property
    def timeouts(self) -> int:
        """FETCHes so far that were not answered in time."""
        return self._catchup.timeouts

    @property
    def unanswered(self) -> int:
        """Partitions with records that are known of and that nobody sends; they are asked for again."""
        return self._catchup.unanswered

    def unanswered_since(self, time: float) -> int:
        """How many of them have been so since that time, or for longer."""
        return self._catchup.unanswered_since(time)

    @property
    def longest_unanswered(self) -> tuple[bytes, bytes, int, int] | None:
        """Topic, partition, next sequence and known end of that of them which has waited longest."""
        longest = self._catchup.longest_unanswered
        return None if longest is None else (longest.topic, longest.address, longest.next, longest.end)

    # -- the user -----------------------------------------------------------------------------------

    def know_stores(self, stores: KnownStores) -> None:
        """The connected stores; the endpoint, which carries the subscriptions, keeps them up to date."""
        self._catchup.stores = stores

    def start(self) -> list[Output]:
        """The subscriptions that every consumer has; C is of ours, and T."""
        own = [octet + self.address for octet in (b"D", b"E", b"L", b"T")]
        return [Subscribe(prefix) for prefix in (*own, b"C")]

    def subscribe(self, now: float, topic: bytes) -> list[Output]:
        """Consume ``topic`` too."""
        if topic in self._topics:
            return []
        self._topics[topic] = {}
        self._ask_for_heads(now, topic, self._limits.heads_interval)
        return [Subscribe(b"M" + topic), Subscribe(b"H" + topic), GetHeads(topic, self.address)]

    def unsubscribe(self, now: float, topic: bytes) -> list[Output]:
        """Forget ``topic`` and the positions in its partitions."""
        followers = self._topics.pop(topic, None)
        if followers is None:
            return []
        self._heads = [entry for entry in self._heads if entry[2] != topic]
        heapq.heapify(self._heads)
        self._followed -= len(followers)
        outputs: list[Output] = [Unsubscribe(b"M" + topic), Unsubscribe(b"H" + topic)]
        self._catchup.drop(followers.values())
        self._catchup.pump(now, outputs)
        return outputs

    def set_room(self, now: float, records: int, size: int) -> list[Output]:
        """There is room for so many records and bytes now; later deliveries use it up."""
        outputs: list[Output] = []
        self._catchup.set_room(records, size)
        self._catchup.pump(now, outputs)
        return outputs

    # -- the mesh -----------------------------------------------------------------------------------

    def follower(self, topic: bytes, address: bytes) -> Follower | None:
        """A partition that is followed.

        Who takes the next record of one that is idle, and knows of none behind it, may do so without this
        role: by moving ``next`` and ``end``, while no method is being called and nothing is reclaimed.
        """
        followers = self._topics.get(topic)
        return None if followers is None else followers.get(address)

    def receive_run(self, now: float, run: Run) -> list[Output]:
        """Published or fetched records of one partition."""
        outputs: list[Output] = []
        followers = self._topics.get(run.topic)
        end = run.first + len(run.contents)
        if followers is None or not run.contents or end > LAST_SEQUENCE:
            return outputs
        if run.recipient is not None and run.recipient != self.address:
            return outputs
        follower = followers.get(run.address)
        if follower is None:
            if run.recipient is not None:
                return outputs  # never asked for
            follower = self._follow(run.topic, run.address, run.first)
            if follower is None:
                return outputs
        if run.recipient is None and (run.topic, run.address) in self.reclaimed:
            self._catchup.heard_of(follower, end)
        else:
            self._catchup.receive(now, follower, run, outputs)
        self._catchup.pump(now, outputs)
        return outputs

    def read_up(self) -> None:
        """All published records have been read that had come when a partition was claimed."""
        self.reclaimed.clear()

    def receive(self, now: float, command: Command, *, unread: bool = False) -> list[Output]:
        """Any other command; those for other nodes are ignored.

        ``unread``: published records that came before it may wait for room.
        """
        outputs: list[Output] = []
        match command:
            case Head(address, topic, sequence):
                self._heard_of(topic, address, sequence)
            case DirectHead(self.address, address, topic, sequence):
                follower = self._heard_of(topic, address, sequence)
                if follower is not None and follower.next <= sequence:
                    self._catchup.encourage(follower)
            case StoreHello(self.address, store):
                outputs += self._hello(store)
                self._catchup.encourage_all()
            case Trimmed(self.address, address, topic, first, source) if first <= LAST_SEQUENCE:
                follower = self._topics.get(topic, {}).get(address)
                if follower is not None:
                    self._catchup.trimmed(now, follower, first, source)
            case Claim(address, claimant, topic):
                self._claimed(claimant, topic, address, unread, outputs)
            case Record(address, topic, sequence, content):
                return self.receive_run(now, Run(None, address, topic, sequence, [content]))
            case DirectRecord(recipient, address, topic, sequence, content):
                return self.receive_run(now, Run(recipient, address, topic, sequence, [content]))
        self._catchup.pump(now, outputs)
        return outputs

    def peer_subscribed(self, now: float, prefix: bytes) -> list[Output]:
        """A peer subscribed to ``prefix``; if that is ``W`` and an address, a store wants to be greeted."""
        return self._hello(prefix[1:]) if prefix[:1] == b"W" and 1 < len(prefix) <= 256 else []

    def tick(self, now: float) -> list[Output]:
        """Repeat what was lost. To be called every tenth of a second or so; cheap when nothing is due."""
        outputs: list[Output] = []
        heads = self._heads
        for _ in range(self._limits.heads_at_once):
            if not heads or heads[0][0] > now:
                break
            _, _, topic, interval = heapq.heappop(heads)
            self._ask_for_heads(now, topic, min(interval * 2, self._limits.longest_heads_interval))
            outputs.append(GetHeads(topic, self.address))
        self._catchup.tick(now, outputs)
        return outputs

    # -- partitions ---------------------------------------------------------------------------------

    def _heard_of(self, topic: bytes, address: bytes, sequence: int) -> Follower | None:
        """The head of a partition is ``sequence``."""
        followers = self._topics.get(topic)
        if followers is None or sequence >= LAST_SEQUENCE:
            return None
        follower = followers.get(address)
        if follower is None:
            follower = self._follow(topic, address, sequence + 1)
        if follower is not None:
            self._catchup.heard_of(follower, sequence + 1)
        return follower

    def _claimed(
        self, claimant: bytes, topic: bytes, address: bytes, unread: bool, outputs: list[Output]
    ) -> None:
        """A producer claims a partition; all that this consumer may have of it may wait unread.

        Also of a topic that it does not consume: it may have done so, or may do so before that is read.
        """
        follower = self._topics.get(topic, {}).get(address)
        is_new = follower is None or follower.claimant != claimant
        if unread and is_new and len(self.reclaimed) < self._limits.partitions:
            self.reclaimed.add((topic, address))
        if follower is not None:
            self._catchup.claimed(follower, claimant)
            if follower.next > self._offsets.get(address, 0):
                outputs.append(End(claimant, address, topic, follower.next, b""))

    def _follow(self, topic: bytes, address: bytes, latest: int) -> Follower | None:
        """Begin with a partition; ``latest`` is where it starts if it is to start at the latest record."""
        if self._followed >= self._limits.partitions or not address:
            self.refused += 1
            return None
        start = self._offsets.get(address, latest if self._latest else 0)
        follower = Follower(
            topic, address, start, self._limits.first_window, self._limits.guessed_record_bytes
        )
        self._topics[topic][address] = follower
        self._followed += 1
        return follower

    def _hello(self, store: bytes) -> list[Output]:
        if not self._topics:
            return []
        of_use = not self._latest or self._offsets or self._followed
        topics = tuple(self._topics) if of_use else ()
        pieces = range(0, max(len(topics), 1), STRINGS_LIMIT)
        return [ConsumerHello(store, self.address, topics[at : at + STRINGS_LIMIT]) for at in pieces]

    def _ask_for_heads(self, now: float, topic: bytes, interval: float) -> None:
        self._serial += 1
        heapq.heappush(self._heads, (now + interval, self._serial, topic, interval))


def _deliver(follower: Follower, first: int, contents: list[bytes], size: int) -> Output:
    fields = (follower.topic, follower.address, first, contents)
    return tuple.__new__(Deliver, fields)  # for each record that comes alone: a call less


def _gap(follower: Follower, first: int, following: int) -> Output:
    return Gap(follower.topic, follower.address, first, following)
