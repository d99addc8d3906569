"""Kafka's varints: zigzag-encoded signed numbers, seven bits an octet, least significant first.

Zigzag maps 0, -1, 1, -2, ... to 0, 1, 2, 3, ..., so that numbers near zero take one octet whatever their
sign (Kafka protocol guide, "Protocol Primitive Types", VARINT and VARLONG).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

TABLE_SIZE = 65536  # numbers in :func:`varint_table`
VARINT_OCTETS = 10  # of a 64-bit number
_BITS = 64


def encode_varint(number: int) -> bytes:
    """The octets of a signed number of up to 64 bits. Raises ValueError for a larger one."""
    zigzag = number << 1 if number >= 0 else ~(number << 1)
    if zigzag >> _BITS:
        raise ValueError(f"a varint holds 64 bits, which {number} does not fit")
    octets = bytearray()
    while zigzag > 0x7F:
        octets.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    octets.append(zigzag)
    return bytes(octets)


def encode_varints(numbers: Sequence[int]) -> list[bytes]:
    """The octets of each of at least one number."""
    table, size = varint_table(), TABLE_SIZE
    if min(numbers) >= 0 and max(numbers) < size:
        return [table[number] for number in numbers]
    return [table[number] if 0 <= number < size else encode_varint(number) for number in numbers]


def decode_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """The number at ``position`` and the position behind it.

    Raises IndexError where the buffer ends too early and ValueError for a number of more than 64 bits.
    """
    octet = buffer[position]
    position += 1
    if octet < 0x80:
        return (octet >> 1) ^ -(octet & 1), position
    zigzag, shift = octet & 0x7F, 7
    while True:
        octet = buffer[position]
        position += 1
        zigzag |= (octet & 0x7F) << shift
        if octet < 0x80:
            break
        shift += 7
        if shift >= 7 * VARINT_OCTETS:
            raise ValueError(f"a varint of more than {VARINT_OCTETS} octets")
    if zigzag >> _BITS:
        raise ValueError("a varint of more than 64 bits")
    return (zigzag >> 1) ^ -(zigzag & 1), position


def varint_octets(length: int) -> int:
    """How many octets the varint of a length (a number from 0 to 2**31 - 1) takes."""
    if length < 64:
        return 1
    if length < 8192:
        return 2
    if length < 1048576:
        return 3
    return 4 if length < 134217728 else 5


@cache
def varint_table() -> list[bytes]:
    """The octets of 0 to 65 535. Most lengths, offset deltas and timestamp deltas are so small.

    A look-up then takes the place of a loop. Filling pages of the table on demand would cost a branch for
    every record, so it is filled at once: joining first octets to the rest takes 3 ms, and computing each
    number's octets 9. A broker that passes on its clients' batches never needs it.
    """
    first = [bytes((octet,)) for octet in range(0x80, 0x100, 2)]
    rest = [bytes((octet,)) for octet in range(1, 0x80)]
    rest += [bytes((octet, last)) for last in range(1, TABLE_SIZE >> 13) for octet in range(0x80, 0x100)]
    return [bytes((n << 1,)) for n in range(64)] + [begin + end for end in rest for begin in first]
