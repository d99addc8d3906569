"""The elements of messages: ids of endpoints and entities, octet strings, lists of prefixes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from dafka.overlay.limits import FILTER_OCTETS, MOST_PREFIXES
from dafka.overlay.values.decoder import read_counted
from dafka.overlay.values.encoder import write_counted
from dafka.protocol.errors import MalformedMessage

ID_OCTETS = 16
NOBODY = bytes(ID_OCTETS)
"""The id that stands for "everybody" where a receiver is named, and for "this endpoint" as a sender."""

_LONG = 0x80  # a length from here on takes more than one octet
_LENGTHS = [bytes((length,)) for length in range(_LONG)]
_NUMBER = struct.Struct(">Q")


class EntityId(NamedTuple):
    """One store object of an endpoint."""

    endpoint: bytes
    number: int


NO_ENTITY = EntityId(NOBODY, 0)


class Reader:
    """A position in octets that moves on with what is read. Raises :class:`MalformedMessage` at their end."""

    __slots__ = ("octets", "position")

    def __init__(self, octets: bytes, position: int = 0) -> None:
        self.octets = octets
        self.position = position

    @property
    def left(self) -> int:
        return len(self.octets) - self.position

    def take(self, count: int) -> bytes:
        """The next octets."""
        end = self.position + count
        if end > len(self.octets):
            raise MalformedMessage("truncated", f"{count} octets are due, {self.left} are left")
        taken = self.octets[self.position : end]
        self.position = end
        return taken

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take(self.left)

    def number(self, octets: int) -> int:
        """An unsigned number of so many octets."""
        return int.from_bytes(self.take(octets), "big")

    def counted(self, least: int = 0) -> int:
        """A varbyte: how many elements of at least ``least`` octets follow."""
        try:
            count, self.position = read_counted(self.octets, self.position)
        except IndexError as error:
            raise MalformedMessage("truncated", "a number of elements is due") from error
        if count * least > self.left:
            raise MalformedMessage("length", f"{count} elements, where {self.left} octets are left")
        return count

    def string(self) -> bytes:
        """A varbyte length and as many octets."""
        return self.take(self.counted())

    def identity(self) -> bytes:
        """The id of an endpoint."""
        return self.take(ID_OCTETS)

    def entity(self) -> EntityId:
        return EntityId(self.identity(), self.number(8))

    def prefixes(self) -> tuple[bytes, ...]:
        """A filter."""
        count = self.counted(least=1)
        if count > MOST_PREFIXES:
            raise MalformedMessage("filter", f"{count} prefixes, at most {MOST_PREFIXES} are taken")
        octets, begin, position, end = self.octets, self.position, self.position, len(self.octets)
        filter: list[bytes] = []
        for _ in range(count):  # without calls: thousands of prefixes are to be read in one turn
            length = octets[position] if position < end else _LONG
            if length < _LONG:
                position += 1
            else:
                self.position = position
                length, position = self.counted(), self.position
            if position + length > end:
                raise MalformedMessage("truncated", f"{length} octets are due, {end - position} are left")
            filter.append(octets[position : position + length])
            position += length
        self.position = position
        if position - begin > FILTER_OCTETS:
            raise MalformedMessage("filter", f"{position - begin} octets, at most {FILTER_OCTETS}")
        return tuple(filter)


def string(octets: bytes) -> bytes:
    """The form that :meth:`Reader.string` reads."""
    out = bytearray()
    write_counted(len(octets), out)
    return bytes(out) + octets


def prefixes(filter: Sequence[bytes]) -> bytes:
    """The form that :meth:`Reader.prefixes` reads."""
    out = bytearray()
    write_counted(len(filter), out)
    if max(map(len, filter), default=0) < _LONG:
        return bytes(out) + b"".join([part for prefix in filter for part in (_LENGTHS[len(prefix)], prefix)])
    return bytes(out) + b"".join(map(string, filter))


def entity(entity: EntityId) -> bytes:
    """The form that :meth:`Reader.entity` reads."""
    return entity.endpoint + _NUMBER.pack(entity.number)
