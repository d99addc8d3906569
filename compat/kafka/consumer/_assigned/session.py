"""The heartbeats of a member whose partitions the broker assigns (KIP-848), in the hub.

Heartbeats begin when the member has a subscription, and go on by themselves. The assignment of an answer is
noted for the program's thread (:mod:`~compat.kafka.consumer._assigned.member`), which gives partitions up and
takes new ones in its next ``poll``, and says here what it has then; the coordinator gives the revoked ones to
others.

A member that the coordinator has fenced, or does not know any more, has *lost* its partitions. It joins again
when the program's thread has dropped them. A program that does not poll for ``max_poll_interval_ms`` is taken
out of its group here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import gevent
import gevent.event
from kafka.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IncompatibleBrokerVersion,
    KafkaError,
    RetriableError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)

from compat.kafka import _beats
from compat.kafka._calls import Calls
from compat.kafka._client import Client
from compat.kafka.consumer._in_group import GroupSession
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.consumer_groups import ConsumerHeartbeat, ConsumerHeartbeatAnswer, Partitions
from dafka.hub.hub import Hub

log = logging.getLogger(__name__)

JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2  # member epochs that have a meaning of their own
NAMES_INTERVAL = 0.1  # the same, while the name of an assigned topic is not known yet

_LOSSES = (UnknownMemberIdError, FencedMemberEpochError, GroupIdNotFoundError)

Numbered = frozenset[tuple[str, int]]  # partitions by topic and number


class AssignedSession(GroupSession):
    """One consumer's membership as the hub knows it."""

    LEAVING = "ConsumerGroupHeartbeat"

    def __init__(
        self, client: Client, calls: Calls, config: Mapping[str, Any], wake_caller: Callable[[], None]
    ) -> None:
        """``wake_caller``, a method that is called in the hub, ends a fetch of the program's thread."""
        super().__init__(client, calls, config, wake_caller)
        self._rack = config.get("client_rack") or None
        self._assignor = config["group_remote_assignor"]
        self.member_id = str(uuid4())
        self.epoch = JOIN
        self.assigned: Numbered | None = None  # the last assignment of the coordinator
        self.lost = False
        self.failure: Exception | None = None  # for the program
        self._joins = False  # whether it has asked to join, and does not know the answer
        self._may_be_own = False  # whether the coordinator may have it as a member that it is not any more
        self.called = False  # whether the program's thread has to look
        self._topics: tuple[str, ...] | None = None
        self.owned: Numbered = frozenset()  # that the program reads, or may begin to read at any moment
        self._ids: dict[str, UUID] = {}
        self._given: Partitions | None = None  # the assignment of the coordinator, if names are not known yet
        self._told: tuple[tuple[str, ...], Numbered] | None = None  # sent to it and answered
        self._heart: gevent.Greenlet | None = None
        self._wake = gevent.event.Event()  # both belong to the hub; one green thread waits for each
        self._heard = gevent.event.Event()

    @property
    def _hub(self) -> Hub:
        return self._client.hub

    # -- from the program's thread --------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Be a member that reads these topics."""
        self._hub.post(self._subscribe, tuple(sorted(topics)))

    def owns(self, partitions: Iterable[tuple[str, int]]) -> None:
        """This is what the program reads now, and nothing else but what is assigned.

        It has taken effect when it returns: it counts for the next assignment.
        """
        self._hub.run(self._own, frozenset((topic, number) for topic, number in partitions))

    def rejoin(self) -> None:
        """The partitions that were lost are dropped: join again."""
        self._hub.post(self._rejoin)

    def wait(self, seconds: float) -> None:
        """Wait until there is something to look at."""
        if seconds > 0 and not self.called:
            self._hub.run(self._wait, seconds)

    def interrupt(self) -> None:
        """End a wait; for any thread."""
        self._hub.post(self._heard.set)

    def lose(self, epoch: int) -> None:
        """A commit with that epoch was refused: the member is not in the group. For any thread."""
        self._hub.post(self._lose, epoch)

    # -- in the hub -----------------------------------------------------------------------------

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        self._topics = topics
        self._wake.set()
        if self._heart is None:
            self._may_be_own = self._broker.is_remote  # where a join is repeated if its answer was lost
            self._heart = self._hub.spawn(self._beat)

    def _wait(self, seconds: float) -> None:
        self._heard.clear()
        if not self.called:
            self._heard.wait(seconds)

    def _own(self, partitions: Numbered) -> None:
        self.owned = partitions | (self.assigned or frozenset())
        self._wake.set()

    def _rejoin(self) -> None:
        self.owned = frozenset()
        self.lost = False
        self._wake.set()

    def _lose(self, epoch: int) -> None:
        if epoch == self.epoch and not self.lost:
            self._lost()

    def _lost(self) -> None:
        self.epoch, self.assigned, self._given, self._told = JOIN, None, None, None
        self.lost = self._may_be_own = True
        self._call()

    def _call(self) -> None:
        self.called = True
        self._heard.set()
        self._wake_program()

    def _beat(self) -> None:
        me = gevent.getcurrent()
        try:
            while self._heart is me:
                left = self._poll_interval - (monotonic() - self.last_poll)
                if left < 0 and not self.lost:
                    self._give_up()
                self._wake.clear()
                if self.lost:
                    self._wake.wait()  # for the program to drop its partitions
                    continue
                pause = self._once(me)
                if self.failure is not None:
                    return
                self._wake.wait(max(min(pause, left + 0.001), 0.001))
        except Exception as error:  # of a value that no request has room for, too
            self._joins = False
            self._fail(error)
        finally:
            _beats.end(self)
            if self._heart is me:
                self._heart = None

    def _once(self, me: Any) -> float:
        """One heartbeat; how many seconds until the next."""
        topics, owned = self._topics or (), self.owned
        full = self._told is None or self.epoch == JOIN
        request = ConsumerHeartbeat(
            self.member_id,
            self.epoch,
            self.instance_id,
            self._rack if full else None,
            self._poll_interval if full else None,
            topics if full or self._told is None or self._told[0] != topics else None,
            None,
            self._assignor if full else None,
            self._by_id(owned) if full or self._told is None or self._told[1] != owned else None,
            self._client_id,
            "/127.0.0.1",
        )
        self._told = None
        self._joins = self._joins or self.epoch == JOIN
        try:
            answer = self._broker.consumer_group_heartbeat(self._group, request)
        except IncompatibleBrokerVersion as error:
            self._fail(error)
            return 0.0
        except BrokerStoppedError:  # one of this process, which may be started again
            return self._backoff
        except KafkaError as error:
            log.warning("heartbeat in group %s: %r", self._group, error)
            self._may_be_own = self._may_be_own or self.epoch == JOIN
            return self._backoff
        if self._heart is not me or request.member_epoch != self.epoch or self.lost:
            return 0.0  # another one has left or lost the membership meanwhile
        self._joins = False
        if answer.error is not None:
            return self._refused(answer)
        self._told = topics, owned
        return self._taken(answer)

    def _taken(self, answer: ConsumerHeartbeatAnswer) -> float:
        began = self.epoch == JOIN
        self.epoch = answer.member_epoch
        if began:
            self._may_be_own = False
            log.info("joined group %s as %s, epoch %d", self._group, self.member_id, self.epoch)
        if answer.assignment is not None:
            self._given = answer.assignment
        named = self._given is None or self._name(self._given)
        interval = answer.interval if self._broker.is_remote else _beats.pause(self, answer.interval)
        return interval if named else min(interval, NAMES_INTERVAL)

    def _name(self, given: Partitions) -> bool:
        """Note what was assigned, by the names of topics; whether all of these are known."""
        names = {topic_id: name for name, topic_id in self._ids.items()}
        if not given.keys() <= names.keys():
            with suppress(KafkaError):
                names.update(self._broker.topic_names(given.keys() - names.keys()))
        known = {topic_id: names[topic_id] for topic_id in given if topic_id in names}
        held = {name for name, _ in self.owned}  # the program reads them until it has given them up
        self._ids = {name: topic_id for name, topic_id in self._ids.items() if name in held}
        self._ids.update((name, topic_id) for topic_id, name in known.items())
        assigned = frozenset((known[one], number) for one in known for number in given[one])
        if assigned != self.assigned:
            self.assigned = assigned
            self.owned |= assigned
            self._call()
        complete = len(known) == len(given)
        if complete:
            self._given = None
        return complete

    def _by_id(self, partitions: Numbered) -> Partitions:
        found: dict[UUID, set[int]] = {}
        for name, number in partitions:
            topic_id = self._ids.get(name)
            if topic_id is not None:  # else the topic was deleted, and is another one by now
                found.setdefault(topic_id, set()).add(number)
        return found

    def _refused(self, answer: ConsumerHeartbeatAnswer) -> float:
        error = answer.error
        assert error is not None
        if error in _LOSSES and self.epoch != JOIN:
            log.warning("heartbeat of %s in group %s: %s", self.member_id, self._group, error.__name__)
            self._lost()
            return 0.0
        if issubclass(error, RetriableError) or error in (UnknownMemberIdError, FencedMemberEpochError):
            return self._backoff
        if error in (GroupAuthorizationFailedError, GroupMaxSizeReachedError):
            self._fail(error(self._group))
        elif error is UnreleasedInstanceIdError and self._may_be_own:
            # The instance may be this member, by a join whose answer was lost, or an epoch that was refused:
            # it gives its place up, and joins again. If it is another member, the next answer says so.
            self._may_be_own = False
            self._tell(LEAVE_STATIC)
            return self._backoff
        elif error in (FencedInstanceIdError, UnreleasedInstanceIdError):
            self._fail(error((self._group, self.instance_id)))
        else:
            self._fail(error(answer.detail))
        return 0.0

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._call()

    def _give_up(self) -> None:
        log.warning(
            "Consumer poll timeout has expired: poll() was not called for max_poll_interval_ms (%d). The "
            "consumer leaves its group and joins again with the next poll().",
            self._poll_interval * 1000,
        )
        self._say(LEAVE)
        self._lost()

    def _say(self, epoch: int) -> None:
        if self.epoch != JOIN or self._joins:
            self._joins = False
            self._tell(epoch)

    def _tell(self, epoch: int) -> None:
        with suppress(KafkaError):
            self._broker.consumer_group_heartbeat(
                self._group,
                ConsumerHeartbeat(self.member_id, epoch, self.instance_id, client_id=self._client_id),
            )

    def _leave(self) -> None:
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.kill(block=False)
        self._say(LEAVE if self.instance_id is None else LEAVE_STATIC)
        self.epoch, self.assigned, self._given, self._told = JOIN, None, None, None
        self.lost, self.failure, self.owned = False, None, frozenset()
