"""Messages are cut from a stream however it arrives, and a length that is too large ends it at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.overlay.wire.frames import FrameReader, frame
from dafka.protocol.errors import MalformedMessage


@given(st.lists(st.binary(min_size=1, max_size=40)), st.lists(st.integers(1, 50)))
def test_messages_arrive_whole_and_in_order_in_any_pieces(messages, sizes):
    stream = b"".join(map(frame, messages))
    reader, read = FrameReader(100), []
    for size in [*sizes, len(stream)]:
        piece, stream = stream[:size], stream[size:]
        reader.feed(piece)
        read += reader.messages()
    assert read == messages


@pytest.mark.parametrize("head", [bytes(4), b"GET / HTTP/1.1", b"\x00\x00\x00\x65"])
def test_a_length_of_nothing_or_too_much_is_refused_before_the_message_is_there(head):
    reader = FrameReader(100)
    reader.feed(frame(b"before") + head)
    messages = reader.messages()
    assert next(messages) == b"before"
    with pytest.raises(MalformedMessage) as caught:
        next(messages)
    assert caught.value.cause == "frame-length"


def test_the_limit_may_change_between_two_messages_of_one_piece():
    reader = FrameReader(10)
    reader.feed(frame(b"small") + frame(bytes(100)))
    messages = reader.messages()
    assert next(messages) == b"small"
    reader.limit = 1000
    assert next(messages) == bytes(100)
