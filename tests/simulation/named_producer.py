"""A producer whose partition has a name that the user gave it: it comes back, and may have a twin."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from dafka.roles.claim import PartitionClaim
from dafka.roles.limits import Limits
from dafka.roles.producer import ProducerRole

from .network import Begin
from .nodes import ProducerNode
from .rules import SETTLED, content_of, note_gone, require

if TYPE_CHECKING:
    from .network import Network


class NamedProducer(ProducerNode):
    """Each time it starts it is a new producer of the partition. ``runs`` is shared by twins."""

    name = "named"

    def __init__(
        self,
        network: Network,
        topic: bytes,
        address: bytes,
        min_stores: int,
        limits: Limits,
        runs: count[int] | None = None,
    ) -> None:
        super().__init__(network, topic, address, min_stores, limits)
        self.runs = runs or count(1)
        self.run = 0
        self.shared = False  # another producer has numbered records of the partition at the same time
        self._checked = 0  # below, what counts as acknowledged was looked at

    def begin(self, now: float) -> None:
        super().begin(now)
        topic, address = self.key
        self.run = next(self.runs)
        claimant = b"N" * 28 + b"%04d" % self.run
        self.role = ProducerRole(
            topic,
            address,
            min_stores=self.role.min_stores,
            claim=PartitionClaim(
                topic, address, claimant, min_stores=self.role.min_stores, limits=self.limits
            ),
            limits=self.limits,
        )
        self.role.know_stores(self.known_stores)
        self.shared = False

    @property
    def claim(self) -> PartitionClaim:
        assert self.role.claim is not None
        return self.role.claim

    @property
    def failed(self) -> bool:
        """Whether it has found out that somebody else has the partition, and says so to its user."""
        return self.incarnation > 0 and bool(self.claim.rival)

    def may_send(self) -> bool:
        return self.claim.numbering and not self.failed

    def content_of(self, sequence: int) -> bytes:
        return content_of(self.role.address, sequence, self.run)

    def hear(self, now: float, item: Any) -> None:
        super().hear(now, item)
        self._look()

    def tick(self, now: float) -> None:
        super().tick(now)
        self._look()

    def _look(self) -> None:
        network, role = self.network, self.role
        twins = [node for node in network.producers if node is not self and node.key == self.key]
        contested = any(twin.alive and twin.claim.numbering for twin in twins)
        if not self.claim.numbering and self.claim.found is not None and not self.failed:
            start = self.claim.found.sequence
            network.note(f"{self} begins as run {self.run} at {start}")
            for store in network.stores:
                # A twin that cannot be heard goes on: nobody has told yet of its messages.
                if not contested and network.are_linked(self, store, network.now - SETTLED):
                    require(
                        store.plain or start >= store.end(self.key),
                        f"{self} begins at {start}, and {store} has up to {store.end(self.key)}",
                    )
            told = network.answered.get(self.claim.claimant, ())
            for store in () if contested else told:
                unread = store.unread_end(self.key)
                require(
                    start >= unread, f"{self} begins at {start}, and {store} has yet to read up to {unread}"
                )
            answered = len(told)
            plain = sum(store.plain for store in network.stores)
            require(answered + plain >= max(1, role.min_stores), f"{self} has asked {answered} stores only")
            if self.claim.found.witnessed:  # consumers have seen records that died with their producer
                note_gone(network, self.key, start)
            self._note_begin(start, contested)
            role.begin(network.now, self.claim.found)
            self._checked = start
        if contested:
            self.shared = True  # until they find each other out, what is acknowledged may be either's
        if role.min_stores and not self.failed and self.claim.numbering and not self.shared:
            for sequence in range(self._checked, role.first_unacknowledged):
                holders = [store for store in network.stores if self._is_held(store, sequence)]
                require(
                    len(holders) >= role.min_stores,
                    f"{self} counts record {sequence} as acknowledged; its contents are in {holders}",
                )
            self._checked = max(self._checked, role.first_unacknowledged)

    def _note_begin(self, start: int, contested: bool) -> None:
        network, settled = self.network, self.network.now - SETTLED / 2
        if not contested and network.calm_since <= settled:
            heard = frozenset(node for node in network.consumers if network.are_linked(self, node, settled))
            network.begins.setdefault(self.key, []).append(Begin(self.run, start, heard))

    def _is_held(self, store: Any, sequence: int) -> bool:
        partition = store.log.get(self.key)
        if partition is None:
            return False
        held = partition.records.get(sequence)
        if held is None or store.plain:  # of those only the numbers can be compared
            return sequence < partition.next
        return bool(held == self.content_of(sequence))

    def check_twin(self, other: NamedProducer, since: float) -> None:
        """Two that have been running and connected for a while have found each other out."""
        if self.alive and other.alive and self.network.are_linked(self, other, since):
            require(self.failed or other.failed, f"{self} and {other} have the same partition")
