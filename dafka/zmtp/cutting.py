"""Octets to frames: messages cut out of what was received, many at once.

In Python each frame's turn through a loop is expensive. Messages of a stream are much alike, so when a
message begins like the one before it, the headers of all that may follow are compared as columns: every octet
of a header stands in the buffer at the same distance from its neighbours in the messages before and behind
it, and a slice with that distance as its step takes the whole column out, to be compared in C. As many
messages as have the same headers are then cut without looking at each.

A frame longer than what has arrived is collected in a buffer that grows with the octets that arrive, whatever
length is announced.

A user that knows more about a stream than that its headers are alike may take messages out of the buffer
(:class:`Taker`); the rest is cut here.
"""

from __future__ import annotations

from io import BytesIO
from typing import Protocol

from dafka.zmtp import limits
from dafka.zmtp.errors import FramingError, ProtocolError, TooLargeError

MORE, LONG, COMMAND = 0x01, 0x02, 0x04
_FLAGS = frozenset({0, MORE, LONG, MORE | LONG, COMMAND, COMMAND | LONG})

Frames = tuple[bytes, ...]
"""A message. Python's garbage collector does not walk tuples of bytes, however many wait in a queue."""


class Taker(Protocol):
    """Takes messages that it knows out of a receive buffer, many at once."""

    def take(self, buffer: bytes, position: int, most: int, cut: int) -> tuple[int, int]:
        """Keep complete messages that begin at ``position``, ``most`` at most.

        Returns where they end and how many they are. None is the right answer whenever it is in doubt.
        ``cut``: how many messages were cut before since the taker is there, which says where these belong.
        """


