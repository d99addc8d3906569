"""Rights of nodes in a mesh with keys: each message is judged by the key of the connection it came over.

A node may speak under addresses of its own key (:mod:`dafka.security.addresses`), and so for the partitions
that it writes. Only nodes that the list calls stores may acknowledge, and they may speak for all partitions.
Programs that cannot prove a key, where the list allows them, use addresses that belong to no key.

A message that its sender may not send is dropped and counted before any node of this process gets it. Each
run of records and each command is checked once.
"""

from __future__ import annotations

from collections import Counter

from dafka.mesh import metrics_port
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
from dafka.protocol.framing import ADDRESS_OCTETS
from dafka.protocol.runs import Inbound, Run
from dafka.security.addresses import belongs, is_of_a_key
from dafka.security.audit import audit
from dafka.security.keys import Allowed

CAUSE = "speaker"
"""Under which such messages are counted."""

_UNDER_OWN_ADDRESS = (Run, Record, DirectRecord, Head, DirectHead, Fetch, GetHeads, ConsumerHello)
_OF_STORES = (b"W", b"T")
"""ID octets of subscriptions by which others know a store (:mod:`dafka.roles.known_stores`)."""
_TOLD = 1000  # different refusals that the audit log has; the same one once


class Speakers:
    """Judges by the list of a mesh."""

    def __init__(self, allows: Allowed) -> None:
        self._allows = allows
        self._told: set[tuple[bytes, str]] = set()

    def knows(self, key: bytes) -> bool:
        """Whether a server that proves this key is listened to; empty: one that proves none."""
        return self._allows(key) if key else self._allows.of_plain.plain

    def heard(self, key: bytes, inbound: Inbound) -> Inbound:
        """Which messages of a connection are accepted."""
        if self._may_be_store(key):
            return inbound
        refused: Counter[str] = Counter()
        runs = [run for run in inbound.runs if self._may_say(key, run, refused)]
        commands = [command for command in inbound.commands if self._may_say(key, command, refused)]
        if not refused:
            return inbound
        self._tell(key, refused)
        discarded = inbound.discarded + Counter({CAUSE: refused.total()})
        return Inbound(runs, commands, discarded)

    def may_subscribe(self, key: bytes, prefix: bytes) -> bool:
        """Whether a subscription may mean what it says: that its owner is a store, or where its metrics are.

        A consumer, too, hears what was trimmed, under its own address.
        """
        octet, address = prefix[:1], prefix[1:]
        if octet == metrics_port.ID:
            return self._may_be_store(key) or self._owns(key, address[:ADDRESS_OCTETS])
        if octet not in _OF_STORES or self._allows.node(key).store:
            return True
        return octet == b"T" and self._owns(key, address)

    def may_beacon(self, key: bytes, address: bytes) -> bool:
        """Whether a node may beacon under an address."""
        return belongs(address, key) or (self._allows.node(key).plain and not is_of_a_key(address))

    def _may_be_store(self, key: bytes) -> bool:
        return (self._allows.node(key) if key else self._allows.of_plain).store

    def _owns(self, key: bytes, address: bytes) -> bool:
        return belongs(address, key) if key else not is_of_a_key(address)

    def _may_say(self, key: bytes, item: Run | Command, refused: Counter[str]) -> bool:
        if isinstance(item, _UNDER_OWN_ADDRESS):
            may = self._owns(key, item.address)
        elif isinstance(item, Trimmed):
            may = self._owns(key, item.address) and item.source in (b"", item.address)
        elif isinstance(item, Claim):
            may = self._owns(key, item.address) and self._owns(key, item.partition)
        elif isinstance(item, End):
            may = not item.store  # of a consumer, which says how far it has read
        else:
            assert isinstance(item, (Ack, StoreHello))
            may = False
        if not may:
            kind = "RECORD" if isinstance(item, Run) else type(item).__name__.upper()
            refused[kind] += len(item.contents) if isinstance(item, Run) else 1
        return may

    def _tell(self, key: bytes, refused: Counter[str]) -> None:
        for kind in refused:
            if (key, kind) not in self._told and len(self._told) < _TOLD:
                self._told.add((key, kind))
                audit.warning(
                    "mesh: %s sent a %s that it may not send; further ones are counted", _name(key), kind
                )


def _name(key: bytes) -> str:
    from dafka.zmtp.curve import z85_of  # its cryptography is not always installed

    return f"the node with the key {z85_of(key)}" if key else "a node that proves no key"
