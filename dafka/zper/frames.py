"""The super frame: messages in RAW form one behind the other, as a FETCH brings them.

    for message in frames.iterate(super_frame, position):
        print(message.frames)
        position = message.end  # where to go on, if the program is started again

The last message of a super frame may be cut. It is not iterated: FETCH from the end of the last whole one
brings it again from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from dafka.protocol.raw import RawError, decode_messages, encode_messages, message_sizes, split_messages


class Message(NamedTuple):
    """A message as it is stored."""

    position: int
    """Octets from the beginning of the topic."""
    frames: list[bytes]
    end: int
    """Position of the next message."""


def iterate(super_frame: bytes, position: int = 0) -> Iterator[Message]:
    """The whole messages of a super frame that was fetched from ``position`` on.

    Raises :class:`~dafka.protocol.raw.RawError` if they do not begin with a message in RAW form.
    """
    try:
        messages, end = decode_messages(super_frame)
    except RawError as error:
        raise RawError(error.cause, f"at position {position} begins no message ({error})") from None
    if encode_messages(messages) == super_frame[:end]:
        sizes = message_sizes(messages)
    else:  # the Java server keeps frames as they came, so their form may be another one than ours
        sizes = list(map(len, split_messages(super_frame)[0]))
    ends = accumulate(sizes, initial=position)
    for frames, (start, behind) in zip(messages, pairwise(ends), strict=True):
        yield Message(start, frames, behind)


def size(frames: list[bytes]) -> int:
    """Octets that a message takes: its end less its position."""
    return message_sizes([frames])[0]
