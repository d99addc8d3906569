"""The producer: numbers records, publishes them, and keeps them until enough stores have them.

"The first record of each partition SHALL have the offset 0. Each following record's offset SHALL be the
previous record's offset incremented by 1." "A producer MUST NOT delete send records before receiving at
least one ACK command." "After a producer published its first record it SHALL send the HEAD command at
regular a interval." "Upon receiving a FETCH command a producer or store SHALL check if it has stored the
requested record(s). In case a requested record is available it SHALL send a DIRECT-RECORD command." "After
receiving a GET-HEADS command a producer SHALL send a DIRECT-HEAD command if it publishes records to dafka
topic requested by the GET-HEADS command." (46/DAFKA)

An ACK stands for everything up to its sequence. A record is acknowledged when ``min_stores`` distinct
stores have acknowledged it; then it is let go. ACKs of C stores do not name their store: all of those
together count as one. With ``min_stores`` 0 nothing has to be acknowledged and everything is kept for
consumers, until :meth:`ProducerRole.forget`.

A FETCH below what is retained is left to the stores, which have acknowledged it: they may be busy, or away
for a moment, and a consumer that hears "trimmed" skips. It is left to a connected store that has not
acknowledged it, too, because the record may be on its way into that store's log, until the store itself asks
for that record or has not got on with the partition for ``Limits.commit_patience``. Records that were
forgotten before any store had them are reported as trimmed. So are those that the one store which had
acknowledged them asks for itself: it has come back without them, after a power cut or from a copy of its
folder, and would wait for them for ever. With a ``store_timeout`` so are those of stores that have
acknowledged nothing for so long: the specification does not say what happens when the one store that sent the
ACK is lost with its disk, and without this its followers, new stores among them, wait for it for ever. Our
stores repeat the ACK of an idle partition every ``Limits.longest_ack_interval``. A record is never published
twice on its own account: HEAD shows those that missed it what to fetch.

HEADs follow each other at ``head_interval`` while something is new: records that were published or are not
acknowledged, a peer that has subscribed. Each one after that takes twice as long, up to
``Limits.longest_head_interval``: ten thousand idle partitions cost little, and what a lost HEAD would have
told is told by the next one.

A store that acknowledges what was never published here has its records from an earlier producer of the same
address, and no place for those of this one: from then on its ACKs count for nothing. A producer that was
given its address finds out before its first record where an earlier one ended (:mod:`dafka.roles.claim`), and
goes on there. Even so an earlier producer's records may take the numbers of this one's in a store: they were
still on their way, or come from a store that was away. So an ACK of such a partition only says that there is
something to compare. A CLAIM then asks the store for the checksum of what it has from the first retained
record on, and what is the same here and there counts as acknowledged.

ZeroMQ topics are matched by prefix, so subjects and addresses are compared here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain, islice

from crc32c import crc32c

from dafka.protocol.commands import Ack, Command, DirectHead, End, Fetch, GetHeads, Head, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.claim import PartitionClaim, Position
from dafka.roles.heads import HeadPace
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import DEFAULT_LIMITS, Limits
from dafka.roles.outputs import Output, Subscribe

_CHUNK = 1000  # records in one list of the retained ones


class ProducerRole:
    """The producer of the partition ``address`` of ``topic``.

    ``head_interval``: seconds between HEADs while something is new. ``store_timeout``: seconds after which a
    silent store is given up; None waits for it for ever, and with a time HEADs, which stores answer with an
    ACK now and then, never take longer. ``claim``: for an address that may have been a producer's before;
    nothing can be published until :meth:`begin`.
    """

    def __init__(
        self,
        topic: bytes,
        address: bytes,
        *,
        min_stores: int = 1,
        head_interval: float = 1.0,
        store_timeout: float | None = None,
        claim: PartitionClaim | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.topic = topic
        self.address = address
        self.min_stores = min_stores
        self.claim = claim
        self.first_sequence = 0
        """The sequence of the first record of this producer."""
        self.next_sequence = 0
        """The sequence of the record to be published next."""
        self.first_retained = 0
        """The first sequence that can be fetched from here; ``next_sequence`` if none can."""
        self.first_unacknowledged = 0
        """The first sequence that fewer than ``min_stores`` stores have acknowledged."""
        self.retained_bytes = 0
        """The size of all retained contents."""
        self.disputed = 0
        """Stores have the partition up to here, beyond all that was published; 0: no store has said so."""
        self.store_timeout = store_timeout
        self._limits = limits
        longest = head_interval if store_timeout is not None else limits.longest_head_interval
        self._heads = HeadPace(head_interval, longest)
        self._chunks: deque[list[bytes]] = deque()  # from first_retained on; nobody else's lists
        self._stores: dict[bytes, int] = {}  # store: first sequence it has not acknowledged
        self._heard: dict[bytes, float] = {}  # store: when its last ACK came
        self._known_stores = KnownStores()
        self._asked: dict[bytes, int] = {}  # connected store: the sequence it asked for last
        self._noticed: dict[bytes, float] = {}  # connected store: when it asked so, or was first thought of
        self._strangers: set[bytes] = set()  # stores that have another producer's records
        self._to_compare: dict[bytes, int] = {}  # store: the end it acknowledged, of any producer's records
        self._compared = (0, 0)  # of the last CLAIM: its first record, and the end to be reached

    @property
    def unacknowledged(self) -> int:
        """How many published records fewer than ``min_stores`` stores have acknowledged."""
        return self.next_sequence - self.first_unacknowledged

    @property
    def unstored(self) -> int:
        """How many published records some connected store has not acknowledged; 0 while none is connected."""
        known, acknowledged = self._known_stores, self._stores
        ends = (acknowledged.get(store if store in known.ours else b"", 0) for store in known.present)
        return self.next_sequence - max(min(ends, default=self.next_sequence), self.first_sequence)

    def know_stores(self, stores: KnownStores) -> None:
        """The connected stores; the endpoint, which carries the subscriptions, keeps them up to date."""
        self._known_stores = stores
        if self.claim is not None:
            self.claim.stores = stores

    def start(self) -> list[Output]:
        """The subscriptions of a producer."""
        prefixes = b"K" + self.address, b"F" + self.address, b"G" + self.topic
        outputs: list[Output] = [Subscribe(prefix) for prefix in prefixes]
        return outputs if self.claim is None else outputs + self.claim.start()

    def begin(self, now: float, position: Position) -> None:
        """Go on where an earlier producer of the partition ended."""
        claim, first = self.claim, position.sequence
        if claim is None or claim.numbering:
            raise ValueError("only a producer that asks where to go on begins, and once")
        self.first_sequence = self.next_sequence = self.first_retained = self.first_unacknowledged = first
        if first:
            self._heads.something_new(now)
        self._stores = {store: end.sequence for store, end in claim.answers.items()}
        if claim.plain_end:
            self._stores[b""] = claim.plain_end
        self._heard = dict.fromkeys(self._stores, now)
        claim.begin()

    def publish(self, now: float, contents: list[bytes]) -> Run:
        """Give the records ``contents`` their numbers and retain them. The run to be published."""
        if not contents:
            raise ValueError("a run to publish has at least one record")
        if self.claim is not None and not self.claim.numbering:
            raise ValueError("a producer that asks where to go on does not publish before it begins")
        first = self.next_sequence
        self._heads.something_new(now)
        self.next_sequence = first + len(contents)
        self.retained_bytes += sum(map(len, contents))
        # Retained in lists of its own: the run's list goes on to others, and these are cut at the front.
        if self._chunks and len(self._chunks[-1]) + len(contents) <= _CHUNK:
            self._chunks[-1].extend(contents)
        else:
            self._chunks.append(list(contents))
        if self.min_stores == 0:
            self.first_unacknowledged = self.next_sequence
        return Run(None, self.address, self.topic, first, contents)

    def forget(self, size: int) -> None:
        """Let go of the oldest records until at most ``size`` bytes are retained.

        For ``min_stores`` 0, where no ACK lets go of anything. ValueError with any other: unacknowledged
        records must not be deleted.
        """
        if self.min_stores:
            raise ValueError(f"with min_stores {self.min_stores} only acknowledged records are let go")
        while self.retained_bytes > size and self._chunks:
            self._drop(len(self._chunks[0]))

    def receive(self, now: float, command: Command) -> list[Output]:
        """An ACK, FETCH or GET-HEADS; anything else is not for a producer."""
        match command:
            case Ack(self.address, self.topic):
                return self._hear_ack(now, command.store, command.sequence + 1)
            case Fetch(self.address, _, self.topic):
                return self._answer(now, command.address, command.sequence, command.count)
            case GetHeads(self.topic) if self.next_sequence:
                return [DirectHead(command.address, self.address, self.topic, self.next_sequence - 1)]
        if self.claim is None:
            return []
        if self.claim.numbering and isinstance(command, End) and command.recipient == self.claim.claimant:
            self._compare(now, command)
            return self._ask_to_compare(now)
        return self.claim.receive(now, command, self.first_retained)

    def receive_run(self, now: float, run: Run) -> list[Output]:
        """The last record of an earlier producer, when that was asked for."""
        if self.claim is not None:
            self.claim.receive_run(run)
        return []

    def peer_subscribed(self, now: float, prefix: bytes) -> list[Output]:
        """A new peer may listen to HEADs, or be a store with more of the partition, or its other producer."""
        if prefix in (b"H", b"M", b"H" + self.topic, b"M" + self.topic):
            self.listened_to(now)
        return [] if self.claim is None else self.claim.peer_subscribed(now, prefix, self.first_retained)

    def tick(self, now: float) -> list[Output]:
        """The HEAD when it is time for it, from the first record on, and what the claim wants."""
        if self.claim is not None and self._end_to_compare() > self.first_unacknowledged:
            self.claim.ask_soon()  # the answer may be lost, or have been about less
        outputs = [] if self.claim is None else self.claim.tick(now, self.first_retained)
        if now >= self._heads.next and (head := self._head()):
            self._heads.sent(now, quiet=self.first_unacknowledged == self.next_sequence)
            outputs += head
        return outputs

    def leave(self) -> list[Output]:
        """The last HEAD: consumers that joined late, or lost the last records, ask the stores for them.

        Afterwards the partition is named only to those who ask for heads, and C consumers ask just once.
        """
        return self._head()

    def listened_to(self, now: float) -> None:
        """A peer has subscribed to HEADs or records of this topic: the next HEAD is due."""
        if self.next_sequence:
            self._heads.at_once(now)

    def _head(self) -> list[Output]:
        if not self.next_sequence or (self.claim is not None and self.claim.rival):
            return []
        return [Head(self.address, self.topic, self.next_sequence - 1)]

    @property
    def next_tick(self) -> float:
        """When :meth:`tick` has something to do at the earliest."""
        return 0.0 if self.claim is not None else self._heads.next

    def _hear_ack(self, now: float, store: bytes, end: int) -> list[Output]:
        """C stores do not say who they are and cannot be asked; with those only the numbers can tell."""
        if self.claim is None or not store or not self.min_stores:
            self._acknowledge(now, store, end)
            return []
        if end > self.next_sequence:
            self._dispute(store, end)
        elif store in self._to_compare or len(self._to_compare) < self._limits.stores:
            self._to_compare[store] = max(end, self._to_compare.get(store, 0))
        if store in self._stores:
            self._heard[store] = now
        return self._ask_to_compare(now)

    def _end_to_compare(self) -> int:
        """The end that will be acknowledged once all contents have been found to be the same."""
        if not self._to_compare or not self.min_stores:
            return 0
        ours = self._known_stores.ours
        ends = dict(self._stores)
        for store, end in self._to_compare.items():
            if store not in self._strangers and store in ours:
                ends[store] = max(end, ends.get(store, 0))
        return sorted(ends.values())[-self.min_stores] if len(ends) >= self.min_stores else 0

    def _ask_to_compare(self, now: float) -> list[Output]:
        """A CLAIM, if there is more to compare than when the last one was sent."""
        claim, asked = self.claim, (self.first_retained, self._end_to_compare())
        if claim is None or claim.rival or asked == self._compared or asked[1] <= self.first_unacknowledged:
            return []
        self._compared = asked
        return [claim.claim(now, self.first_retained)]

    def _compare(self, now: float, end: End) -> None:
        """A store says what it has: is it this producer's?"""
        store, behind = end.store, end.first + end.count
        if not store or store in self._strangers:
            return
        if end.sequence > self.next_sequence:
            self._dispute(store, end.sequence)
        elif end.sequence <= max(self.first_sequence, self.first_retained):
            self._acknowledge(now, store, end.sequence)
        elif end.first < self.first_retained or behind > self.next_sequence:
            pass  # the records it was asked about have been released since
        elif not end.count:
            if end.first >= end.sequence:  # retention was quicker
                self._acknowledge(now, store, end.sequence)
        elif end.checksum == checksum_of(self._retained(end.first, behind)):
            self._acknowledge(now, store, behind)
        else:
            self._dispute(store, end.sequence)

    def _dispute(self, store: bytes, end: int) -> None:
        """The store has records of an earlier producer where this one's belong."""
        self.disputed = max(self.disputed, end)
        if len(self._strangers) < self._limits.stores:
            self._strangers.add(store)

    def _retained(self, first: int, end: int) -> list[bytes]:
        begin = first - self.first_retained
        return list(islice(chain.from_iterable(self._chunks), begin, end - self.first_retained))

    def _acknowledge(self, now: float, store: bytes, end: int) -> None:
        if end > self.next_sequence:
            self._dispute(store, end)
            return  # also when there is no room to remember the store
        if store in self._strangers:
            return
        if store not in self._stores and len(self._stores) >= self._limits.stores:
            return
        self._heard[store] = now
        self._stores[store] = max(end, self._stores.get(store, 0))
        if 0 < self.min_stores <= len(self._stores):
            reached = sorted(self._stores.values())[-self.min_stores]
            self.first_unacknowledged = max(reached, self.first_unacknowledged)
            self._drop(self.first_unacknowledged - self.first_retained)

    def _is_lost(self, now: float, store: bytes) -> bool:
        return self.store_timeout is not None and now - self._heard[store] > self.store_timeout

    def _is_left_to_stores(self, now: float, recipient: bytes, sequence: int) -> bool:
        """Whether a store other than ``recipient`` has the record, or may be about to have it."""
        for store, end in self._stores.items():
            if sequence < end and store != recipient and not self._is_lost(now, store):
                return True
        others = [
            store
            for store in self._known_stores.ours
            if store != recipient
            and sequence >= self._stores.get(store, 0)
            and self._asked.get(store) != sequence  # or it lacks the record as well
        ]
        # Each is looked at, because its patience runs from the first time that it is thought of.
        committing = [store for store in others if self._may_be_committing(now, store)]
        return bool(committing)

    def _may_be_committing(self, now: float, store: bytes) -> bool:
        if store not in self._noticed and len(self._noticed) < self._limits.stores:
            self._noticed[store] = now
        never = float("-inf")
        last_word = max(self._noticed.get(store, never), self._heard.get(store, never))
        return now - last_word <= self._limits.commit_patience

    def _note_asked(self, now: float, store: bytes, sequence: int) -> None:
        if self._asked.get(store) != sequence and (
            store in self._asked or len(self._asked) < self._limits.stores
        ):
            self._asked[store] = sequence
            self._noticed[store] = now

    def _drop(self, count: int) -> None:
        """Let go of the first ``count`` retained records."""
        self.first_retained += count
        while count:
            chunk = self._chunks[0]
            if count >= len(chunk):
                self._chunks.popleft()
                self.retained_bytes -= sum(map(len, chunk))
                count -= len(chunk)
            else:
                self.retained_bytes -= sum(map(len, chunk[:count]))
                del chunk[:count]
                count = 0

    def _answer(self, now: float, recipient: bytes, start: int, count: int) -> list[Output]:
        if recipient in self._known_stores.ours:
            self._note_asked(now, recipient, start)
        if start < self.first_retained:
            if self._is_left_to_stores(now, recipient, start):
                return []
            return [Trimmed(recipient, self.address, self.topic, self.first_retained, self.address)]
        end = min(start + min(count, self._limits.answer_records), self.next_sequence)
        runs: list[Output] = []
        room = self._limits.answer_bytes
        first = self.first_retained
        for chunk in self._chunks:
            if first >= end or room <= 0:
                break
            following = first + len(chunk)
            if following > start:
                begin = max(start, first)
                contents = chunk[begin - first : end - first]
                size = sum(map(len, contents))
                if size > room:
                    contents = _beginning(contents, room)
                room -= size
                runs.append(Run(recipient, self.address, self.topic, begin, contents))
            first = following
        return runs


def checksum_of(contents: Iterable[bytes]) -> int:
    """The sum of messages that END names: the CRC-32C of their contents, each behind its length."""
    checksum = 0
    pieces = iter(contents)
    while some := list(islice(pieces, _CHUNK)):
        lengths = (len(content).to_bytes(8, "big") for content in some)
        checksum = crc32c(b"".join(chain.from_iterable(zip(lengths, some, strict=True))), checksum)
    return checksum


def _beginning(contents: list[bytes], size: int) -> list[bytes]:
    """The first of ``contents`` that have at most ``size`` bytes together; always one."""
    for position, content in enumerate(contents):
        size -= len(content)
        if size < 0:
            return contents[: max(position, 1)]
    return contents
