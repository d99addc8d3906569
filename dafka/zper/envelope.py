"""The envelope of ZeroMQ's request sockets: the empty frame in front of what a client says.

A REQ socket puts an empty frame before its message and wants it back before the answer; a DEALER may do the
same. So a first frame that is empty and has others behind it is the delimiter, and belongs to no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dafka.zper.singles import Frames, Singles

DELIMITER = b""


def has_delimiter(frames: Frames) -> bool:
    """Whether the first frame is the delimiter."""
    return not frames[0] and len(frames) > 1


def without_delimiters(messages: Sequence[Frames]) -> list[tuple[bool, Sequence[Frames]]]:
    """The messages without their delimiters, in order: in pieces whose messages all had one, or none."""
    if isinstance(messages, Singles) or max(map(len, messages)) == 1 or not any(map(has_delimiter, messages)):
        return [(False, messages)]
    return [
        (delimited, [message[1:] for message in some] if delimited else list(some))
        for delimited, some in groupby(messages, has_delimiter)
    ]


def answer(delimited: bool, frames: Frames) -> Frames:
    """An answer as the client expects it: with the delimiter if it sent one."""
    return (DELIMITER, *frames) if delimited else frames
