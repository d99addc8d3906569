"""Messages that were sent to a replica and not answered: which answer acknowledges which.

A state machine without I/O. A ZPWriter answers in mode 2 for each message, in order, with its last frame, so
an answer acknowledges the oldest message. One that answers at its flushes only (the Java server does,
whatever the mode) says the last frame of the message that made it flush: the first message with that frame,
and all before it, are acknowledged. With ``decoder = false`` it flushes between the frames of a message, too,
and says the one that it has stored last: then all messages before this one are acknowledged. Where equal
frames make that too few, later answers make up for it.

With ``decoder = true`` the Java server says the identity of the client in place of a frame. Each of its
answers is about another message at least, so it acknowledges the oldest.

Such a server looks at its clock only when a message comes, and a full window would wait for ever. So the
window grows by one message for each second without an answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dafka.zper.singles import Frames


class _Sent(NamedTuple):
    next_offset: int
    frames: Frames
    octets: int


class InFlight:
    """The messages of one partition on their way to one replica.

    ``acknowledged`` is the offset of the first record that the replica has not answered for. ``identity`` is
    that of the socket.
    """

    def __init__(self, acknowledged: int, messages: int, octets: int, identity: bytes = b"") -> None:
        self.acknowledged = acknowledged
        self._identity = identity
        self.octets = 0
        self._most_messages = messages
        self._most_octets = octets
        self._extra = 0
        self._sent: deque[_Sent] = deque()
        self._skipped = acknowledged  # needs no answer once nothing is in flight

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def room(self) -> int:
        """How many messages may be sent now."""
        if self.octets >= self._most_octets:
            return self._extra
        return max(self._most_messages + self._extra - len(self._sent), 0)

    def send(self, messages: Iterable[tuple[int, Frames]]) -> None:
        """These are sent: each with the offset behind its record."""
        for next_offset, frames in messages:
            octets = sum(map(len, frames))
            self._sent.append(_Sent(next_offset, frames, octets))
            self.octets += octets
            self._extra = max(self._extra - 1, 0)

    def skip(self, offset: int) -> None:
        """Messages before ``offset`` that were not sent are not for the replica."""
        self._skipped = max(self._skipped, offset)
        self._settle()

    def answer(self, frames: Sequence[bytes]) -> bool:
        """The replica has answered; False if no message in flight has that frame."""
        done = self._acknowledged_by(frames[-1])
        if done is None:
            return False
        for _ in range(done):
            sent = self._sent.popleft()
            self.octets -= sent.octets
            self.acknowledged = sent.next_offset
        self._extra = 0
        self._settle()
        return True

    def _acknowledged_by(self, frame: bytes) -> int | None:
        """How many messages an answer acknowledges; None if it is about none."""
        for place, sent in enumerate(self._sent):
            if sent.frames[-1] == frame:
                return place + 1
            if frame in sent.frames:
                return place
        return 1 if self._sent and frame == self._identity else None

    def wait_longer(self) -> None:
        """There was no answer for a second."""
        if self._sent and self.room == 0:
            self._extra += 1

    def lose(self) -> int:
        """The connection has ended: the offset to go on from."""
        self._sent.clear()
        self.octets = self._extra = 0
        self._skipped = self.acknowledged
        return self.acknowledged

    def _settle(self) -> None:
        if not self._sent:
            self.acknowledged = max(self.acknowledged, self._skipped)
