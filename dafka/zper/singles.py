"""Messages of one frame, taken out of a receive buffer many at once and kept as a list of their frames.

Nearly all messages that clients write have one frame, and many of the same size follow each other. They stand
in the buffer as they will in a super frame: header, payload, header, payload. So their headers are compared
as columns, and ``struct`` takes all payloads out with one call. There is no tuple for each message, which
would also be work for Python's garbage collector.

All other octets are left to be cut as messages (:mod:`dafka.zmtp.cutting`), and come in with
:meth:`SinglesTaker.read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, overload

Frames = Sequence[bytes]

_LONG = 0x02  # a flag of ZMTP's frames
_BLOCK = 128  # payloads that are taken out with one call


class Singles(Sequence[Frames]):
    """Messages of one frame each; ``frames`` are these."""

    __slots__ = ("frames",)

    def __init__(self, frames: list[bytes]) -> None:
        self.frames = frames

    def __len__(self) -> int:
        return len(self.frames)

    @overload
    def __getitem__(self, place: int) -> Frames: ...
    @overload
    def __getitem__(self, place: slice) -> Singles: ...
    def __getitem__(self, place: Any) -> Any:
        found = self.frames[place]
        return Singles(found) if isinstance(place, slice) else (found,)

    def __iter__(self) -> Iterator[Frames]:
        return zip(self.frames)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(map(list, self)) == list(map(list, other))

    __hash__ = None  # type: ignore[assignment]


class SinglesTaker:
    """Takes the messages of one frame of a connection, each of at most ``max_octets``."""

    def __init__(self, max_octets: int) -> None:
        self._max_octets = max_octets
        self._taken: list[tuple[int, list[bytes]]] = []  # behind how many messages that were cut
        self._read = 0  # messages that were cut and given to :meth:`read`

    def take(self, buffer: bytes, position: int, most: int, cut: int) -> tuple[int, int]:
        """Take the messages at ``position``, ``most`` at most: where they end, how many they are."""
        frames: list[bytes] = []
        end = len(buffer)
        while len(frames) < most and position + 2 <= end:
            flags, size, head = buffer[position], buffer[position + 1], 2
            if flags:
                head = 9
                if flags != _LONG or position + head > end:
                    break
                size = int.from_bytes(buffer[position + 1 : position + head], "big")
            behind = position + head + size
            if behind > end or size > self._max_octets:
                break
            if buffer[behind : behind + head] == buffer[position : position + head]:
                position = _take_alike(buffer, position, head, size, most - len(frames), frames)
            else:
                frames.append(buffer[position + head : behind])
                position = behind
        if frames:
            if self._taken and self._taken[-1][0] == cut:
                self._taken[-1][1].extend(frames)
            else:
                self._taken.append((cut, frames))
        return position, len(frames)

    def read(self, messages: Sequence[Frames]) -> list[Sequence[Frames]]:
        """The messages taken since the last call and ``messages``, which were cut meanwhile, in their
        order."""
        taken, self._taken = self._taken, []
        ordered: list[Sequence[Frames]] = []
        begin = 0
        for cut, frames in taken:
            behind = min(cut - self._read, len(messages))
            if behind > begin:
                ordered.append(messages[begin:behind])
                begin = behind
            ordered.append(Singles(frames))
        if begin < len(messages):
            ordered.append(messages[begin:])
        self._read += len(messages)
        return ordered


def _take_alike(buffer: bytes, position: int, head: int, size: int, most: int, frames: list[bytes]) -> int:
    """Add the payloads of as many messages as have the same header; where they end."""
    stride = head + size
    count = min((len(buffer) - position) // stride, most)
    for place in range(position, position + head):
        column = buffer[place : position + count * stride : stride]
        count = min(count, len(column) - len(column.lstrip(column[:1])))
    for first in range(0, count, _BLOCK):
        some = min(_BLOCK, count - first)
        frames += _payloads(head, size, some).unpack_from(buffer, position + first * stride)
    return position + count * stride


@lru_cache(maxsize=256)
def _payloads(head: int, size: int, count: int) -> Struct:
    return Struct(f"{head}x{size}s" * count)
