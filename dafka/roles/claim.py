"""Claiming a partition: where a producer that was given its partition's name goes on, and other writers of
it.

A sensor may want the same partition after each restart. The partition then outlives the producers that write
it one after another, and a producer that numbered its records from 0 again would publish under numbers that
stores and consumers have long had. So it has an address of its own for each run, the *claimant*, and asks
before it numbers anything.

Asking. It sends CLAIM until it knows enough; a store answers with END. A store that knows no CLAIM, as
libdafka's, is sent a CONSUMER-HELLO, upon which it names its heads; it has no records of the partition if it
has not named it for ``plain_store_patience``. Everything is known when as many stores have answered as have
to acknowledge a record, every store that is connected among them, and nothing new has come for
``claim_settle``. Then the highest end counts.

Numbering. Stores are asked again whenever there is something to compare (:mod:`dafka.roles.producer`): the
records they acknowledge may be an earlier producer's.

Rivals. Producers of one partition hear each other's CLAIMs. One that is asking gives way to one that is
numbering; of two that are asking the one with the lower address goes on; of two that are numbering, which
have met too late, neither does. A CLAIM counts when it is heard twice, some time apart: the first may come
from a producer that has just been closed.
"""

from __future__ import annotations

from typing import NamedTuple

from dafka.protocol.batch import is_batch, read_header
from dafka.protocol.commands import Claim, Command, ConsumerHello, DirectHead, End, Fetch
from dafka.protocol.runs import Run
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import DEFAULT_LIMITS, LAST_SEQUENCE, Limits
from dafka.roles.outputs import Output, Subscribe

_RIVALS = 16  # that are told apart
RAW, BATCHES = 1, 2  # kinds of messages, as END has them
_SOON = 2.0  # seconds after a rival was heard in which CLAIM is repeated


class Position(NamedTuple):
    """Where a partition goes on: the sequence of the next message, and the offset of its first record.

    ``kind``: of the messages there, as END says it. ``witnessed``: messages before it that no store has and a
    consumer has seen; nobody can tell how many records they had, so their offsets are not in ``offset``.
    """

    sequence: int
    offset: int
    kind: int = 0
    witnessed: int = 0


