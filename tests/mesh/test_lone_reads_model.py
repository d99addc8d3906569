"""Twin roles that are told the same at random; a thread takes records in the place of one of them.

Whatever comes before and afterwards, both decide the same, and what they know of each partition is the same.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from dafka.hub.hub import get_hub
from dafka.mesh.inbox import AllRuns
from dafka.mesh.lone_reads import LoneReads
from dafka.protocol.commands import Claim, DirectHead, Fetch, Head, StoreHello, Trimmed
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.follower import Follower
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import Limits
from dafka.roles.outputs import Deliver

ME, PARTITIONS, STORES = b"C" * 32, [b"P" * 32, b"Q" * 32, b"R" * 32], [b"5" * 32, b"6" * 32]
STEPS = 200
SEEDS = int(os.environ.get("DAFKA_TEST_ROLE_SEEDS", "500"))  # long form: 10 000


class Twins:
    """``plain`` is told everything, ``short`` all but what a thread takes."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        limits = Limits()._replace(
            fetches=chance.choice([1, 2, 5]),
            ahead_records=chance.choice([3, 20]),
            ahead_distance=chance.choice([3, 50]),
            first_window=chance.choice([1, 4]),
            smallest_window=1,
            trimmed_grace=0.3,
            store_patience=1.0,
            trimmed_patience=1.5,
            ahead_attempts=2,
            longest_pause=4.0,
        )
        reset = chance.choice(["earliest", "latest"])
        self.plain, self.short = (ConsumerRole(ME, offset_reset=reset, limits=limits) for _ in range(2))
        self.stores = [KnownStores(), KnownStores()]
        for role, stores in zip((self.plain, self.short), self.stores, strict=True):
            role.know_stores(stores)
        self.inbox = AllRuns()
        self.reads = LoneReads(get_hub(), self.short, self.inbox)
        self.now = 0.0
        self.taken = 0
        self.room = [chance.choice([5, 20, 1000]), chance.choice([60, 500, 10**6])]
        self.used = [0, 0]
        self.ends = {partition: chance.randrange(5) for partition in PARTITIONS}
        self.fetches: list[Fetch] = []
        self.both("subscribe", b"t")
        self.give_room()

    def both(self, method: str, *what: Any, **how: Any) -> None:
        """Tell both: they decide the same."""
        outputs, others = (getattr(role, method)(self.now, *what, **how) for role in (self.plain, self.short))
        assert outputs == others
        for output in outputs:
            if isinstance(output, Deliver):
                self.used[0] += len(output.contents)
                self.used[1] += sum(map(len, output.contents))
            elif isinstance(output, Fetch):
                self.fetches.append(output)

    def give_room(self) -> None:
        self.both("set_room", *(max(0, room - used) for room, used in zip(self.room, self.used, strict=True)))

    def step(self) -> None:
        """Have something happen."""
        chance, partition = self.chance, self.chance.choice(PARTITIONS)
        head = max(0, self.ends[partition] - 1)
        self.now += chance.choice([0, 0.01, 0.1, 0.1, 0.5, 1.5])
        what = chance.random()
        if what < 0.5:
            self.publish(partition)
        elif what < 0.66 and self.fetches:
            self.answer(self.fetches.pop(chance.randrange(len(self.fetches))))
        elif what < 0.72:
            self.both("receive", Head(partition, b"t", head))
        elif what < 0.75:
            self.both("receive", DirectHead(ME, partition, b"t", head))
        elif what < 0.8:
            first = max(0, self.ends[partition] - chance.randrange(6))
            self.both("receive", Trimmed(ME, partition, b"t", first, chance.choice([*STORES, partition])))
        elif what < 0.82:
            claim = Claim(partition, chance.choice([b"1" * 32, b"2" * 32]), b"t", 0, numbering=False)
            self.both("receive", claim, unread=chance.random() < 0.3)
        elif what < 0.84:
            self.both("receive", StoreHello(ME, chance.choice(STORES)))
        elif what < 0.85:
            self.plain.read_up()
            self.short.read_up()
        elif what < 0.86:
            store, comes = chance.choice(STORES), chance.random() < 0.5
            for stores in self.stores:
                (stores.subscribed if comes else stores.unsubscribed)(b"W" + store)
        elif what < 0.87:
            self.both("unsubscribe", b"t")
            self.both("subscribe", b"t")
        elif what < 0.93:
            if chance.random() < 0.7:
                self.used = [0, 0]
            self.give_room()
        else:
            self.both("tick")

    def publish(self, partition: bytes) -> None:
        chance = self.chance
        count = 1 if chance.random() < 0.85 else chance.randrange(2, 5)
        if chance.random() < 0.15:
            self.ends[partition] += chance.randrange(1, 4)  # some are lost on their way
        first = self.ends[partition]
        if chance.random() < 0.08:
            first = max(0, first - chance.randrange(4))
        self.ends[partition] = max(self.ends[partition], first + count)
        run = Run(None, partition, b"t", first, [b"c" * chance.randrange(30) for _ in range(count)])
        if count > 1 or chance.random() < 0.3 or not self.take(run):
            self.both("receive_run", run)

    def take(self, run: Run) -> bool:
        """A thread takes a record for which there is room; whether it did."""
        size, follower = len(run.contents[0]), self.plain.follower(run.topic, run.address)
        if follower is None:
            return False
        records, octets = self.plain._catchup.room.for_records_of(follower)
        if not records or size > octets:
            return False
        peer = SimpleNamespace(waits_since=None, emptied=0.0)
        loan: Any = SimpleNamespace(held=True, octets=[b"octets"], messages=0, size=0, lender=peer)
        if not self.reads._take(loan, loan.octets[0], run):
            return False
        self.taken += 1
        expected = [Deliver(run.topic, run.address, run.first, run.contents)]
        assert self.plain.receive_run(self.now, run) == expected == [self.inbox.runs.popleft()]
        self.short._catchup.room.use(1, size)  # as it is told with the next room
        self.used[0] += 1
        self.used[1] += size
        return True

    def answer(self, fetch: Fetch) -> None:
        chance = self.chance
        count = fetch.count if chance.random() < 0.6 else chance.randrange(1, fetch.count + 1)
        first = fetch.sequence + (chance.randrange(3) if chance.random() < 0.25 else 0)
        contents = [b"f" * chance.randrange(20) for _ in range(count)]
        self.both("receive_run", Run(ME, fetch.partition, fetch.topic, first, contents))


def known(role: ConsumerRole) -> Iterator[Any]:
    """What a role knows."""
    for topic, address in role.positions:
        follower = role.follower(topic, address)
        yield [
            list(getattr(follower, name)) if name in ("ahead", "deniers") else getattr(follower, name)
            for name in Follower.__slots__
        ]
    yield role.positions, role.lag, role.fetches, role.timeouts, role.unanswered, role.refused, role.reclaimed


def test_a_role_decides_the_same_whoever_takes_its_records():
    taken = 0
    for seed in range(SEEDS):
        twins = Twins(seed)
        for step in range(STEPS):
            twins.step()
            assert list(known(twins.plain)) == list(known(twins.short)), f"seed {seed}, step {step}"
        taken += twins.taken
    assert taken > SEEDS
