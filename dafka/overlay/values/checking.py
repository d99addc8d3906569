"""Whether octets are a value, without making it: half as much work as to decode it."""

from __future__ import annotations

from dafka.overlay.limits import CHECKED_OCTETS, CHECKED_WORK, MOST_NESTED
from dafka.overlay.values import types
from dafka.overlay.values.decoder import read, read_counted
from dafka.protocol.errors import MalformedMessage

_OTHERS = 0
SIZES = [1, 2, 9, 9, _OTHERS, _OTHERS, 17, _OTHERS, _OTHERS, 9, 9, _OTHERS, _OTHERS, _OTHERS, _OTHERS]
"""Of a value by its tag, in octets; 0: that is not in the tag alone."""

_TAG_WORK = 12  # of what may be in a hundred others; an octet of a set is 1, some 0.3 us
_PLAIN = 8  # octets where there is no set and no table are as much as one of a set
_SHORT = CHECKED_WORK // (1 + _TAG_WORK)  # octets, whatever they are


def work(octets: bytes) -> int:
    """How much work it is to check octets, at most: elements of sets and tables have to be made and sorted.
    Each octet that may be the tag of one counts as one, and then those of vectors do."""
    tags = octets.count(types.SET) + octets.count(types.TABLE)
    if not tags:
        return len(octets) // _PLAIN
    return len(octets) + _TAG_WORK * (tags + octets.count(types.VECTOR))


def takes_long(octets: bytes) -> bool:
    """Whether a value is too much to be checked in the hub. If a part of octets is, so are they."""
    if len(octets) <= _SHORT:
        return False
    return len(octets) > CHECKED_OCTETS or work(octets) > CHECKED_WORK


def is_value(octets: bytes) -> bool:
    """Whether :func:`~dafka.overlay.values.decode` reads these octets."""
    try:
        return end_of(octets, 0, 0, 1) == len(octets)
    except (IndexError, MalformedMessage):
        return False


def end_of(octets: bytes, position: int, depth: int, count: int) -> int:
    """Where so many values end that stand one behind the other, inside of ``depth`` others.

    If the octets end too early that is behind their end, or an IndexError is raised. Raises
    :class:`MalformedMessage`.
    """
    for _ in range(count):
        tag = octets[position]
        size = SIZES[tag]
        if size:
            position += size
        elif tag == types.STRING or tag == types.ENUM:
            size = octets[position + 1]
            position += 2
            if size > 0x7F:
                size, position = read_counted(octets, position - 1)
            position += size
        elif tag == types.VECTOR:
            if depth >= MOST_NESTED:
                raise MalformedMessage("nesting", f"values are nested more than {MOST_NESTED} deep")
            within = octets[position + 1]
            position += 2
            if within > 0x7F:
                within, position = read_counted(octets, position - 1)
            position = end_of(octets, position, depth + 1, within)
        else:  # patterns of numbers, and elements that may not come twice
            _, position = read(octets, position, depth)
    return position
