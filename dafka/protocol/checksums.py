"""CRC-32C of octets whose parts have known checksums, without another look at these parts.

The checksum of A and B together follows from those of both and from how many octets B has: that of A is moved
on by so many zeros, and B's is added without carries. Moving on is linear in the bits of a checksum. So for
each power of two octets there are tables, one for each four bits, and any length takes some ten microseconds,
where looking at a megabyte takes a hundred.
"""

from __future__ import annotations

from functools import cache

from crc32c import crc32c

_LEAST = 256 * 1024  # octets that are looked at in less time

_Tables = tuple[tuple[int, ...], ...]


def crc32c_behind(content: bytes | memoryview, known: int, start: int, checksum: int = 0) -> int:
    """The checksum of what has ``checksum`` with ``content`` behind it, as ``crc32c(content, checksum)``.

    ``known``: that of the octets of ``content`` from ``start`` on, which is believed.
    """
    length = len(content) - start
    if length < _LEAST:
        return crc32c(content, checksum)
    return _moved(crc32c(memoryview(content)[:start], checksum), length) ^ known


def _moved(checksum: int, octets: int) -> int:
    """The checksum of octets and so many zeros, as far as it comes from that of the octets."""
    power = 0
    while octets:
        if octets & 1:
            a, b, c, d, e, f, g, h = _tables(power)
            checksum = (
                a[checksum & 15]
                ^ b[checksum >> 4 & 15]
                ^ c[checksum >> 8 & 15]
                ^ d[checksum >> 12 & 15]
                ^ e[checksum >> 16 & 15]
                ^ f[checksum >> 20 & 15]
                ^ g[checksum >> 24 & 15]
                ^ h[checksum >> 28]
            )
        octets >>= 1
        power += 1
    return checksum


@cache
def _tables(power: int) -> _Tables:
    """How each four bits of a checksum, the lowest first, are moved on by two to the ``power`` octets."""
    if power:
        move = [_moved(_moved(1 << bit, 1 << power - 1), 1 << power - 1) for bit in range(32)]
    else:
        without = crc32c(b"\0")  # crc32c inverts before and afterwards: what that makes is taken away
        move = [crc32c(b"\0", 1 << bit) ^ without for bit in range(32)]
    return tuple(tuple(_added(move[low : low + 4], bits) for bits in range(16)) for low in range(0, 32, 4))


def _added(moved: list[int], bits: int) -> int:
    total = 0
    for place, one in enumerate(moved):
        if bits >> place & 1:
            total ^= one
    return total
