"""A mark on data that libbroker's nodes get from an overlay of ours, so that it is known when it comes back.

libbroker's messages have no room for one: the sender is the last hop, the TTL is written anew. But a number
of elements, or a length, may be written with an octet more than it takes; libbroker reads that as the same
number, and passes payloads on as they are. Nobody else writes such numbers.
"""

from __future__ import annotations

from dafka.overlay.values import types

_COUNTED = frozenset((types.STRING, types.ENUM, types.SET, types.TABLE, types.VECTOR))
_MORE = 0x80


def marked(payload: bytes) -> bytes | None:
    """The same value with the mark. None if it has no number of elements: a plain number, an address, ..."""
    end = _end_of_count(payload)
    if end is None or not has_room(payload):
        return None
    if is_marked(payload):
        return payload
    return payload[: end - 1] + bytes((payload[end - 1] | _MORE, 0)) + payload[end:]


def has_room(payload: bytes) -> bool:
    """Whether a value takes a mark, or has it. A count of five octets is as long as one can be."""
    end = _end_of_count(payload)
    return end is not None and (end < 6 or payload[end - 1] == 0)


def is_marked(payload: bytes) -> bool:
    """Whether a value has the mark. Octets that are not a value have none."""
    end = _end_of_count(payload)
    return end is not None and end > 2 and payload[end - 1] == 0


def _end_of_count(payload: bytes) -> int | None:
    if not payload or payload[0] not in _COUNTED:
        return None
    for end in range(2, min(len(payload), 6) + 1):
        if payload[end - 1] < _MORE:
            return end
    return None
