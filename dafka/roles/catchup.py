"""Catching up: which records are fetched, when, and how many, over all partitions of a consumer or a store.

"A consumer or store SHALL send the FETCH command if it detects it missed a record in a partition" (46/DAFKA,
The FETCH Command). The specification says no more, and a node that fetches on every record it cannot use
brings the mesh down. The rules here:

Credit. Delivered records take room, and a FETCH sets aside the room its answer will need, up to half of all
(:mod:`dafka.roles.room`). Partitions that are behind wait for it in a queue (:mod:`dafka.roles.fetch_queue`).
Published records that find no room are given back (:class:`~dafka.roles.outputs.Hold`); fetched ones are
dropped, and fetched again in their turn. Those that were kept behind a gap (:mod:`dafka.roles.ahead`) wait
for room when it is filled, and nothing is fetched before they have found some.

One fetch at a time for a partition. It ends when all of it has come, or when the end of an answer has come
and something in front of it is missing: then the missing part is asked for at once, but no second time
before that brought something. Else it counts as lost when nothing has come for ``fetch_timeout``. The first
loss is repeated right away; if nobody answers that either there are pauses, each twice as long. News of the
partition from a store end a pause.

The window, the records asked for at a time, doubles when it was filled and halves with each loss.

Trimmed. Several nodes answer one FETCH. When one says that the records are gone, another may still have
them. They are left out when every connected store has said so; for a moment real records go first even then,
and where only a part came the rest is asked for once more. While a store says nothing they are asked for
again, for ``store_patience``; on the word of the producer alone, where no store is known, for
``trimmed_patience``: a store may not have been heard of yet. Records that are kept ahead are never left out.

Nothing here is proportional to the number of partitions, except that each has its state: due times are in a
heap, partitions that are up to date are in no list at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import count as count_up
from itertools import takewhile
from typing import Generic, TypeVar

from dafka.protocol.commands import Fetch
from dafka.protocol.runs import Run
from dafka.roles.ahead import Ahead
from dafka.roles.fetch_queue import FetchQueue
from dafka.roles.follower import NEVER, NOBODY, Follower, State
from dafka.roles.known_stores import KnownStores
from dafka.roles.limits import Limits
from dafka.roles.outputs import HearAnswers, Hold, Output
from dafka.roles.room import Room

F = TypeVar("F", bound=Follower)


class CatchUp(Generic[F]):
    """The fetches of the node ``requester``.

    ``hand_over(follower, first, contents, size)`` makes the output for records whose turn has come, of
    ``size`` bytes; ``skip(follower, first, next)`` the one for records that no longer exist. Methods add to
    the ``outputs`` they are given.
    """

    def __init__(
        self,
        requester: bytes,
        hand_over: Callable[[F, int, list[bytes], int], Output],
        skip: Callable[[F, int, int], Output],
        limits: Limits,
    ) -> None:
        self.room = Room(limits.fetches)
        self.fetches = 0  # sent so far
        self.timeouts = 0  # of these, how many were lost
        self.stores = KnownStores()
        self._requester = requester
        self._hand_over = hand_over
        self._skip = skip
        self._limits = limits
        self._under_way = 0
        self._ahead = Ahead(limits)
        self._filled: dict[F, None] = {}  # their records ahead have no gap before them, and wait for room
        self._queue: FetchQueue[F] = FetchQueue()
        self._paused: dict[F, None] = {}
        self._unanswered: dict[F, float] = {}  # since when, in that order; paused, or asked for again
        self._alarms: list[tuple[float, int, F]] = []
        self._serial = count_up()

    @property
    def unanswered(self) -> int:
        """Partitions that nobody answers for; they are asked for again at intervals."""
        return len(self._unanswered)

    @property
    def longest_unanswered(self) -> F | None:
        """The one of them that has waited longest."""
        return next(iter(self._unanswered), None)

    def unanswered_since(self, time: float) -> int:
        """How many of them have been so since that time, or for longer."""
        return sum(1 for _ in takewhile(lambda since: since <= time, self._unanswered.values()))

    # -- what arrives -------------------------------------------------------------------------------

    def receive(self, now: float, follower: F, run: Run, outputs: list[Output]) -> None:
        """Take what can be used of a run of ``follower``'s partition."""
        first, contents = run.first, run.contents
        end = first + len(contents)
        before = follower.next
        if first > before:
            self._ahead.keep(follower, first, contents)
        elif end > before:
            fresh = contents[before - first :] if first < before else contents
            taken = self._take(follower, fresh, outputs)
            if taken:
                if follower.ahead:
                    self._take_ahead(follower, outputs)
                self._advanced(now, follower)
            if follower.next < end:
                if run.recipient is None:
                    rest = contents[follower.next - first :]
                    outputs.append(Hold(run._replace(first=follower.next, contents=rest)))
                    end = follower.next  # as if the rest had not come yet
                elif not taken:
                    self._turned_away(follower)
        if end > follower.end:
            follower.end = end
        if run.recipient is not None and follower.state is State.ASKED and end >= follower.asked:
            self._answered_in_part(follower)
        if follower.next < follower.end:
            self._wait(follower)

    def heard_of(self, follower: F, end: int) -> None:
        """The partition reaches up to ``end`` (exclusive)."""
        if end > follower.end:
            follower.end = end
            if follower.state is State.IDLE:
                self._wait(follower)

    def trimmed(self, now: float, follower: F, first: int, source: bytes) -> None:
        """The records of the partition that ``source`` has begin at ``first``."""
        if first <= follower.next or follower.state not in (State.ASKED, State.PAUSED):
            return
        follower.untried = False
        if not follower.trimmed:
            follower.doubted = now
        # Of several nodes, the one that has most decides.
        follower.trimmed = min(first, follower.trimmed) if follower.trimmed else first
        if source != follower.address and len(follower.deniers) < self._limits.stores:
            follower.deniers |= {source}
        if self._no_store_has(follower):
            self._set_due(follower, min(follower.due, now + self._limits.trimmed_grace))

    def _no_store_has(self, follower: F) -> bool:
        """Whether every store that is connected has said that the records are gone, and there is one."""
        return bool(follower.deniers) and follower.deniers.issuperset(self._other_stores())

    def _other_stores(self) -> set[bytes]:
        return self.stores.present - {self._requester}

    def claimed(self, follower: F, claimant: bytes) -> None:
        """A producer claims the partition; records kept ahead of an earlier one may have no place any
        more."""
        if follower.claimant != claimant:
            follower.claimant = claimant
            self._give_up_ahead(follower)

    def advance(self, now: float, follower: F, position: int, outputs: list[Output]) -> None:
        """Everything below ``position`` has come by other ways."""
        follower.next = position
        follower.end = max(follower.end, position)
        self._take_ahead(follower, outputs)
        self._advanced(now, follower)
        self._wait(follower)

    def restart(self, now: float, follower: F, position: int, pause: float) -> None:
        """Records handed over from ``position`` on were lost: get them again after ``pause`` seconds."""
        self._give_up_ahead(follower)
        self._forget_fetch(follower)
        follower.next = position
        self._forget_trimmed(follower)
        self._pause(now, follower, pause)

    # -- credit and time ----------------------------------------------------------------------------

    def set_room(self, records: int, size: int) -> None:
        """There is room for so many records and bytes, from now on; :meth:`pump` uses it."""
        self.room.set(records, size)

    def tick(self, now: float, outputs: list[Output]) -> None:
        """See to what is due."""
        for _ in self.ticking(now, outputs):
            pass

    def ticking(self, now: float, outputs: list[Output]) -> Iterator[None]:
        """The same, some of it at a time; anything else may be called in between."""
        left = self._limits.due_at_once
        while self._alarms and self._alarms[0][0] <= now:
            if not left:
                self.pump(now, outputs)
                yield
                left = self._limits.due_at_once
                continue
            left -= 1
            alarm, _, follower = heapq.heappop(self._alarms)
            if alarm != follower.alarm:
                continue  # an earlier one has been set since
            follower.alarm = NEVER
            if follower.state is State.ASKED or follower.state is State.PAUSED:
                if follower.due > now:
                    self._set_due(follower, follower.due)
                else:
                    self._overdue(now, follower, outputs)
        self.pump(now, outputs)

    def pump(self, now: float, outputs: list[Output]) -> None:
        """Give room to those that wait for it, as far as it goes. To be called after everything else."""
        for follower in list(self._filled) if self._filled else ():
            if not self._take_ahead(follower, outputs):
                return
            self._advanced(now, follower)
            self._wait(follower)
        if not self._queue.length:
            return
        while (first := self._queue.first) is not None:
            if self._under_way >= self._limits.fetches or not self.room.has_credit_for(first):
                return
            self._queue.pop()
            first.state = State.IDLE
            if first.behind:
                self._ask(now, first, outputs)

    def encourage(self, follower: F) -> None:
        """A node that may have the records has turned up."""
        if follower.state is State.PAUSED:
            self._forget_fetch(follower)
            follower.failures = 0
            self._wait(follower)

    def encourage_all(self) -> None:
        """A node that may have the records of any partition has turned up."""
        for follower in list(self._paused):
            self.encourage(follower)

    def drop(self, followers: Iterable[F]) -> None:
        """Follow these no longer."""
        for follower in followers:
            self._give_up_ahead(follower)
            self._forget_fetch(follower)
            self._answered(follower)
            follower.state = State.GONE
        self._queue.drop_gone()
        self._alarms = [entry for entry in self._alarms if entry[2].state is not State.GONE]
        heapq.heapify(self._alarms)

    # -- taking records -----------------------------------------------------------------------------

    def _take(self, follower: F, contents: list[bytes], outputs: list[Output]) -> int:
        """Hand over those of ``contents``, which begin at ``next``, that there is room for. How many."""
        count = len(contents)
        size = sum(map(len, contents))
        room_records, room_bytes = self.room.for_records_of(follower)
        if count > room_records or size > room_bytes:
            contents, size = _beginning(contents, room_records, room_bytes)
            count = len(contents)
            if not count:
                return 0
        first = follower.next
        follower.next = first + count
        follower.record_bytes = size // count + 1
        follower.untried = False
        self.room.use(count, size)
        outputs.append(self._hand_over(follower, first, contents, size))
        return count

    def _take_ahead(self, follower: F, outputs: list[Output]) -> bool:
        """Hand over what is kept, if the gap before it is filled. False when there was no room for all."""
        while contents := self._ahead.take(follower):
            rest = contents[self._take(follower, contents, outputs) :]
            if rest:
                self._ahead.put_back(follower, rest)
                self._filled[follower] = None
                return False
        self._filled.pop(follower, None)
        return True

    def _give_up_ahead(self, follower: F) -> None:
        self._ahead.give_up(follower)
        self._filled.pop(follower, None)

    # -- fetching -----------------------------------------------------------------------------------

    def _wait(self, follower: F) -> None:
        if follower.state is State.IDLE and follower.behind:
            follower.state = State.WAITING
            self._queue.add(follower)

    def _ask(self, now: float, follower: F, outputs: list[Output]) -> None:
        limits = self._limits
        count = min(follower.gap_end - follower.next, self.room.window(follower, limits.fetch_bytes))
        follower.state = State.ASKED
        follower.asked_from = follower.next
        follower.asked = follower.next + count
        self._under_way += 1
        self.room.reserve(follower, count)
        self._set_due(follower, now + limits.fetch_timeout)
        self.fetches += 1
        outputs.append(Fetch(follower.address, self._requester, follower.topic, follower.next, count))

    def _forget_fetch(self, follower: F) -> None:
        """Leave ASKED or PAUSED."""
        if follower.state is State.ASKED:
            self._under_way -= 1
            self.room.reserve(follower, 0)
        elif follower.state is State.PAUSED:
            del self._paused[follower]
        if follower.state is not State.WAITING:
            follower.state = State.IDLE

    def _advanced(self, now: float, follower: F) -> None:
        """``next`` has moved."""
        if follower.failures or self._unanswered:
            self._answered(follower)
        follower.hurried = False
        if follower.trimmed:
            self._forget_trimmed(follower)
        if follower.state is State.PAUSED:
            self._forget_fetch(follower)
        elif follower.state is State.ASKED:
            if follower.next < follower.asked:
                self.room.reserve(follower, follower.asked - follower.next)
                self._set_due(follower, now + self._limits.fetch_timeout)
                return
            if follower.asked - follower.asked_from >= follower.window:
                follower.window = min(follower.window * 2, self._limits.largest_window)
            self._forget_fetch(follower)

    def _turned_away(self, follower: F) -> None:
        """Fetched records have come and there was no room: so they exist, and are asked for again later."""
        self._forget_trimmed(follower)
        if follower.state is State.ASKED:
            self._forget_fetch(follower)

    def _answered_in_part(self, follower: F) -> None:
        """The last record asked for has come, and one in front of it has not."""
        if not follower.hurried:
            follower.hurried = True
            self._forget_fetch(follower)

    def _overdue(self, now: float, follower: F, outputs: list[Output]) -> None:
        """The fetch is lost, or the pause over."""
        asked = follower.state is State.ASKED
        if follower.trimmed > follower.next:
            others = self._other_stores()
            patience = self._limits.store_patience if others else self._limits.trimmed_patience
            if asked and follower.next != follower.asked_from:
                # Somebody has sent a part of the answer, and may have the rest.
                self._forget_trimmed(follower)
            elif self._no_store_has(follower) or now - follower.doubted >= patience:
                self._skip_to_trimmed(follower, outputs)
                return
            self._forget_fetch(follower)
            self._wait(follower)
            return
        self._forget_fetch(follower)
        if asked:
            self.timeouts += 1
            follower.window = max(follower.window // 2, self._limits.smallest_window)
            if follower.next == follower.asked_from:
                follower.failures += 1
                if follower.failures == self._limits.ahead_attempts:
                    self._give_up_ahead(follower)
                if follower.failures > 1:
                    self._unanswered.setdefault(follower, now)
                    outputs.append(HearAnswers(follower.address))
                    pause = self._limits.fetch_timeout * 2 ** min(follower.failures - 2, 30)
                    self._pause(now, follower, min(pause, self._limits.longest_pause))
                    return
        self._wait(follower)

    def _answered(self, follower: F) -> None:
        follower.failures = 0
        if self._unanswered:
            self._unanswered.pop(follower, None)

    def _pause(self, now: float, follower: F, seconds: float) -> None:
        if follower.state is State.IDLE and follower.behind:
            follower.state = State.PAUSED
            self._paused[follower] = None
            self._set_due(follower, now + seconds)

    @staticmethod
    def _forget_trimmed(follower: F) -> None:
        if follower.trimmed:
            follower.trimmed = 0
            follower.deniers = NOBODY

    def _skip_to_trimmed(self, follower: F, outputs: list[Output]) -> None:
        self._forget_fetch(follower)
        following = min(follower.trimmed, follower.ahead_first) if follower.ahead else follower.trimmed
        outputs.append(self._skip(follower, follower.next, following))
        follower.next = following
        follower.end = max(follower.end, follower.next)
        follower.hurried = False
        self._forget_trimmed(follower)
        self._answered(follower)
        self._take_ahead(follower, outputs)
        self._wait(follower)

    def _set_due(self, follower: F, due: float) -> None:
        follower.due = due
        if due < follower.alarm:
            follower.alarm = due
            heapq.heappush(self._alarms, (due, next(self._serial), follower))


def _beginning(contents: list[bytes], records: int, size: int) -> tuple[list[bytes], int]:
    """The first of ``contents`` there is room for, and their size.

    The record that uses up the last byte may be larger than what is left, or one that is larger than all
    the room would never get through.
    """
    taken = total = 0
    for content in contents[: max(records, 0)]:
        if total >= size:
            break
        total += len(content)
        taken += 1
    return contents[:taken], total
