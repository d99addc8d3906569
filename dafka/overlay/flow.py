"""Back-pressure: which messages may be sent on each link now, which wait, and when a neighbour may send more.

**Credit.** A node may send its neighbour so many octets of messages, and no more before the neighbour has
given credit anew, which it does when the messages have found room: with its subscribers, and in its queues to
the next hops. So a subscriber that does not read stops the link to it, then those before it, and in the end
the publishers on its topics; and nobody else. Each message costs its octets and MESSAGE_COST. A message may
be sent as long as there is any credit left, so a large one may overdraw it. Subscriptions, commands of stores
and pings need no credit: they are never held up.

**Heights.** In a ring, three nodes could wait for each other: each for room at the next, for messages that go
on. So credit is given, and messages wait, for each height apart: the number of hops that a message still has
to go behind the neighbour. A message at its last hop waits for subscribers only; the others wait for messages
of smaller heights, never in a circle.

**Peers of version 1** know no credit. Messages to them wait here while their connection's queue is full
(:meth:`Flow.drained` says when it is not), and they are not read while their messages find no room.

``overflow`` says what happens to messages beyond QUEUE_OCTETS: with ``wait`` they are kept, and senders
have to wait while :meth:`Flow.is_full`; ``drop_newest`` and ``drop_oldest`` count them in ``dropped``; with
``disconnect`` the neighbour is left. The more waits for all neighbours together, the less may wait for each.
Messages under way when their senders were told to wait may still be too much for all, as each waits once for
each neighbour: beyond QUEUES_OCTETS the neighbour is left that it waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import NamedTuple

from dafka.overlay.counting import CountedOnce
from dafka.overlay.limits import (
    HELD_OCTETS,
    MESSAGE_COST,
    QUEUE_LEAST_OCTETS,
    QUEUE_OCTETS,
    QUEUES_OCTETS,
    WINDOW_OCTETS,
)
from dafka.overlay.wire.frames import Run
from dafka.protocol.errors import MalformedMessage

OVERFLOWS = ("wait", "disconnect", "drop_newest", "drop_oldest")

Key = tuple[bytes, int]  # a neighbour and a height


class Grant(NamedTuple):
    """Give a neighbour credit for messages of this height."""

    neighbour: bytes
    height: int
    octets: int


class Pause(NamedTuple):
    """Do not read a connection for now. Octets that were read already are still taken."""

    connection: int


class Resume(NamedTuple):
    """Read it again."""

    connection: int


class Room(NamedTuple):
    """Topics for which :meth:`~dafka.overlay.core.Core.is_blocked` was true may have room again."""


class TooSlow(Exception):
    """A neighbour that is to be left, because more waits for it than it may."""


class _Outlet:
    """The messages that wait for a neighbour at one height. ``balance``: its credit; of version 1, whether it
    takes more."""

    __slots__ = ("balance", "frames", "is_full", "octets")

    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.frames: deque[bytes] = deque()
        self.octets = 0
        self.is_full = False


class _Inlet:
    """The credit of a neighbour at one height, and the cost of its messages that have not found room."""

    __slots__ = ("blockers", "held", "left", "owed")

    def __init__(self) -> None:
        self.left = WINDOW_OCTETS
        self.owed = 0
        self.held = 0
        self.blockers: set[Hashable] = set()


class Flow:
    """All links of a node. A blocker is anything that had no room: an :data:`Key`, or the caller's own."""

    def __init__(self, overflow: str = "wait") -> None:
        if overflow not in OVERFLOWS:
            raise ValueError(f"overflow is one of {', '.join(OVERFLOWS)}, not {overflow!r:.100}")
        self.overflow = overflow
        self.dropped = 0
        self.held = 0
        """Octets that came and have not found room."""
        self.waiting = 0
        """Octets that wait for neighbours."""
        self._freed = False
        self._is_plain: dict[bytes, bool] = {}
        self._outlets: dict[Key, _Outlet] = {}
        self._inlets: dict[Key, _Inlet] = {}
        self._once = CountedOnce(self._frames)

    def link_up(self, neighbour: bytes, is_plain: bool) -> None:
        """``is_plain``: of version 1."""
        self._is_plain[neighbour] = is_plain

    def link_down(self, neighbour: bytes) -> list[Grant]:
        """The messages that waited for a neighbour are dropped, and hold up nobody any more."""
        if self._is_plain.pop(neighbour, None) is None:
            return []
        for key in [key for key in self._inlets if key[0] == neighbour]:
            self.held -= self._inlets.pop(key).held
        gone = [key for key in self._outlets if key[0] == neighbour]
        self._freed = self._freed or bool(gone)
        for key in gone:
            self.waiting -= self._outlets.pop(key).octets
        return [grant for key in gone for grant in self.room(key)]

    # -- sending ------------------------------------------------------------------------------------

    def is_full(self, neighbour: bytes, height: int) -> bool:
        """Whether senders of such messages have to wait."""
        outlet = self._outlets.get((neighbour, height))
        return outlet is not None and outlet.is_full

    def send(self, neighbour: bytes, height: int, frames: Run) -> bytes:
        """Messages with their lengths; the octets to send now. Raises :class:`TooSlow`."""
        outlet = self._outlets.get((neighbour, height))
        if outlet is None:
            if neighbour not in self._is_plain:
                return b""
            outlet = self._outlets[neighbour, height] = _Outlet(WINDOW_OCTETS)
        if not outlet.frames and outlet.balance > 0:
            octets = frames.octets
            cost = len(octets) + MESSAGE_COST * len(frames)
            if self._is_plain[neighbour]:
                return octets  # its connection says when it is too much
            if cost <= outlet.balance:
                outlet.balance -= cost
                return octets
        now = 0
        if not outlet.frames:
            while outlet.balance > 0 and now < len(frames):
                outlet.balance -= len(frames[now]) + MESSAGE_COST
                now += 1
        self._wait(outlet, frames[now:])
        return b"".join(frames[:now])

    def congested(self, neighbour: bytes) -> None:
        """The connection of a peer of version 1 takes nothing more for now."""
        if neighbour not in self._is_plain:
            return  # it is being left
        self._outlets.setdefault((neighbour, 0), _Outlet(0)).balance = 0

    def drained(self, neighbour: bytes) -> tuple[bytes, list[Grant]]:
        """A neighbour of version 1 reads again. The octets to send now, and new credit for others."""
        return self.credit(neighbour, 0, WINDOW_OCTETS)

    def has_more(self, neighbour: bytes) -> bool:
        """Whether more waits for a peer of version 1 than :meth:`drained` gave at once. If its connection has
        still room, it is to be called again: nobody else will."""
        outlet = self._outlets.get((neighbour, 0))
        return outlet is not None and bool(outlet.frames)

    def credit(self, neighbour: bytes, height: int, octets: int) -> tuple[bytes, list[Grant]]:
        """A neighbour gives credit. The octets to send now, and new credit for others."""
        outlet = self._outlets.get((neighbour, height))
        if outlet is None:
            return b"", []  # nothing was sent
        outlet.balance = min(outlet.balance + octets, WINDOW_OCTETS)
        sent = self._release(neighbour, outlet)
        if outlet.is_full and 2 * outlet.octets <= self._most:
            outlet.is_full = False
            self._freed = True
            return sent, self.room((neighbour, height))
        return sent, []

    def _wait(self, outlet: _Outlet, frames: list[bytes]) -> None:
        if self.overflow == "wait":
            outlet.frames.extend(frames)
            self._count(outlet, sum(map(len, frames)) + MESSAGE_COST * len(frames))
        else:
            self._wait_or_drop(outlet, frames)
        if outlet.octets > QUEUE_LEAST_OCTETS and self._once.exceeds(self.waiting, QUEUES_OCTETS):
            raise TooSlow(f"{self.waiting} octets wait for all peers, {outlet.octets} of them for this one")
        if outlet.octets >= self._most and self.overflow == "wait":
            outlet.is_full = True  # until half of it is gone

    def _wait_or_drop(self, outlet: _Outlet, frames: list[bytes]) -> None:
        for frame in frames:
            if outlet.octets >= self._most:
                if self.overflow == "disconnect":
                    raise TooSlow(f"{outlet.octets} octets wait for a peer")
                self.dropped += 1
                if self.overflow == "drop_newest":
                    continue
                self._count(outlet, -len(outlet.frames.popleft()) - MESSAGE_COST)
            outlet.frames.append(frame)
            self._count(outlet, len(frame) + MESSAGE_COST)

    @property
    def _most(self) -> int:
        """How much may wait for a neighbour at one height."""
        return min(QUEUE_OCTETS, max(QUEUE_LEAST_OCTETS, (QUEUES_OCTETS // 2 - self.waiting) // 4))

    def _frames(self) -> Iterable[bytes]:
        return chain.from_iterable([outlet.frames for outlet in self._outlets.values()])

    def _count(self, outlet: _Outlet, octets: int) -> None:
        outlet.octets += octets
        self.waiting += octets

    def _release(self, neighbour: bytes, outlet: _Outlet) -> bytes:
        frames, before = outlet.frames, outlet.balance
        if outlet.octets <= before:
            out, left = list(frames), before - outlet.octets
            frames.clear()
        else:
            out, left = [], before
            while frames and left > 0:
                frame = frames.popleft()
                out.append(frame)
                left -= len(frame) + MESSAGE_COST
        self._count(outlet, left - before)
        if not self._is_plain[neighbour]:
            outlet.balance = left
        return b"".join(out)

    def has_freed(self) -> bool:
        """Whether anything that was full has room again, since this was asked last."""
        freed, self._freed = self._freed, False
        return freed

    # -- receiving ----------------------------------------------------------------------------------

    def take(
        self, neighbour: bytes, height: int, cost: int, last: int, blockers: Iterable[Hashable]
    ) -> Grant | None:
        """Messages came that cost so much, the last of them ``last``; ``blockers`` had no room for them.

        Returns new credit, if it is time. Raises :class:`MalformedMessage` when the credit is exceeded, or
        too much is held for all neighbours together.
        """
        inlet = self._inlets.get((neighbour, height))
        if inlet is None:
            inlet = self._inlets[neighbour, height] = _Inlet()
        if inlet.left - cost + last <= 0:
            raise MalformedMessage("credit", f"{cost} octets, where credit for {inlet.left} was left")
        inlet.left -= cost
        inlet.blockers.update(blockers)
        if inlet.blockers:
            inlet.held += cost
            self.held += cost
            if self.held > HELD_OCTETS:
                raise MalformedMessage("held", f"{self.held} octets wait for room, at most {HELD_OCTETS}")
            return None
        inlet.owed += cost
        return self._give(neighbour, height, inlet)

    def hold(self, neighbour: bytes, blockers: Iterable[Hashable]) -> bool:
        """A message of version 1 came that these had no room for. Whether its peer was read until now."""
        if neighbour not in self._is_plain:
            return False  # it is being left
        inlet = self._inlets.setdefault((neighbour, 0), _Inlet())
        was_read = not inlet.blockers
        inlet.blockers.update(blockers)
        return was_read

    @property
    def paused(self) -> list[bytes]:
        """The peers of version 1 that are not read."""
        return [one for (one, _), inlet in self._inlets.items() if inlet.blockers and self._is_plain[one]]

    def room(self, blocker: Hashable) -> list[Grant]:
        """A blocker has room again. Returns the credit that its senders get for that."""
        grants = []
        for (neighbour, height), inlet in self._inlets.items():
            if blocker in inlet.blockers:
                inlet.blockers.discard(blocker)
                if not inlet.blockers and self._is_plain[neighbour]:
                    grants.append(Grant(neighbour, height, 0))
                elif not inlet.blockers:
                    self.held -= inlet.held
                    inlet.owed += inlet.held
                    inlet.held = 0
                    grant = self._give(neighbour, height, inlet)
                    if grant is not None:
                        grants.append(grant)
        return grants

    def _give(self, neighbour: bytes, height: int, inlet: _Inlet) -> Grant | None:
        if 4 * inlet.owed < WINDOW_OCTETS:
            return None
        given, inlet.owed = inlet.owed, 0
        inlet.left += given
        return Grant(neighbour, height, given)
