"""Frames under encryption: the same stream of frames comes out, wherever octets are torn."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.zmtp.commands import encode_command
from dafka.zmtp.encoding import encode
from dafka.zmtp.sealing import OVERHEAD_OCTETS, Opener, Sealer

KEY = os.urandom(32)
PREFIX = b"CurveZMQMESSAGEC"


def ends() -> tuple[Sealer, Opener]:
    opener = Opener(KEY, PREFIX, 2)
    opener.max_octets = 1_000_000
    return Sealer(KEY, PREFIX, 2), opener


FRAMES = st.lists(
    st.one_of(
        st.lists(st.binary(max_size=600), min_size=1, max_size=3).map(
            lambda frames: b"".join(encode(frames))
        ),
        st.binary(max_size=300).map(lambda data: encode_command(b"SUBSCRIBE", data)),
    ),
    max_size=8,
)


@given(FRAMES, st.lists(st.integers(0, 10_000), max_size=6), st.lists(st.integers(0, 10_000), max_size=6))
def test_opened_octets_are_the_sealed_ones(frames, torn_before, torn_behind):
    sealer, opener = ends()
    plain = b"".join(frames)
    sealed = b"".join(sealer.seal(piece) for piece in pieces(plain, torn_before))
    assert b"".join(opener.open(piece) for piece in pieces(sealed, torn_behind)) == plain
    assert opener.error is None and not opener.held


def pieces(octets: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(octets), *(cut % (len(octets) + 1) for cut in cuts)})
    return [octets[begin:end] for begin, end in pairwise(places)]


@pytest.mark.parametrize("size", [0, 222, 223, 255, 256, 100_000])
def test_a_sealed_frame_is_longer_by_a_known_number_of_octets(size):
    sealer, _ = ends()
    sealed = sealer.seal(b"".join(encode([bytes(size)])))
    header = 2 if size + OVERHEAD_OCTETS < 256 else 9
    assert len(sealed) == header + OVERHEAD_OCTETS + size


def test_nothing_is_kept_of_a_frame_that_is_longer_than_allowed():
    sealer, opener = ends()
    opener.max_octets = 100
    opener.open(sealer.seal(b"".join(encode([bytes(5000)])))[:50])
    assert opener.error is not None and opener.error.cause == "message-size" and not opener.held


def test_it_says_beforehand_that_a_long_frame_will_be_complete():
    sealer, opener = ends()
    sealed = sealer.seal(b"".join(encode([bytes(5000)])))
    opener.open(sealed[:1000])
    left = len(sealed) - 1000
    assert opener.completes(left - 1) == 0 and opener.completes(left) == len(sealed)
