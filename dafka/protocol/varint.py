"""Kafka's varints: zigzag-encoded, seven bits an octet, least significant first."""

from __future__ import annotations

TABLE_SIZE = 65536


def encode_varint(number: int) -> bytes:
    """The octets of a signed number of up to 64 bits."""
    zigzag = (number << 1) ^ (number >> 63)
    octets = bytearray()
    while zigzag > 0x7F:
        octets.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    octets.append(zigzag)
    return bytes(octets)


def decode_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """The number at ``position`` and the position behind it. Raises IndexError, ValueError."""
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
            return (zigzag >> 1) ^ -(zigzag & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than 10 octets")


# Most lengths, offset deltas and timestamp deltas are small: a look-up instead of a loop. Made on first
# use of an entry's page would cost a branch for every record, so the table is made at once (8 ms).
VARINT: list[bytes] = [bytes((n << 1,)) for n in range(64)]
VARINT += [bytes(((n << 1) & 0x7F | 0x80, n >> 6)) for n in range(64, 8192)]
VARINT += [bytes(((n << 1) & 0x7F | 0x80, n >> 6 & 0x7F | 0x80, n >> 13)) for n in range(8192, TABLE_SIZE)]