class PartitionClaim:
    """The claim of the producer ``claimant`` to ``partition`` of ``topic``.

    ``min_stores``: how many stores have to answer.
    """

    def __init__(
        self,
        topic: bytes,
        partition: bytes,
        claimant: bytes,
        *,
        min_stores: int = 1,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.claimant = claimant
        self.numbering = False
        self.found: Position | None = None
        """Where to go on, when that is known."""
        self.rival = b""
        """The producer that this one gives way to."""
        self.answers: dict[bytes, End] = {}
        """By store: what it had when it was asked."""
        self.plain_end = 0
        """Where the partition ends in stores that know no CLAIM."""
        self.rivals: dict[bytes, tuple[float, float]] = {}
        """Other producers of the partition: when they were heard first and last."""
        self.stores = KnownStores()
        """The stores that are connected."""
        self._topic, self._partition = topic, partition
        self._wanted = max(1, min_stores)
        self._limits = limits
        self._asking_since: float | None = None
        self._news = 0.0
        self._answered_at: dict[bytes, float] = {}
        self._plain: dict[bytes, float] = {}  # stores that know no CLAIM, and when they were first asked
        self._witnessed = 0  # where the partition ends for consumers
        self._read: Position | None = None  # behind the last message, which was read from such a store
        self._claimed = float("-inf")  # the last CLAIM
        self._next_claim = float("-inf")
        self._next_read = 0.0
        self._interval = limits.claim_interval

    @property
    def answered(self) -> int:
        """How many stores have said what they have."""
        return len(self.answers)

    @property
    def highest(self) -> Position:
        """Where to go on as far as is known now."""
        best = max(self.answers.values(), key=lambda end: end.sequence, default=None)
        position = Position(0, 0) if best is None else Position(best.sequence, best.offset, best.kind)
        if self.plain_end > position.sequence:
            read = self._read
            known = read is not None and read.sequence == self.plain_end
            position = read if known and read else Position(self.plain_end, self.plain_end)
        behind = max(0, self._witnessed - position.sequence)
        return position._replace(sequence=position.sequence + behind, witnessed=behind)

    def start(self) -> list[Output]:
        """The subscriptions of a claimant."""
        prefixes = [b"C" + self._partition, *(octet + self.claimant for octet in (b"N", b"E", b"D"))]
        return [Subscribe(prefix) for prefix in prefixes]

    def claim(self, now: float, sample: int) -> Claim:
        """A CLAIM; stores are asked to sum up what they have from ``sample`` on."""
        self._claimed, self._next_claim = now, now + self._interval
        return Claim(self._partition, self.claimant, self._topic, sample, self.numbering)

    def begin(self) -> None:
        """The position found counts from now on."""
        self.numbering = True
        self._interval = self._limits.longest_claim_interval
        self.ask_soon()

    def ask_soon(self) -> None:
        """Stores have something to compare that they have not answered for yet."""
        self._next_claim = min(self._next_claim, self._claimed + self._limits.claim_interval)

    # -- what arrives -------------------------------------------------------------------------------

    def receive(self, now: float, command: Command, sample: int) -> list[Output]:
        """A CLAIM of somebody else, or an answer to this one's."""
        match command:
            case Claim(self._partition, rival, self._topic) if rival != self.claimant:
                return self._hear_rival(now, rival, command.numbering, sample)
            case End(self.claimant, self._partition, self._topic) if not self.numbering:
                self._hear_end(now, command)
            case DirectHead(self.claimant, self._partition, self._topic, sequence) if not self.numbering:
                if self.plain_end <= sequence < LAST_SEQUENCE:
                    self.plain_end = sequence + 1
                    self._news = now
        return []

    def receive_run(self, run: Run) -> None:
        """The last message of the partition, from a store that does not know offsets."""
        if run.recipient != self.claimant or (run.topic, run.address) != (self._topic, self._partition):
            return
        if run.first < self.plain_end <= run.next:
            content = run.contents[self.plain_end - 1 - run.first]
            batch = is_batch(content)
            offset = read_header(content).next_offset if batch else self.plain_end
            self._read = Position(self.plain_end, offset, BATCHES if batch else RAW)

    def peer_subscribed(self, now: float, prefix: bytes, sample: int) -> list[Output]:
        """A store (``C``) or a producer of the same partition has turned up."""
        if prefix == b"C" or prefix == b"C" + self._partition:
            return [] if self.rival else [self.claim(now, sample)]
        return []

    def tick(self, now: float, sample: int) -> list[Output]:
        """Ask again, and see whether enough is known."""
        if self.rival:
            return []
        if self._asking_since is None:
            self._asking_since = self._news = now
        outputs: list[Output] = []
        if not self.numbering and self.found is None:
            self._decide(now, outputs)
        crowd = any(now - last < _SOON for _, last in self.rivals.values())
        if now >= self._next_claim or (crowd and now >= self._claimed + self._limits.claim_interval):
            outputs.append(self.claim(now, sample))
            if not self.numbering:
                outputs += [ConsumerHello(store, self.claimant, (self._topic,)) for store in self._plain]
        return outputs

    def _hear_end(self, now: float, end: End) -> None:
        if not end.store:  # a consumer: it has seen records that stores may not have got
            if end.sequence > self._witnessed:
                self._witnessed, self._news = end.sequence, now
        elif end.store in self.answers or len(self.answers) < self._limits.stores:
            before = self.answers.get(end.store)
            if before is None or before.sequence < end.sequence:
                self._news = now
            self.answers[end.store] = end
            self._answered_at[end.store] = now

    def _decide(self, now: float, outputs: list[Output]) -> None:
        stores, limits = self.stores, self._limits
        plain = stores.present - stores.ours
        self._plain = {store: self._plain.get(store, now) for store in plain}
        # Lately: a store says nothing while records of an earlier producer are on their way into its log.
        lately = now - 2 * limits.claim_settle
        if any(self._answered_at.get(store, lately) <= lately for store in stores.ours):
            return
        if any(now - since < limits.plain_store_patience for since in self._plain.values()):
            return
        if len(self.answers) + len(plain) < self._wanted or now - self._news < limits.claim_settle:
            return
        if any(now - last < _SOON for _, last in self.rivals.values()):
            return  # first the rivals have to settle who owns the partition
        highest = self.highest
        stored = highest.sequence - highest.witnessed
        unread = stored == self.plain_end > 0 and (self._read is None or self._read.sequence != stored)
        if unread and all(end.sequence < stored for end in self.answers.values()):
            if now >= self._next_read:
                self._next_read = now + limits.fetch_timeout
                outputs.append(Fetch(self._partition, self.claimant, self._topic, stored - 1, 1))
            return
        self.found = highest

    def _hear_rival(self, now: float, rival: bytes, numbering: bool, sample: int) -> list[Output]:
        if self.rival or (rival not in self.rivals and len(self.rivals) >= _RIVALS):
            return []
        first, last = self.rivals.get(rival, (now, now))
        if now - last > 2 * _SOON:
            first = now
        self.rivals[rival] = first, now
        gives_way = numbering or (not self.numbering and rival < self.claimant)
        if gives_way and now - first >= self._limits.claim_interval * 0.9:
            self.rival = rival
            return []
        if now - self._claimed >= self._limits.claim_interval / 2:
            return [self.claim(now, sample)]
        return []
