"""Announcements of leaves: the peers of version 1 behind a node of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.limits import LEAVES_OCTETS, MOST_BESIDE, MOST_LEAVES
from dafka.overlay.values.encoder import write_counted
from dafka.overlay.wire import primitives
from dafka.overlay.wire.primitives import ID_OCTETS, Reader
from dafka.protocol.errors import MalformedMessage

EVERYTHING: Filter = (b"",)


class Leaf(NamedTuple):
    """A peer of version 1 and what it wants.

    ``beside`` are other leaves that this one is connected with, over libbroker nodes alone.
    """

    id: bytes
    filter: Filter
    beside: tuple[bytes, ...] = ()

    @property
    def octets(self) -> int:
        """Its size, in memory and in a message."""
        return ID_OCTETS * (1 + len(self.beside) + len(self.filter)) + sum(map(len, self.filter))


def fitting(leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
    """The same leaves, in the order of their ids. A filter that there is no room for lets everything pass."""
    kept: list[Leaf] = []
    room = LEAVES_OCTETS
    for leaf in sorted(leaves):
        if leaf.octets > room:
            leaf = leaf._replace(filter=EVERYTHING, beside=())
        room -= leaf.octets
        kept.append(leaf)
    return tuple(kept[:MOST_LEAVES])


def encode_leaves(leaves: tuple[Leaf, ...]) -> bytes:
    """The form that :func:`read_leaves` reads."""
    out = bytearray()
    write_counted(len(leaves), out)
    for leaf in leaves:
        out += leaf.id + primitives.prefixes(leaf.filter)
        write_counted(len(leaf.beside), out)
        out += b"".join(leaf.beside)
    return bytes(out)


def read_leaves(reader: Reader) -> tuple[Leaf, ...]:
    """Raises :class:`MalformedMessage`."""
    count = reader.counted(least=ID_OCTETS + 2)
    if count > MOST_LEAVES:
        raise MalformedMessage("leaves", f"{count} peers behind one, at most {MOST_LEAVES} are taken")
    leaves: dict[bytes, Leaf] = {}
    octets = 0
    for _ in range(count):
        leaf = _read_leaf(reader)
        octets += leaf.octets
        if octets > LEAVES_OCTETS:
            raise MalformedMessage("leaves", f"more than {LEAVES_OCTETS} octets of peers behind one")
        leaves[leaf.id] = leaf
    if len(leaves) < count:
        raise MalformedMessage("leaves", "a peer stands twice behind the same one")
    return tuple(leaves.values())


def _read_leaf(reader: Reader) -> Leaf:
    leaf, filter, count = reader.identity(), reader.prefixes(), reader.counted(least=ID_OCTETS)
    if count > MOST_BESIDE:
        raise MalformedMessage("leaves", f"{count} peers beside one, at most {MOST_BESIDE} are taken")
    return Leaf(leaf, filter, tuple([reader.identity() for _ in range(count)]))
