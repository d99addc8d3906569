"""A checksum that is put together from those of parts is the one of the whole."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from dafka.protocol.checksums import crc32c_behind

LEAST = 256 * 1024
LENGTHS = [0, 22, 64, 1000, LEAST, LEAST + 1, LEAST + 21, LEAST + 22, 300_003, 1 << 19, (1 << 20) - 1]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("start", [0, 1, 21])
def test_the_checksum_is_that_of_all_octets(length: int, start: int) -> None:
    chance = random.Random(length)
    content = chance.randbytes(length)
    for before in (0, 1, 0xFFFFFFFF, chance.getrandbits(32)):
        known = crc32c(content[start:])
        assert crc32c_behind(content, known, start, before) == crc32c(content, before)
        assert crc32c_behind(memoryview(content), known, start, before) == crc32c(content, before)


def test_large_parts_are_not_looked_at_again() -> None:
    content = random.Random(1).randbytes(300_000)
    changed = content[:-1] + bytes([content[-1] ^ 1])
    known = crc32c(content[21:])
    assert crc32c_behind(changed, known, 21) == crc32c(content)
    assert crc32c_behind(content[:20] + b"x" + content[21:], known, 21) != crc32c(content)
