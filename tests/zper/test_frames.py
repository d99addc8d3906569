"""Iterating a super frame, wherever it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.raw import RawError, encode_message, encode_messages
from dafka.zper import frames

MESSAGE = st.lists(st.binary(max_size=5) | st.binary(min_size=250, max_size=260), min_size=1, max_size=4)


@given(st.lists(MESSAGE, max_size=8), st.data(), st.integers(0, 2**62))
def test_gives_the_whole_messages_with_their_positions(
    messages: list[list[bytes]], data: st.DataObject, position: int
):
    octets = encode_messages(messages)
    cut = octets[: data.draw(st.integers(0, len(octets)))]
    ends = [position + len(encode_messages(messages[:number])) for number in range(len(messages) + 1)]
    whole = [
        frames.Message(start, message, end)
        for message, start, end in zip(messages, ends, ends[1:], strict=False)
        if end <= position + len(cut)
    ]
    assert list(frames.iterate(cut, position)) == whole


@given(MESSAGE)
def test_the_size_of_a_message_is_that_of_its_raw_form(message: list[bytes]):
    assert frames.size(message) == len(encode_message(message))


def test_sizes_that_differ_from_ours_and_even_out_are_seen():
    """255 octets in the short form are 7 fewer than ours, 3 octets in the long form 7 more."""
    octets = b"\x00\xff" + b"x" * 255 + b"\x02" + (3).to_bytes(8, "big") + b"abc"
    assert [message.end for message in frames.iterate(octets)] == [257, 269]


def test_octets_that_are_not_raw_form_are_an_error():
    with pytest.raises(RawError):
        list(frames.iterate(b"\x07\x01a"))


def test_octets_from_the_middle_of_a_message_are_refused_with_their_position():
    with pytest.raises(RawError, match="at position 3 begins no message"):
        list(frames.iterate(b"nder\x00\x01a", position=3))
