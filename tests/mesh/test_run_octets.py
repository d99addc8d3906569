"""Runs as octets: the same as libzmq's frames of the same messages."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.mesh.run_octets import octets_of
from dafka.protocol.commands import Head
from dafka.protocol.framing import Framing, encode
from dafka.protocol.runs import Run, encode_run, topic_of
from dafka.zmtp.cutting import Cutter

ADDRESS, OTHER = b"A" * 32, b"B" * 32
dice = random.Random(5)
SIZES = st.sampled_from([0, 100, 300, 5000])

any_contents = st.one_of(
    st.lists(st.binary(max_size=5), min_size=1, max_size=20),
    st.builds(lambda count, size: [bytes(size)] * count, st.integers(1, 600), SIZES),
    st.builds(
        lambda count: [dice.randbytes(dice.choice([0, 255, 256, 70])) for _ in range(count)],
        st.integers(1, 600),
    ),
    st.just([b"x", bytes(4097), b"y", bytes(4096)]),
)
any_run = st.builds(
    Run,
    st.sampled_from([None, OTHER]),
    st.just(ADDRESS),
    st.sampled_from([b"hello", b"h" * 255, b"\0nul"]),
    st.integers(0, 2**40) | st.integers(200, 300) | st.just(2**63),
    any_contents,
)


def messages(buffers: list[bytes]) -> list[list[bytes]]:
    cutter = Cutter(1 << 30, 4096)
    found = []
    for buffer in buffers:
        cutter.feed(buffer)
        while cutter.pending:
            found += map(list, cutter.cut(1000)[0])
    assert not cutter.in_progress
    return found


@given(any_run, st.sampled_from(Framing))
def test_a_run_is_the_frames_of_its_messages(run: Run, framing: Framing) -> None:
    first, buffers, count = octets_of(run, framing)
    found = messages(buffers)
    assert found == encode_run(run, framing)
    assert count == len(found)
    assert all(message[0].startswith(first) for message in found)
    assert first.startswith(topic_of(run))


@pytest.mark.parametrize("framing", Framing)
def test_so_are_commands(framing: Framing) -> None:
    head = Head(ADDRESS, b"hello", 7)
    first, buffers, count = octets_of(head, framing)
    assert messages(buffers) == [encode(head, framing)]
    assert (first, count) == (encode(head, framing)[0], 1)


def test_small_contents_are_joined_and_large_ones_are_not_copied() -> None:
    small = Run(None, ADDRESS, b"hello", 0, [bytes(100)] * 256)
    assert len(octets_of(small, Framing.LIBDAFKA)[1]) == 1
    content = bytes(4097)
    large = Run(None, ADDRESS, b"hello", 0, [content] * 3)
    assert octets_of(large, Framing.LIBDAFKA)[1][1::2] == [content] * 3
    assert all(buffer is content for buffer in octets_of(large, Framing.LIBDAFKA)[1][1::2])


@pytest.mark.parametrize("first", [-1, 2**64 - 1])
def test_sequences_that_do_not_fit_are_not_written(first: int) -> None:
    with pytest.raises(ValueError, match=f"{first} to {first + 1}"):
        octets_of(Run(None, ADDRESS, b"hello", first, [b"a", b"b"]), Framing.LIBDAFKA)
