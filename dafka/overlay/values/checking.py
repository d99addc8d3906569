"""Whether octets are a value, without making it: half as much work as to decode it."""

from __future__ import annotations

from dafka.overlay.limits import MOST_NESTED
from dafka.overlay.values import types
from dafka.overlay.values.decoder import read, read_counted
from dafka.protocol.errors import MalformedMessage

_OTHERS = 0  # their size is not in the tag alone
_SIZES = [1, 2, 9, 9, _OTHERS, _OTHERS, 17, _OTHERS, _OTHERS, 9, 9, _OTHERS, _OTHERS, _OTHERS, _OTHERS]


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
        size = _SIZES[tag]
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
