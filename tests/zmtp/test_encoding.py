"""Messages as octets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zmtp.vectors import message

from dafka.zmtp.encoding import JOINED_OCTETS, encode, encode_all

FRAMES = st.lists(
    st.one_of(st.binary(max_size=300), st.just(b"x" * (JOINED_OCTETS + 1))), min_size=1, max_size=4
)


@pytest.mark.parametrize(
    ("frames", "octets"),
    [
        ([b""], b"\x00\x00"),
        ([b"hello"], b"\x00\x05hello"),
        ([b"", b"hello"], b"\x01\x00\x00\x05hello"),
        ([b"x" * 255], b"\x00\xff" + b"x" * 255),
        ([b"x" * 256], b"\x02\x00\x00\x00\x00\x00\x00\x01\x00" + b"x" * 256),
        ([b"x" * 256, b""], b"\x03\x00\x00\x00\x00\x00\x00\x01\x00" + b"x" * 256 + b"\x00\x00"),
    ],
)
def test_frames_are_those_of_the_specification(frames: list[bytes], octets: bytes):
    assert b"".join(encode(frames)) == octets


@given(st.lists(FRAMES, max_size=20))
def test_many_messages_are_the_octets_of_each(messages: list[list[bytes]]):
    expected = b"".join(message(*frames) for frames in messages)
    assert b"".join(encode_all(messages)) == expected
    assert b"".join(b"".join(encode(frames)) for frames in messages) == expected


@given(st.integers(0, 1000), st.integers(1, 100))
def test_messages_of_one_size_are_one_buffer(size: int, count: int):
    messages = [[b"x" * size]] * count
    assert encode_all(messages) == [b"".join(message(*frames) for frames in messages)]


def test_a_large_frame_is_not_copied():
    large = b"x" * (JOINED_OCTETS + 1)
    buffers = encode([b"head", large, b"tail"])
    assert len(buffers) == 3
    assert buffers[1] is large


def test_a_message_without_frames_is_refused():
    with pytest.raises(ValueError, match="without frames"):
        encode([])
    with pytest.raises(ValueError, match="without frames"):
        encode_all([[b"a"], []])
    assert encode_all([]) == []
