"""The octets of a body come one after the other, wherever its pieces end, and no more than are there."""

from __future__ import annotations

import pytest

from dafka.protocol.batch_body import Allowance, Plain, Source, TooMuchWorkError, Unfolding, Work
from dafka.protocol.varint import decode_varint, encode_varint

NUMBERS = [0, -1, 5, 300, -70_000, 2**40]
BODY = b"".join(map(encode_varint, NUMBERS)) + bytes(100) + encode_varint(7)


def in_pieces(body: bytes, size: int, work: Work) -> Unfolding:
    return Unfolding((body[at : at + size] for at in range(0, len(body), size)), work)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("kind", [Plain, Unfolding])
def test_numbers_are_read_and_octets_passed_over_across_pieces(kind, size):
    octets = Plain(memoryview(BODY), size) if kind is Plain else in_pieces(BODY, size, Work())
    source = Source(octets)
    assert [source.varint(decode_varint) for _ in NUMBERS] == NUMBERS
    source.skip(100)
    assert source.passed == len(BODY) - 1
    assert not source.is_at_end()
    assert source.varint(decode_varint) == 7
    assert source.is_at_end()
    assert source.passed == len(BODY)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("kind", [Plain, Unfolding])
def test_leading_out_of_the_body_is_an_error(kind, size):
    def source() -> Source:
        return Source(Plain(memoryview(BODY), size) if kind is Plain else in_pieces(BODY, size, Work()))

    with pytest.raises(ValueError, match="5 octets behind the end"):
        beyond = source()
        beyond.skip(len(BODY) + 5)
        beyond.is_at_end()
    ended = source()
    ended.skip(len(BODY))
    with pytest.raises(ValueError, match="behind the end"):
        ended.varint(decode_varint)


def test_unfolding_spends_work_and_an_allowance_ends_it():
    work = Work(10_000)
    Source(in_pieces(bytes(100_000), 1000, work)).skip(100_000)
    assert work.left < 10_000
    with pytest.raises(TooMuchWorkError):
        Source(in_pieces(bytes(100_000), 1000, Allowance(20))).skip(100_000)