class Cutter:
    """Cuts messages and commands out of octets that arrive in pieces of any size.

    ``max_octets`` bounds a message over all of its frames, ``max_command`` a command. ``taker`` is offered
    what begins with a message, and ``taken`` says how many messages it took in the last :meth:`cut`. They
    are bounded by what is received at once, and not by ``max_octets``.
    """

    def __init__(self, max_octets: int, max_command: int, taker: Taker | None = None) -> None:
        self.max_octets = max_octets
        self.max_command = max_command
        self.taker = taker
        self.taken = 0
        self.pending = False
        """Whether more can be cut out of what has arrived."""
        self._buffer = b""
        self._position = 0
        self._frames: list[bytes] = []  # of the message in progress
        self._octets = 0
        self._long: BytesIO | None = None  # the frame in progress, if it is long
        self._long_flags = 0
        self._missing = 0  # octets of it
        self._cut = 0  # messages, since there is a taker

    @property
    def held(self) -> int:
        """Octets held: the message in progress, and received octets that are not cut yet."""
        size = len(self._buffer) - self._position + self._octets + limits.FRAME_OCTETS * len(self._frames)
        return size if self._long is None else size + self._long.tell()

    @property
    def in_progress(self) -> bool:
        """Whether a message, or a frame, has arrived in part."""
        return bool(self._frames) or self._long is not None or self._position < len(self._buffer)

    def feed(self, octets: bytes) -> None:
        """Take octets that have arrived."""
        if self._missing:
            assert self._long is not None
            if len(octets) <= self._missing:
                self._long.write(octets)
                self._missing -= len(octets)
                self.pending = not self._missing
                return
            self._long.write(memoryview(octets)[: self._missing])
            self._buffer, self._position, self._missing = octets, self._missing, 0
        elif self._position < len(self._buffer):
            self._buffer, self._position = self._buffer[self._position :] + octets, 0
        else:
            self._buffer, self._position = octets, 0
        self.pending = True

    def take_rest(self) -> bytes:
        """Octets that have arrived and were not cut, to be read in another way."""
        rest = self._buffer[self._position :]
        self._buffer, self._position, self.pending = b"", 0, False
        return rest

    def cut(self, most: int) -> tuple[list[Frames], bytes | None]:
        """Up to ``most`` messages, in order, and the body of the command behind them, if one comes next.

        Raises FramingError and TooLargeError, which leave the connection without use.
        """
        messages: list[Frames] = []
        self.taken = 0
        if self._long is not None:
            if self._missing:
                return messages, None
            body, self._long = self._long.getvalue(), None
            self.pending = self._position < len(self._buffer)
            if self._long_flags & COMMAND:
                return messages, body
            self._add(body)
            if not self._long_flags & MORE:
                messages.append(self._take())
        buffer, position, end = self._buffer, self._position, len(self._buffer)
        begin = -1 if self._frames else position  # of the message, unless it began in an earlier buffer
        room = self.max_octets - self._octets
        command: bytes | None = None
        unlike = 0  # messages to be cut before the next attempt at a run
        take = None if self.taker is None else self.taker.take
        self.pending = False
        try:
            while True:
                if take is not None and not self._frames and position < end:
                    position, count = take(buffer, position, most - len(messages), self._cut + len(messages))
                    if count:
                        self.taken += count
                        most -= count
                        begin = position
                if len(messages) >= most:
                    self.pending = position < end
                    break
                at = position + 2
                if at > end:
                    break
                flags = buffer[position]
                size = buffer[position + 1]
                if flags > MORE:
                    if flags not in _FLAGS:
                        raise FramingError("flags", f"a frame with the flags {flags:#04x}")
                    if flags & LONG:
                        at = position + 9
                        if at > end:
                            break
                        size = int.from_bytes(buffer[position + 1 : at], "big")
                    if flags & COMMAND and size > self.max_command:
                        raise TooLargeError("command-size", f"{size} octets; {self.max_command} are the most")
                if size > room and not flags & COMMAND:
                    raise TooLargeError(
                        "message-size", f"{self._octets + size} octets; {self.max_octets} are the most"
                    )
                after = at + size
                if after > end:
                    if size > limits.GROWING_OCTETS:
                        self._grow(flags, memoryview(buffer)[at:], size)
                        position = end
                    break
                body = buffer[at:after]
                if flags & COMMAND:
                    command = body
                    position = after
                    self.pending = position < end
                    break
                if flags & MORE:
                    self._add(body)
                    room -= size
                    position = after
                    continue
                if self._frames:
                    self._add(body)
                    messages.append(self._take())
                    room = self.max_octets
                else:
                    messages.append((body,))
                position = after
                if unlike:
                    unlike -= 1
                elif begin >= 0 and buffer[position : position + 2] == buffer[begin : begin + 2]:
                    after = self._run(buffer, begin, position, messages, most)
                    if after == position:
                        unlike = limits.UNLIKE_MESSAGES
                    position = after
                begin = position
        except ProtocolError:
            if not messages and not self.taken:
                raise
            self.pending = True  # those in front of it count; it is raised again when they are taken
        if take is not None:
            self._cut += len(messages)
        if position == end:
            self._buffer, self._position = b"", 0
        else:
            self._position = position
        return messages, command

    @staticmethod
    def _run(buffer: bytes, begin: int, end: int, messages: list[Frames], most: int) -> int:
        """Cut the messages that have the headers of the one from ``begin`` to ``end``; where they end."""
        stride = end - begin
        count = min((len(buffer) - end) // stride, most - len(messages))
        frames = messages[-1]
        if len(frames) > limits.RUN_FRAMES:
            return end
        bodies: list[tuple[int, int]] = []  # in the next message: where each begins, its size
        at = begin
        for frame in frames:
            body = at + (9 if buffer[at] & LONG else 2)
            for octet in range(at, body):
                column = buffer[octet + stride : octet + count * stride + 1 : stride]
                count -= len(column.lstrip(buffer[octet : octet + 1]))
                if count < 1:
                    return end
            at = body + len(frame)
            bodies.append((body + stride, len(frame)))
        last = count * stride
        columns = [
            [buffer[place : place + size] for place in range(at, at + last, stride)] for at, size in bodies
        ]
        messages += zip(*columns, strict=True)
        return end + last

    def _grow(self, flags: int, begun: memoryview, size: int) -> None:
        self._long = BytesIO()
        self._long.write(begun)
        self._long_flags = flags
        self._missing = size - len(begun)

    def _add(self, frame: bytes) -> None:
        if len(self._frames) >= limits.MESSAGE_FRAMES:
            raise TooLargeError("message-frames", f"more than {limits.MESSAGE_FRAMES} frames")
        self._frames.append(frame)
        self._octets += len(frame)

    def _take(self) -> Frames:
        frames, self._frames, self._octets = self._frames, [], 0
        return tuple(frames)
