"""A store of the simulated mesh, and the log that outlives it."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from dafka.protocol.commands import Ack, End, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.follower import Follower
from dafka.roles.limits import Limits
from dafka.roles.outputs import Append, Begin, Serve, TellHeads
from dafka.roles.producer import checksum_of
from dafka.roles.store import StoreRole

from .nodes import Node
from .rules import PLENTY, PROMPT, Key, check_skip, is_content_of, note_gone, require
from .tables import check_tables

if TYPE_CHECKING:
    from .network import Network


class Partition:
    """The records of one partition in a store's log, by sequence."""

    def __init__(self) -> None:
        self.first = self.next = 0
        self.records: dict[int, bytes] = {}


class StoreNode(Node):
    """A store whose log outlives it; commits take a while and may fail."""

    name = "store"

    def __init__(self, network: Network, address: bytes, limits: Limits, *, plain: bool = False) -> None:
        super().__init__(network)
        self.address, self.limits = address, limits
        self.plain = plain  # its ACKs do not name it, as those of C stores
        self.destroyed = False
        self.commit_time = 0.05  # at most
        self.log: dict[Key, Partition] = {}
        self.acknowledged: dict[Key, int] = {}  # sequences below
        self.role = StoreRole(address, limits=limits)
        self._committing = 0.0  # when the last commit under way will be done
        self._uncommitted = 0
        self._coming: dict[Key, deque[range]] = {}  # handed to the log, not committed
        self._under_way: Counter[Key] = Counter()  # appends
        self._begins: dict[Key, int] = {}  # where the next append leaves a hole before it
        network.stores.append(self)
        self._begun: dict[Key, int] = {}  # the same, also when that append has come

    def begin(self, now: float) -> None:
        """With nothing but the log."""
        super().begin(now)
        known = {key: (partition.first, partition.next) for key, partition in self.log.items()}
        self.role = StoreRole(self.address, known, limits=self.limits)
        self.role.know_stores(self.known_stores)
        self._committing, self._uncommitted = 0.0, 0
        self._coming.clear()
        self._under_way.clear()
        self._begins.clear()
        self._begun.clear()

    def destroy(self) -> None:
        """It is gone for good, and its disk with it."""
        self.network.kill(self)
        self.destroyed = True

    def trim(self) -> None:
        """Retention lets go of the beginning of a partition."""
        if self.alive and self.log:
            key = self.network.random.choice(list(self.log))
            partition = self.log[key]
            first = self.network.random.randint(partition.first, partition.next)
            for sequence in range(partition.first, first):
                partition.records.pop(sequence, None)
            partition.first = first
            note_gone(self.network, key, first)
            self.network.note(f"{self} trims {key[1][-4:].decode()} to {first}")
            self.role.trimmed(*key, first)

    def end(self, key: Key) -> int:
        partition = self.log.get(key)
        return partition.next if partition is not None else 0

    def reach(self, key: Key) -> int:
        """The same, or where the store goes on because what lies before is no more (:class:`Begin`)."""
        return max(self.end(key), self._begun.get(key, 0))

    @property
    def is_half_full(self) -> bool:
        waits = self.network.now < self.role._resume  # after a write that failed
        return waits or self._uncommitted >= self.limits.uncommitted_records // 2

    def follower(self, key: Key) -> Follower | None:
        if not self.alive or self.limits.uncommitted_records < PLENTY or self.commit_time > PROMPT / 2:
            return None
        return self.role._partitions.get(key)

    def holds(self, key: Key, sequence: int) -> bool:
        """Whether it can send the record, or will when a commit is done."""
        if not self.alive:
            return False
        held = self.log[key].records if key in self.log else {}
        return sequence in held or any(sequence in coming for coming in self._coming.get(key, ()))

    def has_stored(self, key: Key, sequence: int, content: bytes) -> bool:
        return key in self.log and self.log[key].records.get(sequence) == content

    def unread_end(self, key: Key) -> int:
        """How far the records reach that have come and wait for room."""
        waiting = [item for item in self._lane if isinstance(item, Run) and (item.topic, item.address) == key]
        return max((run.next for run in waiting), default=0)

    def carry_out(self, output: Any) -> bool:
        network = self.network
        if isinstance(output, Append):
            key = (output.topic, output.address)
            begin = self._begins.pop(key, None)
            self._uncommitted += len(output.contents)
            self._under_way[key] += 1
            coming = range(output.first, output.first + len(output.contents))
            self._coming.setdefault(key, deque()).append(coming)
            require(
                self._uncommitted <= self.limits.uncommitted_records,
                f"{self} has {self._uncommitted} records under way to its log",
            )
            done = network.now + network.random.uniform(0.0, self.commit_time)
            self._committing = max(self._committing, done)
            delay = self._committing - network.now
            network.later_in(self, delay, self._commit, output, begin)
        elif isinstance(output, Begin):
            key = (output.topic, output.address)
            network.note(f"{self} begins {output.address[-4:].decode()} at {output.first}")
            if self._begun.get(key) != output.first:  # else it is said again
                require(not self._under_way[key], f"{self} leaves records out while others are under way")
                check_skip(self, key, self.reach(key), output.first)
            self._begins[key] = self._begun[key] = output.first
        elif isinstance(output, Serve):
            self._serve(output)
        elif isinstance(output, End):
            if not self.plain:  # as C stores, which know no CLAIM
                network.answered.setdefault(output.recipient, {})[self] = None
                network.publish(self, self._summed_up(output))
        elif isinstance(output, TellHeads):
            self._tell_heads(output)
        elif isinstance(output, Ack):
            key = (output.topic, output.partition)
            require(
                output.sequence < self.reach(key),
                f"{self} acknowledges record {output.sequence} and has committed up to {self.reach(key)}",
            )
            self.acknowledged[key] = max(self.acknowledged.get(key, 0), output.sequence + 1)
            network.publish(self, output._replace(store=b"") if self.plain else output)
        else:
            return False
        return True

    def _commit(self, append: Append, begin: int | None) -> None:
        key = (append.topic, append.address)
        network, partition = self.network, self.log.get(key)
        self._uncommitted -= len(append.contents)
        self._under_way[key] -= 1
        self._coming[key].popleft()
        at = self.end(key) if begin is None else begin
        if append.first != at or network.random.random() < network.faults.failing_writes:
            end = append.first + len(append.contents)
            self.carry(self.role.not_stored(network.now, *key, end))
            return
        if partition is None:
            partition = self.log[key] = Partition()
        if not partition.records:
            partition.first = append.first
        for sequence, content in enumerate(append.contents, append.first):
            require(is_content_of(content, append.address, sequence), f"{self} stores {content!r}")
            partition.records[sequence] = content
        partition.next = append.first + len(append.contents)
        self.carry(self.role.stored(network.now, *key, partition.next))
        self.resume()

    def _summed_up(self, end: End) -> End:
        """As the log reads: records that follow one another, from the first that is still there."""
        partition = self.log.get((end.topic, end.address), Partition())
        if not end.count:
            return end
        first = min((number for number in partition.records if number >= end.first), default=partition.next)
        contents = []
        while len(contents) < end.count and first + len(contents) in partition.records:
            contents.append(partition.records[first + len(contents)])
        return end._replace(first=first, count=len(contents), checksum=checksum_of(contents))

    def _tell_heads(self, told: TellHeads) -> None:
        """Two at a time, with whatever else happens in between."""
        some = list(islice(told.heads, 2))
        for head in some:
            self.network.publish(self, head)
        if some:
            self.network.later_in(self, 0.01, self._tell_heads, told)

    def _serve(self, serve: Serve) -> None:
        """As the mesh does: the records from the first one on, or where the records go on."""
        partition = self.log[serve.topic, serve.address]
        require(
            serve.first + serve.count <= partition.next, f"{self} serves what it has not committed: {serve}"
        )
        contents = []
        for sequence in range(serve.first, serve.first + serve.count):
            if sequence not in partition.records:
                break
            contents.append(partition.records[sequence])
        if contents:
            run = Run(serve.recipient, serve.address, serve.topic, serve.first, contents)
            self.network.publish(self, run)
            self.carry(self.role.served(serve.recipient, serve.topic, serve.address, run.next))
        else:
            following = min((number for number in partition.records if number > serve.first), default=None)
            if following is not None:
                gone = Trimmed(serve.recipient, serve.address, serve.topic, following, self.address)
                self.network.publish(self, gone)

    def check(self) -> None:
        check_tables(self, self.limits)
