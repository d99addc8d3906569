"""The store: keeps every partition it hears of, and speaks for producers that are gone.

"A store SHALL subscribe to all RECORD commands". "When a store saved a record from a producer it SHALL
ackowledge this by sending the ACK command to the same producer." "Upon receiving a FETCH command a producer
or store SHALL check if it has stored the requested record(s). In case a requested record is available it
SHALL send a DIRECT-RECORD command." "After receiving a GET-HEADS command a store SHALL send one DIRECT-HEAD
command for each partition it has records stored on the requested dafka topic". "When a store receives, on
its publisher socket, a STORE-HELLO subscription it SHALL send [...] a STORE-HELLO command to the
subscriber." (46/DAFKA)

A record passes two lines. *Received*: handed to the log (``next``). *Committed*: the log has said so. Only
what is committed is acknowledged, served, and told as a head; only what is not received is fetched. The
number of records between the lines is bounded: beyond that the store takes none and fetches them later.

An ACK stands for everything up to its sequence. One may be lost, and a producer shows that it still waits
by nothing but its HEADs; so a HEAD, or a record that is stored already, has the ACK repeated, at intervals
that double.

Stores learn from each other, or partitions whose producer is gone would never reach a store that joins late.
A store asks the others for the heads of all topics, by a GET-HEADS whose topic is empty: every name begins
with the empty one, so C stores, which compare prefixes, answer it too. It asks when another store shows up,
by a subscription to all GET-HEADS, and again from time to time.

A FETCH below a partition's first record is answered with TRIMMED, our addition, or its sender would wait for
ever. So is one for a record that this store is looking for itself and has been told is trimmed: or two stores
that lack the same record would wait for each other. Names and addresses are compared here, because ZeroMQ
matches prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from dafka.protocol.commands import (
    Ack,
    Claim,
    Command,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    End,
    Fetch,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.parted import PartedDict
from dafka.protocol.runs import Run
from dafka.roles.catchup import CatchUp
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import DEFAULT_LIMITS, LAST_SEQUENCE, Limits
from dafka.roles.outputs import Begin, Hold, Output, Serve, Subscribe, TellHeads
from dafka.roles.stored import StoredPartition, append, begin

ALL_TOPICS = b""
"""GET-HEADS of this topic asks for the heads of every partition."""


class StoreRole:
    """The store ``address``; ``partitions``: first and next sequence in its log, by (topic, partition)."""

    def __init__(
        self,
        address: bytes,
        partitions: Mapping[tuple[bytes, bytes], tuple[int, int]] | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.address = address
        self.refused = 0
        """Times something came of a partition that the table had no place for."""
        self._limits = limits
        self._partitions = PartedDict[tuple[bytes, bytes], StoredPartition]()
        self._led = 0  # how many of them this process itself leads
        self._topics: dict[bytes, dict[bytes, StoredPartition]] = {}  # by address
        self._catchup: CatchUp[StoredPartition] = CatchUp(address, append, begin, limits)
        self._catchup.set_room(limits.uncommitted_records, limits.uncommitted_bytes)
        self._resume = float("-inf")  # a write failed; nothing is taken before this time
        self._next_heads = float("-inf")
        self._heads_interval = limits.heads_interval
        for (topic, partition), (first, following) in (partitions or {}).items():
            self._add(topic, partition, first, following)

    @property
    def positions(self) -> dict[tuple[bytes, bytes], tuple[int, int, int]]:
        """By (topic, partition): the first sequence, the committed end, and how far it is known to reach."""
        return {key: (stored.first, stored.committed, stored.end) for key, stored in self._partitions.items()}

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self._partitions)

    def lags(self) -> Iterator[int]:
        """By how many records the log is behind with each partition that there is now."""
        return (max(0, stored.end - stored.committed) for stored in list(self._partitions.values()))

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

    def know_stores(self, stores: KnownStores) -> None:
        """The connected stores; the endpoint, which carries the subscriptions, keeps them up to date."""
        self._catchup.stores = stores

    def start(self) -> list[Output]:
        """The subscriptions of a store, and two of ours: T, and E for the heads of other stores."""
        own = [octet + self.address for octet in (b"D", b"W", b"T", b"E")]
        return [Subscribe(prefix) for prefix in (b"M", b"H", b"F", b"G", b"C", *own)]

    # -- the log ------------------------------------------------------------------------------------

    def know(self, topic: bytes, address: bytes, first: int, following: int) -> None:
        """The log has the partition's records from ``first`` up to ``following``.

        For a log that is read while the store runs already: records :meth:`stored` meanwhile count.
        """
        stored = self._partitions.get((topic, address))
        if stored is None:
            self._add(topic, address, first, following)
        else:
            stored.first = max(stored.first, first)

    def lead(self, topic: bytes, address: bytes) -> None:
        """This process itself numbers the partition's records. It takes no place of what the mesh brings."""
        stored = self._partitions.get((topic, address)) or self._add(topic, address, 0, 0)
        if not stored.led:
            stored.led = True
            self._led += 1

    def stored(self, now: float, topic: bytes, address: bytes, end: int) -> list[Output]:
        """The log has committed the partition up to, not including, ``end``.

        Also for what this process appended by itself: the store goes on behind it.
        """
        outputs: list[Output] = []
        stored = self._partition(topic, address)
        if stored is not None:
            self._give_back(stored, end)
        if stored is None or end <= stored.committed:
            return outputs
        stored.committed = stored.log_end = end
        if end > stored.next:
            self._catchup.advance(now, stored, end, outputs)
        stored.ack_interval = self._limits.ack_interval
        outputs.append(self._acknowledge(now, stored))
        self._pump(now, outputs)
        return outputs

    def not_stored(self, now: float, topic: bytes, address: bytes, end: int) -> list[Output]:
        """The append up to ``end`` failed: records of the partition that the log has not committed are
        fetched again.

        Appends behind it that are still under way must fail as well: they would leave a hole. They take room
        until that is said.
        """
        stored = self._partitions.get((topic, address))
        failed = None if stored is None else stored.take_failed(end)
        if stored is None or failed is None:
            return []
        self._catchup.room.give_back(failed.records, failed.size)
        if failed.fails:
            return []
        self._resume = now + self._limits.write_pause
        self._catchup.restart(now, stored, stored.committed, self._limits.write_pause)
        return [Begin(topic, address, stored.committed)] if stored.log_end < stored.committed else []

    def served(self, recipient: bytes, topic: bytes, address: bytes, end: int) -> list[Output]:
        """An answer has ended at ``end``: where more is stored, the recipient is told.

        C consumers ask for 100 000 records at most, and go on only when they hear of a head.
        """
        stored = self._partitions.get((topic, address))
        if stored is None or end >= stored.committed:
            return []
        return [DirectHead(recipient, address, topic, stored.committed - 1)]

    def trimmed(self, topic: bytes, address: bytes, first: int) -> None:
        """Retention has removed the records below ``first`` from the log."""
        stored = self._partitions.get((topic, address))
        if stored is not None:
            stored.first = max(stored.first, first)

    def forget(self, topic: bytes, addresses: Iterable[bytes]) -> None:
        """These partitions were deleted for good: nothing of them is told or asked for any more."""
        known = (self._partitions.pop((topic, address), None) for address in addresses)
        gone = {stored for stored in known if stored is not None}
        if not gone:
            return
        for stored in gone:
            self._give_back(stored, LAST_SEQUENCE)
            self._led -= stored.led
        self._catchup.drop(gone)
        for stored in gone:
            del self._topics[topic][stored.address]
        if not self._topics[topic]:
            del self._topics[topic]

    # -- the mesh -----------------------------------------------------------------------------------

    def receive_run(self, now: float, run: Run) -> list[Output]:
        """Published or fetched records of one partition."""
        outputs: list[Output] = []
        if not run.contents or run.next > LAST_SEQUENCE:
            return outputs
        if run.recipient is None:
            stored = self._partition(run.topic, run.address)
        elif run.recipient == self.address:
            stored = self._partitions.get((run.topic, run.address))
        else:
            return outputs
        if stored is None:
            return outputs
        if run.next <= stored.committed:
            if run.recipient is None:
                self._acknowledge_again(now, stored, outputs)
        elif now < self._resume and run.recipient is None:
            outputs.append(Hold(run))
        elif now < self._resume:
            self._catchup.heard_of(stored, run.next)
        else:
            self._catchup.receive(now, stored, run, outputs)
        self._pump(now, outputs)
        return outputs

    def receive(self, now: float, command: Command, *, unread: bool = False) -> list[Output]:
        """Any other command; those for other nodes, or from this store, are ignored.

        ``unread``: published records that came before it may wait for room.
        """
        outputs: list[Output] = []
        match command:
            case Head(address, topic, sequence):
                stored = self._heard_of(topic, address, sequence)
                if stored is not None and sequence < stored.committed:
                    self._acknowledge_again(now, stored, outputs)
            case Fetch():
                self._serve(command, outputs)
            case Claim():
                self._tell_end(command, unread, outputs)
            case GetHeads(topic, recipient) if recipient != self.address:
                topics = list(self._topics) if topic == ALL_TOPICS else [topic]
                self._tell_heads(recipient, topic, topics, outputs)
            case ConsumerHello(self.address, recipient, topics):
                self._tell_heads(recipient, ALL_TOPICS, topics, outputs)
            case DirectHead(self.address, address, topic, sequence):
                stored = self._heard_of(topic, address, sequence)
                if stored is not None and stored.next <= sequence:
                    self._catchup.encourage(stored)
            case Trimmed(self.address, address, topic, first, source) if first <= LAST_SEQUENCE:
                stored = self._partitions.get((topic, address))
                # While records are on their way into the log it is too early to leave some out.
                if stored is not None and not stored.pending:
                    self._catchup.trimmed(now, stored, first, source)
            case Record(address, topic, sequence, content):
                return self.receive_run(now, Run(None, address, topic, sequence, [content]))
            case DirectRecord(recipient, address, topic, sequence, content):
                return self.receive_run(now, Run(recipient, address, topic, sequence, [content]))
        self._pump(now, outputs)
        return outputs

    def peer_subscribed(self, now: float, prefix: bytes) -> list[Output]:
        """A peer subscribed to ``prefix``: to its hello (``L``, its address), or as stores do to ``G``."""
        outputs: list[Output] = []
        if prefix == b"G":
            self._heads_interval = self._limits.heads_interval
            self._ask_for_heads(now, outputs)
            self._catchup.encourage_all()
            self._pump(now, outputs)
        elif prefix[:1] == b"L" and 1 < len(prefix) <= 256:
            outputs.append(StoreHello(prefix[1:], self.address))
        return outputs

    def tick(self, now: float) -> list[Output]:
        """Repeat what was lost. To be called every tenth of a second or so; cheap when nothing is due."""
        return [output for some in self.ticking(now) for output in some]

    def ticking(self, now: float) -> Iterator[list[Output]]:
        """The same, some of it at a time; anything else may be called in between."""
        outputs: list[Output] = []
        if now >= self._next_heads:
            self._ask_for_heads(now, outputs)
        if now >= self._resume:
            for _ in self._catchup.ticking(now, outputs):
                yield outputs[:]
                outputs.clear()
        yield outputs

    # -- partitions ---------------------------------------------------------------------------------

    def _partition(self, topic: bytes, address: bytes) -> StoredPartition | None:
        stored = self._partitions.get((topic, address))
        if stored is None:
            if len(self._partitions) - self._led >= self._limits.partitions or not topic or not address:
                self.refused += 1
                return None
            stored = self._add(topic, address, 0, 0)
        return stored

    def _add(self, topic: bytes, address: bytes, first: int, following: int) -> StoredPartition:
        stored = StoredPartition(topic, address, first, following, self._limits)
        self._partitions[topic, address] = stored
        self._topics.setdefault(topic, {})[address] = stored
        return stored

    def _heard_of(self, topic: bytes, address: bytes, sequence: int) -> StoredPartition | None:
        """The head of a partition is ``sequence``."""
        if sequence >= LAST_SEQUENCE:
            return None
        stored = self._partition(topic, address)
        if stored is not None:
            self._catchup.heard_of(stored, sequence + 1)
        return stored

    def _pump(self, now: float, outputs: list[Output]) -> None:
        if now >= self._resume:
            self._catchup.pump(now, outputs)

    def _give_back(self, stored: StoredPartition, end: int) -> None:
        """Records under way to the log below ``end`` take no room any more."""
        for over in stored.take_pending(end):
            self._catchup.room.give_back(over.records, over.size)

    def _acknowledge(self, now: float, stored: StoredPartition) -> Output:
        stored.ack_due = now + stored.ack_interval
        return Ack(stored.address, stored.topic, stored.committed - 1, self.address)

    def _acknowledge_again(self, now: float, stored: StoredPartition, outputs: list[Output]) -> None:
        if now >= stored.ack_due and stored.committed:
            outputs.append(self._acknowledge(now, stored))
            stored.ack_interval = min(stored.ack_interval * 2, self._limits.longest_ack_interval)

    def _serve(self, fetch: Fetch, outputs: list[Output]) -> None:
        partition, requester, topic, first, count = fetch
        stored = self._partitions.get((topic, partition))
        if stored is None or requester == self.address or not count:
            return
        if first < stored.first:
            outputs.append(Trimmed(requester, partition, topic, stored.first, self.address))
        elif first < stored.log_end:
            count = min(count, stored.log_end - first, self._limits.answer_records)
            outputs.append(Serve(requester, topic, partition, first, count))
        elif first < stored.committed:
            # Left out by a Begin that no record has come behind yet, so the log knows nothing of it.
            outputs.append(Trimmed(requester, partition, topic, stored.committed, self.address))
        elif stored.lacks(first):
            following = stored.ahead_first if stored.ahead else stored.trimmed
            outputs.append(Trimmed(requester, partition, topic, min(following, stored.trimmed), self.address))

    def _tell_end(self, claim: Claim, unread: bool, outputs: list[Output]) -> None:
        partition, claimant, topic, sample, numbering = claim
        stored = self._partitions.get((topic, partition))
        if stored is not None:
            self._catchup.claimed(stored, claimant)
        if (unread or (stored is not None and stored.pending)) and not numbering:
            return  # records are on their way into the log: the claimant asks again
        end = 0 if stored is None else stored.committed
        count = max(0, min(end - sample, self._limits.sample_records))
        outputs.append(End(claimant, partition, topic, end, self.address, first=sample, count=count))

    def _tell_heads(
        self, recipient: bytes, asked: bytes, topics: Iterable[bytes], outputs: list[Output]
    ) -> None:
        heads = self._heads(recipient, topics)
        at_once = self._limits.told_at_once
        some = list(islice(heads, at_once))
        outputs += some
        if len(some) == at_once:
            outputs.append(TellHeads(recipient, asked, heads))

    def _heads(self, recipient: bytes, topics: Iterable[bytes]) -> Iterator[DirectHead]:
        for topic in dict.fromkeys(topics):  # a hello may repeat one 65 536 times
            # A list of what is there already: pairs of a hundred thousand would take ten milliseconds.
            for stored in list(self._topics.get(topic, {}).values()):
                if stored.committed and self._partitions.get((topic, stored.address)) is stored:
                    yield DirectHead(recipient, stored.address, topic, stored.committed - 1)

    def _ask_for_heads(self, now: float, outputs: list[Output]) -> None:
        outputs.append(GetHeads(ALL_TOPICS, self.address))
        self._next_heads = now + self._heads_interval
        self._heads_interval = min(self._heads_interval * 2, self._limits.longest_heads_interval)
